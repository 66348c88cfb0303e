"""Where the numbers of an array lie (its dtype must be the one that the function names), and arrays that grow."""

from libc.stdint cimport int32_t, int64_t

cimport numpy as np


cdef inline float* float_data(array):
    return <float*>np.PyArray_DATA(array)


cdef inline double* double_data(array):
    return <double*>np.PyArray_DATA(array)


cdef inline int32_t* int32_data(array):
    return <int32_t*>np.PyArray_DATA(array)


cdef inline int64_t* int64_data(array):
    return <int64_t*>np.PyArray_DATA(array)


cdef inline Py_ssize_t* intp_data(array):
    """Labels, rows, offsets."""
    return <Py_ssize_t*>np.PyArray_DATA(array)


cdef class GrowingArray:
    """Numbers that are written one after the other, before it is known how many there will be."""

    cdef list chunks
    cdef object chunk  # the chunk at hand, and where its numbers lie
    cdef char* data
    cdef Py_ssize_t used, capacity, itemsize  # of the chunk at hand
    cdef void* end(self, Py_ssize_t n) except NULL nogil
