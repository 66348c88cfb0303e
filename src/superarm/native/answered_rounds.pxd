from libc.stdint cimport int64_t


cdef class AnsweredRounds:
    cdef readonly int64_t start  # a multiple of 8: all rounds below it have been answered
    cdef readonly bytearray bits  # bit i stands for round start + i
    cdef bint has(self, int64_t round) except -1
    cpdef make_room(self, int64_t round)
    cpdef add(self, int64_t round)
    cdef int _extend(self, int64_t at) except -1
    cdef int _trim(self) except -1
