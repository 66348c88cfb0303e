"""Sets drawn uniformly, and the probability of a dilute draw in its order."""

from libc.math cimport lgamma, log
from libc.stdint cimport int64_t, uint64_t

from superarm.native.randomness cimport uniform
from superarm.native.ranking cimport contains


cdef inline void draw_uniform_set(
    Py_ssize_t n, Py_ssize_t m, uint64_t seed, int64_t round, uint64_t first, Py_ssize_t* drawn
) noexcept nogil:
    """Draw m out of n positions, all sets alike (Floyd's algorithm), with the uniforms from number ``first`` on."""
    cdef Py_ssize_t i, at
    for i in range(m):
        at = <Py_ssize_t>(uniform(seed, <uint64_t>round, first + <uint64_t>i) * <double>(n - m + i + 1))
        drawn[i] = at if not contains(drawn, i, at) else n - m + i


cdef inline double logp_uniform_set(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    """Return the log of the probability of each set of m out of n."""
    return lgamma(m + 1.0) + lgamma(n - m + 1.0) - lgamma(n + 1.0)


cdef inline double log_dilute_order(
    const Py_ssize_t* drawn, const Py_ssize_t* top, Py_ssize_t m, Py_ssize_t n, double gamma
) noexcept nogil:
    """Return log Z: of the dilute draw of these m out of n labels, in this order, around ``top``."""
    cdef Py_ssize_t i, inside = 0
    cdef double b = gamma / n, a = (1.0 - gamma) / m + b, rest, total = 0.0, product = 1.0
    for i in range(m):
        rest = (m - inside) * a + (n - m - (i - inside)) * b
        if contains(top, m, drawn[i]):
            product *= a / rest
            inside += 1
        else:
            product *= b / rest
        if product < 1e-200:
            total += log(product)
            product = 1.0
    return total + log(product)
