from superarm.native.stage cimport Stage
from superarm.native.types cimport Features, Row


cdef class AveragedWeights(Stage):
    """Weights that keep moving, and their running average."""

    cdef readonly Py_ssize_t k, d, width, stride
    cdef readonly double forget
    cdef float* W  # dense: k x stride, as in linear.pyx
    cdef float* A
    cdef float* sparse  # (width + 1) x 2 x k: of each feature W, then A; the last row is the constant's
    cdef double* omega  # dense, sparse, updates: the places below
    cdef float* both  # scratch: sparse scores of W, then of A

    cdef double updates(self) noexcept nogil
    # s = scores of the average. What the sparse part of W says comes along; `last_scores` of the same row adds to it.
    cdef void average_scores(self, const Features* x, float* s) noexcept nogil
    cdef void last_scores(self, const Features* x, float* last) noexcept nogil
    # w_r += c_r x for every label and the dense part, and the average of both parts takes in an update. The sparse
    # part has made its step before (pace.pyx).
    cdef void step(self, const double* c, const Features* x) noexcept nogil
    cdef void step_dense(self, const double* c, const Features* x) noexcept nogil
    cdef void shrink(self) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil


cdef enum:
    DENSE_OMEGA = 0
    SPARSE_OMEGA = 1
    UPDATES = 2

cdef double averaging_rate(double updates, double forget, double window) noexcept nogil
cdef object one_row(x, indices, values, Py_ssize_t d, Py_ssize_t width, double bias, double sparse_bias, Features* f)
