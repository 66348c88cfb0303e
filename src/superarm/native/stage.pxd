from libc.stdint cimport int64_t

cdef class Stage:
    cdef readonly dict arrays
    cdef readonly dict stages
    cdef float* floats(self, str name, shape, double value=*) except? NULL
    cdef double* doubles(self, str name, shape, double value=*) except? NULL
    cdef int64_t* integers(self, str name, shape) except? NULL
    cdef void* scratch(self, str name, shape, dtype) except? NULL
    cdef dict _scratch
