from superarm.native.stage cimport Stage
from superarm.native.types cimport Features, Row


cdef enum:
    LINE_FLOATS = 16  # float32 numbers in a cache line


cdef inline Py_ssize_t padded_width(Py_ssize_t d) noexcept nogil:
    """Return how many numbers a label's dense weights take: d, the constant's, and up to whole cache lines."""
    return (d // LINE_FLOATS + 1) * LINE_FLOATS if d > 0 else 0


cdef class Weights(Stage):
    """One matrix of weights: the dense part label-major, the sparse part feature-major."""

    cdef readonly Py_ssize_t k, d, width, stride
    cdef float* dense  # k x stride; place d of each label is the constant's
    cdef float* sparse  # (width + 1) x k; the last row is the constant's; NULL if width is 0
    cdef void scores(self, const Features* x, float* s) noexcept nogil
    cdef bint add_outer(self, const Py_ssize_t* labels, const double* c, Py_ssize_t n, const Features* x) noexcept nogil
    cdef void subtract_mean(self) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil

cdef bint safe_to_add(const double* c, Py_ssize_t n, const Features* x) noexcept nogil
cdef double squared_norm_with_bias(const Features* x) noexcept nogil
cdef void prefetch_features(const float* W, Py_ssize_t k, const Row* row) noexcept nogil


cdef struct Coordinates:
    # A row as it reaches the weights, one number after the other: for steps that differ in every coordinate.
    double* z  # the dense part and its constant, as they stand in a label's weights; then the sparse part and its own
    Py_ssize_t dense  # how many are dense
    Py_ssize_t sparse
    Py_ssize_t* features  # of the sparse ones: their rows of W; the constant's is ``width``


cdef inline void coordinates(const Features* x, Py_ssize_t width, Coordinates* at) noexcept nogil:
    """Fill ``at``, which has room for d + width + 2 numbers and width + 1 features."""
    cdef Py_ssize_t i
    cdef double* z = at.z
    at.dense = at.sparse = 0
    if x.d > 0:
        for i in range(x.d):
            z[i] = x.factor * x.x[i]
        z[x.d] = x.bias
        at.dense = x.d + 1
    if width > 0:
        z += at.dense
        for i in range(x.n):
            z[i] = x.sparse_factor * x.values[i]
            at.features[i] = x.indices[i]
        z[x.n], at.features[x.n] = x.sparse_bias, width
        at.sparse = x.n + 1
