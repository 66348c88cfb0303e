cimport numpy as np


cdef inline const Py_ssize_t* labels_of(array):
    """The numbers of an array of labels (intp)."""
    return <const Py_ssize_t*>np.PyArray_DATA(array)
