from superarm.native.averaging cimport AveragedWeights
from superarm.native.stage cimport Stage
from superarm.native.types cimport Row, ScaledRow


cdef class SparseStepSizes(Stage):
    cdef readonly Py_ssize_t k, width
    cdef readonly double step_size, forget
    cdef double* H  # by label: the running mean of e^2
    cdef float* G  # by feature: the sum of squared steps, the constant last
    cdef double* updates  # that G remembers
    cdef float* float_c  # scratch: c as float

    # w_r += c_r x at each label's and feature's pace, for the sparse part; changes c.
    cdef void step(self, AveragedWeights weights, double rate, double* c, const ScaledRow* x) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil
