from superarm.native.rule cimport Rule
from superarm.native.ties cimport Ties


cdef class RunnerUpRule(Rule):
    cdef readonly double explore, uniform, forget
    cdef double* answers  # how many have come; moved by on_feedback alone
    cdef double sharp  # w
    # of the n and m that were prepared last
    cdef double budget, flat  # B / sqrt(n t); the probability of a uniform set
    cdef float* s  # of the eligible labels
    cdef double* p
    cdef double* b
    cdef Py_ssize_t* order  # positions of the labels ranked 1 to m + 3
    cdef double* sums  # C, the running sums of pi
    cdef Ties ties
    cdef double leave_out(self, const double* draw_state, const float* s, bint tied, double scale, Py_ssize_t n, Py_ssize_t m) noexcept nogil
