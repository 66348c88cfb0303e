from superarm.native.core cimport LinearCore
from superarm.native.types cimport ScaledRow


cdef class CoordinateCore(LinearCore):
    """A learner whose step is another one for each coordinate of the row."""

    cdef double* z  # the coordinates: the dense part and its constant, then the sparse part and its constant
    cdef Py_ssize_t n_dense
    cdef Py_ssize_t n_sparse
    cdef Py_ssize_t* features  # of the sparse ones, their rows of W; the constant's is ``width``

    cdef void read_coordinates(self, const ScaledRow* x) noexcept nogil
