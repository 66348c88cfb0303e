"""The rules that draw and move nothing: uniform, Boltzmann, dilute. superarm.explore has their equations."""

from functools import lru_cache

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport uint64_t

import numpy as np

from superarm.native.arrays cimport double_data, intp_data
from superarm.native.cpu cimport kernels
from superarm.native.randomness cimport uniform
from superarm.native.ranking cimport insert_sorted
from superarm.native.rule cimport RuleKernel
from superarm.native.sampling cimport draw_uniform_set, log_dilute_order, logp_uniform_set
from superarm.native.types cimport Draw, DrawContext


cdef class UniformKernel(RuleKernel):
    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        self.best_positions(context, draw.top, context.m)
        draw_uniform_set(context.n, context.m, self.seed, context.round, 0, draw.drawn)
        draw.log_propensity = logp_uniform_set(context.n, context.m)


cdef class BoltzmannKernel(RuleKernel):
    """Its draw_log has P of the n eligible labels."""

    cdef readonly double gamma, alpha

    def __init__(self, k, seed, gamma, alpha):
        super().__init__(k, seed)
        self.gamma, self.alpha = gamma, alpha

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return n

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, n = context.n, chosen = n - 1
        cdef double point = uniform(self.seed, <uint64_t>context.round, 0), scale
        cdef double* P = draw.draw_log
        self.best_positions(context, draw.top, 1)
        scale = 1.0 / kernels.exp_sum(context.scores, context.scores[draw.top[0]], <float>self.alpha, P, n)
        for i in range(n):
            P[i] = (1.0 - self.gamma) * scale * P[i] + self.gamma / n
        for i in range(n):
            point -= P[i]
            if point < 0.0:
                chosen = i
                break
        draw.drawn[0] = chosen
        draw.n_log = n
        draw.log_propensity = log(P[chosen])


@lru_cache(maxsize=4096)
def log_set_table(Py_ssize_t n, Py_ssize_t m, double gamma) -> NDArray[Any]:
    """Return log Z_set(j), j = 0..m, by F(u,v) = u F(u-1,v) a / rem(u-1,v) + v F(u,v-1) b / rem(u,v-1).

    Z_set(j) is the probability of a set of m out of n labels with |S n Y^| = j (explore/dilute.py).
    """
    logs = np.zeros(m + 1)
    if m < n:
        table = np.full((m + 1, m + 1), -np.inf)
        _fill_table(n, m, (1.0 - gamma) / m + gamma / n, gamma / n, double_data(table))
        logs[:] = table[np.arange(m + 1), m - np.arange(m + 1)]
    logs.flags.writeable = False
    return logs


cdef void _fill_table(Py_ssize_t n, Py_ssize_t m, double a, double b, double* F) noexcept nogil:
    cdef Py_ssize_t u, v, row = m + 1
    cdef double x, y, high, log_a = log(a), log_b = log(b) if b > 0.0 else -INFINITY
    F[0] = 0.0
    for u in range(m + 1):
        for v in range(min(m - u, n - m) + 1):
            if u + v == 0:
                continue
            x = y = -INFINITY
            if u > 0:
                x = log(<double>u) + F[(u - 1) * row + v] + log_a - log((m - u + 1) * a + (n - m - v) * b)
            if v > 0 and b > 0.0:
                y = log(<double>v) + F[u * row + v - 1] + log_b - log((m - u) * a + (n - m - v + 1) * b)
            high = x if x > y else y
            F[u * row + v] = high if high == -INFINITY else high + log(exp(x - high) + exp(y - high))


def log_order_probability(order, Py_ssize_t n, double gamma):
    """Return log Z of an ordered dilute draw from n labels.

    ``order`` (intp) has each one's rank, from m on outside of Y^.
    """
    ranks = np.arange(len(order))
    return log_dilute_order(intp_data(order), intp_data(ranks), len(order), n, gamma)


cdef class DiluteKernel(RuleKernel):
    """Its draw_log has gamma."""

    cdef readonly double gamma
    cdef object table  # log_set_table of the n and m that were prepared last
    cdef const double* log_set  # its numbers
    cdef Py_ssize_t* pool  # positions of the top set that are still to be had
    cdef Py_ssize_t* skip  # positions that are not, in increasing order

    def __init__(self, k, seed, gamma):
        super().__init__(k, seed)
        self.gamma = gamma
        self.pool = self.scratch_intp("pool", k)
        self.skip = self.scratch_intp("skip", 2 * k)

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return 1

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        self.table = log_set_table(n, min(n, m), self.gamma)
        self.log_set = double_data(self.table)

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        """One uniform per position chooses the group and the member in it; nothing scans the n labels."""
        cdef Py_ssize_t i, l, at, n = context.n, m = context.m, inside = 0, outside = 0
        cdef double b = self.gamma / n, a = (1.0 - self.gamma) / m + b
        cdef double weight_in, weight_out, point
        cdef Py_ssize_t* pool = self.pool
        cdef Py_ssize_t* skip = self.skip
        self.best_positions(context, draw.top, m)
        for i in range(m):
            pool[i] = draw.top[i]
        for i in range(m):
            weight_in = (m - inside) * a
            weight_out = (n - m - outside) * b
            point = uniform(self.seed, <uint64_t>context.round, <uint64_t>i) * (weight_in + weight_out)
            if point < weight_in or outside == n - m:
                at = min(<Py_ssize_t>(point / a), m - inside - 1)
                draw.drawn[i] = pool[at]
                inside += 1
                pool[at] = pool[m - inside]
            else:
                if outside == 0:
                    for l in range(m):
                        insert_sorted(skip, l, draw.top[l])
                at = min(<Py_ssize_t>((point - weight_in) / b), n - m - outside - 1)
                for l in range(m + outside):  # the at-th position that is not in skip
                    if skip[l] <= at:
                        at += 1
                insert_sorted(skip, m + outside, at)
                draw.drawn[i] = at
                outside += 1
        draw.draw_log[0], draw.n_log = self.gamma, 1
        draw.log_propensity = self.log_set[inside]
