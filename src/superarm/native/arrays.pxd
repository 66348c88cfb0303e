cimport numpy as np


cdef inline const Py_ssize_t* intp_data(array):
    """The numbers of an array of intp: labels, rows, offsets."""
    return <const Py_ssize_t*>np.PyArray_DATA(array)
