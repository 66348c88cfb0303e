"""Greedy: the top set itself, with probability 1."""

from libc.stdint cimport int64_t

from superarm.native.rule cimport Rule
from superarm.native.top cimport best_positions
from superarm.native.types cimport Draw


cdef class GreedyRule(Rule):
    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i
        m = min(n, m)
        best_positions(s, eligible, n, top, m)
        for i in range(m):
            top[i] = eligible[top[i]]
            drawn[i] = top[i]
        draw.size = draw.top_size = m
        draw.n_log = 0
        draw.logp_ordered = draw.logp_set = 0.0
