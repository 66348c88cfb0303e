from libc.stdint cimport int32_t, int64_t

from superarm.native.types cimport Row


cdef class RowBlock:
    cdef readonly object dense, indices, values, starts
    cdef readonly Py_ssize_t n, d, width
    cdef const float* dense_data
    cdef const int32_t* indices_data
    cdef const float* values_data
    cdef const int64_t* starts_data
    cdef void at(self, Py_ssize_t i, Row* row) noexcept nogil
    cdef void prefetch_row(self, Py_ssize_t i) noexcept nogil

cdef int read_row(object row, Row* out) except -1
