"""What theory/estimates.py says, as compiled code needs it."""

from libc.math cimport log, rint


cdef inline int rho_index(double rho) noexcept nogil:
    """The number of the value on RHO_GRID (33 values, evenly spaced in logits) that is nearest to ``rho``."""
    if rho > 1e-9:
        rho = min(rho, 1.0 - 1e-9)
    else:  # NaN too
        rho = 1e-9
    return <int>min(max(rint((log(rho / (1.0 - rho)) + 3.0) * 4.0), 0.0), 32.0)
