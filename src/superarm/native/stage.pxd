from libc.stdint cimport int64_t

cdef class Stage:
    cdef readonly dict arrays  # the arrays of the state, by name
    cdef readonly dict stages  # the stages inside this one, by name
    cdef dict _scratch  # arrays that are not of the state
    # The address of a new array, in the state or in scratch space.
    cdef float* floats(self, str name, shape, double value=*) except? NULL
    cdef double* doubles(self, str name, shape, double value=*) except? NULL
    cdef int64_t* integers(self, str name, shape) except? NULL
    cdef float* scratch_floats(self, str name, shape) except? NULL
    cdef double* scratch_doubles(self, str name, shape) except? NULL
    cdef Py_ssize_t* scratch_intp(self, str name, shape) except? NULL
