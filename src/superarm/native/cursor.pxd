from libc.stdint cimport int64_t

from superarm.native.rule cimport RuleKernel


cdef class Cursor:
    cdef public int64_t round
    cdef readonly object draw_state  # an array
    cdef double* draw_state_data
