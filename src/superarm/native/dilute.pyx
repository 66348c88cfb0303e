"""Dilute: the paper's draw around the top set (Batra & Manwani 2021, eq. 5).

With the top set Y^ (the m best of n labels), P(r) = (1-gamma)/m 1[r in Y^] + gamma/n, and labels are
drawn one after another without replacement. Only two weights occur,

    a = (1-gamma)/m + gamma/n   inside Y^,        b = gamma/n   outside,

so a set's probability depends on j = |S n Y^| alone, and drawing costs O(m) whatever n is.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from superarm.native.randomness cimport uniform
from superarm.native.rule cimport Rule
from superarm.native.top cimport best_positions
from superarm.native.types cimport Draw


def log_set_table(Py_ssize_t n, Py_ssize_t m, double gamma):
    """log Z_set(j), j = 0..m, by F(u,v) = u F(u-1,v) a / rem(u-1,v) + v F(u,v-1) b / rem(u,v-1)."""
    logs = np.zeros(m + 1)
    if m < n:
        room = np.full((m + 1, m + 1), -np.inf)
        _fill(n, m, (1.0 - gamma) / m + gamma / n, gamma / n, <double*><size_t>room.ctypes.data)
        logs[:] = room[np.arange(m + 1), m - np.arange(m + 1)]
    return logs


cdef void _fill(Py_ssize_t n, Py_ssize_t m, double a, double b, double* F) noexcept nogil:
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


cdef inline void _insert_sorted(Py_ssize_t* values, Py_ssize_t n, Py_ssize_t value) noexcept nogil:
    cdef Py_ssize_t i = n
    while i > 0 and values[i - 1] > value:
        values[i] = values[i - 1]
        i -= 1
    values[i] = value


cdef class DiluteRule(Rule):
    def __init__(self, k, seed, gamma):
        super().__init__(k, seed)
        self.gamma, self.precomputed = gamma, {}
        self.pool = <Py_ssize_t*>self.scratch("pool", k, np.intp)
        self.skip = <Py_ssize_t*>self.scratch("skip", 2 * k, np.intp)

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        m = min(n, m)
        logs = self.precomputed.get((n, m))
        if logs is None:
            logs = self.precomputed[n, m] = log_set_table(n, m, self.gamma)
        self.a, self.b = (1.0 - self.gamma) / m + self.gamma / n, self.gamma / n
        self.log_set = <const double*><size_t>logs.ctypes.data

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        """One uniform per position chooses the group and the member in it; nothing scans the n labels."""
        cdef double a = self.a, b = self.b, weight_in, weight_out, rest, point, log_z = 0.0, product = 1.0
        cdef Py_ssize_t* pool = self.pool
        cdef Py_ssize_t* skip = self.skip
        cdef Py_ssize_t i, l, at, inside = 0, outside = 0
        m = min(n, m)
        best_positions(s, eligible, n, top, m)
        for i in range(m):
            pool[i] = top[i]
        for i in range(m):
            weight_in = (m - inside) * a
            weight_out = (n - m - outside) * b
            rest = weight_in + weight_out
            point = uniform(self.seed, <uint64_t>round, <uint64_t>i) * rest
            if point < weight_in or outside == n - m:
                at = min(<Py_ssize_t>(point / a), m - inside - 1)
                drawn[i] = pool[at]
                inside += 1
                pool[at] = pool[m - inside]
                product *= a / rest
            else:
                if outside == 0:
                    for l in range(m):
                        _insert_sorted(skip, l, top[l])
                at = min(<Py_ssize_t>((point - weight_in) / b), n - m - outside - 1)
                for l in range(m + outside):  # the at-th position that is not in skip
                    if skip[l] <= at:
                        at += 1
                _insert_sorted(skip, m + outside, at)
                drawn[i] = at
                outside += 1
                product *= b / rest
            if product < 1e-200:
                log_z += log(product)
                product = 1.0
        for i in range(m):
            top[i] = eligible[top[i]]
            drawn[i] = eligible[drawn[i]]
        draw.size = draw.top_size = m
        draw.n_log = 0
        draw.logp_ordered, draw.logp_set = log_z + log(product), self.log_set[inside]
