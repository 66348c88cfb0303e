from superarm.native.stage cimport Stage
from superarm.native.types cimport Row, ScaledRow


cdef class Scaling(Stage):
    cdef readonly Py_ssize_t d, width
    cdef void scale(self, const Row* row, ScaledRow* x) noexcept nogil
    cdef void update_stats(self, const Row* row) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil
