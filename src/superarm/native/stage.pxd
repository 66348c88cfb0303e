from libc.stdint cimport int64_t

cdef class Stage:
    cdef readonly dict arrays
    cdef readonly dict stages
    cdef float* floats(self, str name, shape, double value=*) except? NULL
    cdef double* doubles(self, str name, shape, double value=*) except? NULL
    cdef int64_t* integers(self, str name, shape) except? NULL
    cdef float* scratch_floats(self, str name, shape) except? NULL
    cdef double* scratch_doubles(self, str name, shape) except? NULL
    cdef Py_ssize_t* scratch_intp(self, str name, shape) except? NULL
    cdef dict _scratch
