from superarm.native.stage cimport Stage
from superarm.native.types cimport Row, ScaledRow


cdef enum:
    LINE_FLOATS = 16  # float32 numbers in a cache line


cdef inline Py_ssize_t padded_width(Py_ssize_t d) noexcept nogil:
    """Return how many numbers a label's dense weights take: d, the constant's, and up to whole cache lines."""
    return (d // LINE_FLOATS + 1) * LINE_FLOATS if d > 0 else 0


cdef class Weights(Stage):
    cdef readonly Py_ssize_t k, d, width, stride
    cdef float* dense  # k x stride; place d of each label is the constant's
    cdef float* sparse  # (width + 1) x k; the last row is the constant's; NULL if width is 0
    cdef void scores(self, const ScaledRow* x, float* s) noexcept nogil
    cdef bint add_outer(
        self, const Py_ssize_t* labels, const double* c, Py_ssize_t n, const ScaledRow* x
    ) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil

cdef bint norm_is_safe(const ScaledRow* x) noexcept nogil
cdef bint safe_to_add(const double* c, Py_ssize_t n, const ScaledRow* x) noexcept nogil
cdef double squared_norm_with_bias(const ScaledRow* x) noexcept nogil
cdef void prefetch_features(const float* W, Py_ssize_t k, const Row* row) noexcept nogil
