from superarm.native.rule cimport Rule


cdef class CoverRule(Rule):
    cdef readonly double coverage, eta, uniform, false_no, false_yes
    cdef public double level  # the coverage that the next decisions are asked for
    cdef public Py_ssize_t none  # the number of a label that is never shown and may be the truth; -1: there is none
    cdef public bint full_information  # every answer names the label: whatever is shown teaches, so nothing is left out
    cdef double* warm_up  # rounds; part of the state, so that labels added later do not make it longer
    cdef double* levels  # coverages that are in use; 0 where there is room
    cdef double* thresholds  # q of each
    cdef double* recent  # misses of each, a running mean
    cdef double* tally  # of each: answers, misses, labels shown, misses that the largest size caused, noes to sets of all labels
    cdef readonly bint short  # a promise is broken, by the largest size or by wrong answers
    cdef float* s  # of the eligible labels
    cdef double* p
    cdef double* own  # p by rank
    cdef double* sums  # C, the running sums of pi
    cdef Py_ssize_t* order  # positions by rank
    cdef Py_ssize_t* tied  # positions of the labels that are tied at the edge
    cdef Py_ssize_t* mark  # 1 for the positions of a set; else 0
    cdef double q(self, double level) noexcept nogil
    cdef void use_level(self, Py_ssize_t at, double level) noexcept nogil
    cdef Py_ssize_t level_index(self, double level) noexcept nogil
    cdef Py_ssize_t half(self, const float* s, Py_ssize_t n, Py_ssize_t m, double scale) noexcept nogil
    cdef Py_ssize_t above(self, Py_ssize_t n, double edge) noexcept nogil
    cdef double leave_out(self, const double* draw_state, double alpha, Py_ssize_t size, double certain, double t) noexcept nogil
    cdef double probability(self, const Py_ssize_t* drawn, Py_ssize_t shown, Py_ssize_t size, Py_ssize_t held, Py_ssize_t group, Py_ssize_t count) noexcept nogil
