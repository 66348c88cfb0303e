"""The best labels, by vectorised loops where all labels are eligible. (Code of your own can cimport ranking.pxd without them.)"""

from superarm.native.cpu cimport vectors
from superarm.native.ranking cimport top_positions


cdef inline void best_positions(const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t* top, Py_ssize_t m) noexcept nogil:
    """The positions in ``eligible`` (increasing) of the best m scores, best first; ties: first wins."""
    if eligible[n - 1] == n - 1:  # all of them
        vectors.top_positions(s, n, top, m)
    else:
        top_positions(s, eligible, n, top, m)
