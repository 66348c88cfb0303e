"""Boltzmann: one label, drawn from a softmax that is mixed with uniform (Newtron's draw).

p = softmax(alpha s),   P = (1-gamma) p + gamma/n,   y~ ~ P          draw_log: P of the n eligible labels
"""

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

from superarm.native.randomness cimport uniform
from superarm.native.ranking cimport softmax
from superarm.native.rule cimport Rule
from superarm.native.top cimport best_positions
from superarm.native.types cimport Draw


cdef class BoltzmannRule(Rule):
    cdef readonly double gamma, alpha

    def __init__(self, k, seed, gamma, alpha):
        super().__init__(k, seed)
        self.gamma, self.alpha = gamma, alpha

    cdef Py_ssize_t largest(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return 1

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return n

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, chosen = n - 1
        cdef double point = uniform(self.seed, <uint64_t>round, 0)
        best_positions(s, eligible, n, top, 1)
        softmax(s, eligible, n, self.alpha, draw_log)
        for i in range(n):
            draw_log[i] = (1.0 - self.gamma) * draw_log[i] + self.gamma / n
        for i in range(n):
            point -= draw_log[i]
            if point < 0.0:
                chosen = i
                break
        top[0], drawn[0] = eligible[top[0]], eligible[chosen]
        draw.size = draw.top_size = 1
        draw.n_log = n
        draw.logp_ordered = draw.logp_set = log(draw_log[chosen])
