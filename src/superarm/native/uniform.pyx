"""Uniform: every set of m out of n labels with probability 1 / C(n, m), in every order alike."""

from libc.math cimport lgamma
from libc.stdint cimport int64_t, uint64_t

from superarm.native.rule cimport Rule
from superarm.native.top cimport best_positions
from superarm.native.types cimport Draw


cdef class UniformRule(Rule):
    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        m = min(n, m)
        self.log_set = log_uniform(n, m)
        self.log_ordered = self.log_set - lgamma(m + 1.0)

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i
        m = min(n, m)
        best_positions(s, eligible, n, top, m)
        draw_uniform(n, m, self.seed, round, 0, drawn)
        for i in range(m):
            top[i] = eligible[top[i]]
            drawn[i] = eligible[drawn[i]]
        draw.size = draw.top_size = m
        draw.n_log = 0
        draw.logp_ordered, draw.logp_set = self.log_ordered, self.log_set
