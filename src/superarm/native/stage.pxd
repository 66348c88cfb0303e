from libc.stdint cimport int64_t

cdef class Stage:
    cdef readonly dict arrays  # of the state, by name
    cdef readonly dict stages  # inside it, by name
    cdef dict _scratch  # other arrays
    # The address of a new array: of the state, or scratch space.
    cdef float* floats(self, str name, shape, double value=*) except? NULL
    cdef double* doubles(self, str name, shape, double value=*) except? NULL
    cdef int64_t* integers(self, str name, shape) except? NULL
    cdef float* scratch_floats(self, str name, shape) except? NULL
    cdef double* scratch_doubles(self, str name, shape) except? NULL
    cdef Py_ssize_t* scratch_intp(self, str name, shape) except? NULL
