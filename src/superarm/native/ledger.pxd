from libc.stdint cimport int64_t

cdef class Ledger:
    cdef readonly int64_t low
    cdef readonly object later
    cdef bint has(self, int64_t round) except -1
    cdef int mark(self, int64_t round) except -1
