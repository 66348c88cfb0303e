from libc.stdint cimport int32_t

from superarm.native.stage cimport Stage
from superarm.native.types cimport Features, Row


cdef struct ScalingCounters:  # of dense rows
    double n_rows
    double mean_squared_norm  # of |z|^2
    double next_refresh  # the row at which 1 / sd and limit are due again


cdef class Scaling(Stage):
    """Rows on one scale."""

    cdef readonly Py_ssize_t d, width
    cdef void scale(self, const Row* row, Features* x) noexcept nogil
    cdef void update_stats(self, const Row* row) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil


cdef class UnitScaling(Scaling):
    cdef readonly double bias


cdef class StandardScaling(Scaling):
    cdef readonly double bias, sparse_bias, forget
    cdef readonly Py_ssize_t n_numbers
    cdef float* mean
    cdef float* var
    cdef float* inverse
    cdef float* df
    cdef ScalingCounters* counters
    cdef double* n_sparse_rows
    cdef float* n_values
    cdef float* mode
    cdef float* nonmode_share
    cdef float* outlier_rate
    cdef float* fast_mean
    cdef float* fast_var
    cdef float* fast_nonmode_share
    cdef float* limit
    cdef float* first_values
    cdef float* z
    cdef float* repaired
    cdef const float* x  # the row that was scaled last, repaired where it had to be
    cdef float* sparse_z
    cdef double squared_norm  # |z|^2 of the row that was scaled last
    cdef double _scale_dense(self, const Row* row, Features* out) noexcept nogil
    cdef double _scale_sparse(self, const Row* row) noexcept nogil
    cdef void _update_dense(self) noexcept nogil
    cdef void _update_numbers(self, const float* x, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    cdef void _init_stats(self, Py_ssize_t j, float x) noexcept nogil
    cdef void _update_sparse(self, const Row* row) noexcept nogil
