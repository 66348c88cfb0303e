"""RunnerUp: leave out a runner-up, within a budget. How SetLogit chooses what to show.

Labels are ranked by p = softmax of the scores, over the eligible labels. Rank r = 2..m is left out with
probability

    pi_r = q b_r,   b_r = min(1, 2 p_r / (1 - p_1)) (p_r / p_1)^w,   w = 0.5 - 0.4 explore

One uniform u chooses: with C the running sums of pi, the labels in whose interval u or u + 1 falls
(at most min(2, n - m)); ranks m+1, m+2 fill up. The top label always stays. At m = 1 another label r
is shown in place of the top one with probability q p_r (p_r / p_1)^w.

    q = min(1, B / M),   B = (0.07 sqrt(m) + explore / (1 - explore)) sqrt(n t)

draw_state    t: rounds, M: what exploring without a budget would have cost, and pending: decisions that
           wait for an answer (at most 300; each answer halves them)
draw_log   what this round adds to M; the labels of ranks m+1 and m+2 (-1: none); how many sums there
           are, and they; the groups of ties (ties.pxd). Empty if everything is shown.

explore/runner_up.py says why.
"""

from libc.math cimport exp, floor, log, sqrt
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from superarm.native.cpu cimport vectors
from superarm.native.randomness cimport uniform
from superarm.native.ranking cimport contains
from superarm.native.rule cimport Rule
from superarm.native.ties cimport count_groups, find_ties, is_tied, order_ties, way_to_choose, write_ties
from superarm.native.types cimport Answer, Draw
from superarm.native.uniform cimport draw_uniform, log_uniform

cdef extern from *:
    """
    #define MOST_PENDING 300.0
    #define EQUAL 1e-5 /* scores of labels with equal histories may differ by rounding */
    """
    const double MOST_PENDING, EQUAL


cdef class RunnerUpRule(Rule):
    def __init__(self, k, seed, explore, uniform, forget):
        super().__init__(k, seed)
        self.explore, self.uniform, self.forget = explore, uniform, forget
        self.sharp = 0.5 - 0.4 * self.explore
        self.n_draw_state = 3
        self.draw_state = self.doubles("decided", 3)
        self.answers = self.doubles("answers", 1)
        self.s = <float*>self.scratch("s", k, np.float32)
        self.p = <double*>self.scratch("p", k, np.float64)
        self.b = <double*>self.scratch("b", k, np.float64)
        self.order = <Py_ssize_t*>self.scratch("order", k + 1, np.intp)
        self.sums = <double*>self.scratch("sums", k + 1, np.float64)
        self.ties.group = <Py_ssize_t*>self.scratch("group", k + 1, np.intp)
        self.ties.size = <Py_ssize_t*>self.scratch("size", k + 1, np.intp)
        self.ties.low = <float*>self.scratch("low", k + 1, np.float32)
        self.ties.high = <float*>self.scratch("high", k + 1, np.float32)
        self.ties.wanted = <Py_ssize_t*>self.scratch("wanted", k + 1, np.intp)
        self.ties.place = <Py_ssize_t*>self.scratch("place", k + 1, np.intp)

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        m = min(n, m)
        if self.explore < 1.0:
            self.budget = 0.07 * sqrt(<double>m) + self.explore / (1.0 - self.explore)
        self.flat = exp(log_uniform(n, m))

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        if n <= m:
            return 0
        return 8 + n + n if m == 1 else 7 + m - 1 + min(n, m + 2) + n

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, groups, count, ranks, most, filled = 0, first = -1, second = -1
        cdef double near = EQUAL, chance = 0.0, scale, u
        cdef Py_ssize_t* order = self.order
        cdef double* p = self.p
        cdef double* sums = self.sums
        cdef uint64_t t = <uint64_t>round
        cdef bint flat = False
        cdef const float* all_scores = s
        m = min(n, m)
        if eligible[n - 1] != n - 1:  # else all labels are eligible
            for i in range(n):
                self.s[i] = all_scores[eligible[i]]
            s = self.s
        draw.size = draw.top_size = m
        draw.logp_ordered = draw.logp_set = 0.0
        draw.n_log = 0
        if n == m:
            vectors.top_positions(s, n, top, m)
            for i in range(m):
                drawn[i] = top[i] = eligible[top[i]]
            return
        if self.answers[0] > 0.0 and draw_state[2] > 0.0:
            near += log(1.0 + draw_state[2] / self.answers[0])
        ranks, most = min(n, m + 2) if m > 1 else 1, min(2, n - m)
        vectors.top_positions(s, n, order, min(n, ranks + 1))
        scale = 1.0 / vectors.exp_sum(s, s[order[0]], 1.0, p, n)
        groups = find_ties(&self.ties, s, n, order, ranks, <float>near)
        if groups > 0:
            for i in range(n):
                p[i] *= scale
            scale = 1.0
            order_ties(&self.ties, s, n, order, ranks, p, self.seed, round, <uint64_t>(2 + m))
        count = n if m == 1 else m - 1
        draw_log[0] = self.leave_out(draw_state, s, groups > 0, scale, n, m)
        draw_log[1] = eligible[order[m]] if m > 1 else -1.0
        draw_log[2] = eligible[order[m + 1]] if m > 1 and m + 1 < n else -1.0
        draw_log[3] = count
        for i in range(count):
            draw_log[i + 4] = sums[i + 1]
        draw.n_log = write_ties(&self.ties, groups, s, eligible, n, order, ranks, draw_log, count + 4)
        if self.uniform > 0.0 and uniform(self.seed, t, 1) < self.uniform:
            draw_uniform(n, m, self.seed, round, 2, drawn)
            flat = True
        else:
            u = uniform(self.seed, t, 0)
            first = _interval(u, sums, count)
            if m > 1 and most > 1:
                second = _interval(u + 1.0, sums, count)
            if m == 1:
                drawn[0] = order[0] if first < 0 else first
            else:
                for i in range(ranks):
                    if filled < m and (i == 0 or (i - 1 != first and i - 1 != second)):
                        drawn[filled] = order[i]
                        filled += 1
        if groups > 0:
            chance = _tied_probability(self, s, n, drawn, m, groups)
        elif flat or m == 1:
            chance = _set_probability(drawn, order, sums, n, m, count)
        else:  # which ranks are missing is known
            chance = _probability_of_ranks(first, -1 if second == first else second, sums, count, most)
        if self.uniform > 0.0:
            chance = (1.0 - self.uniform) * chance + self.uniform * self.flat
        draw.logp_ordered = draw.logp_set = log(chance)
        for i in range(m):
            top[i] = eligible[order[i]]
            drawn[i] = eligible[drawn[i]]

    cdef double leave_out(self, const double* draw_state, const float* s, bint tied, double scale, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        """Fill ``sums`` with the running sums of pi, and return what they would have cost at q = 1.

        Sum i belongs to rank i + 2; at m = 1, to position i, shown in place of the top one. p is to be scaled.
        Without ties, log(p_r / p_1) is the difference of their scores.
        """
        cdef Py_ssize_t i, first = self.order[0]
        cdef double* p = self.p
        cdef double* sums = self.sums
        cdef double keep = 1.0 - self.forget, q = 1.0, b, own, best, rest, fill, cost = 0.0
        if self.explore < 1.0 and draw_state[1] * keep > 0.0:
            q = min(1.0, self.budget * sqrt(n * (draw_state[0] * keep)) / (draw_state[1] * keep))
        best, sums[0] = p[first] * scale, 0.0
        if m == 1:
            if not tied:
                vectors.exp_sum(s, s[first], <float>(1.0 + self.sharp), self.b, n)
            for i in range(n):
                own = p[i] * scale
                if tied:
                    b = own * exp(self.sharp * log(own / best)) if own > 0.0 else 0.0
                else:
                    b = self.b[i] * scale
                cost += b * (best - own)
                sums[i + 1] = sums[i] + q * b
            return cost
        rest, fill = max(1e-9, 1.0 - best), p[self.order[m]] * scale
        for i in range(m - 1):
            own = p[self.order[i + 1]] * scale
            b = log(max(own, 1e-30) / best) if tied else <double>(s[self.order[i + 1]] - s[first])
            b = min(1.0, 2.0 * own / rest) * exp(self.sharp * b)
            cost += b * (own - fill)
            sums[i + 1] = sums[i] + q * b
        return cost

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        if n_log > 0:  # else everything was shown
            draw_state[0] = draw_state[0] * (1.0 - self.forget) + 1.0
            draw_state[1] = draw_state[1] * (1.0 - self.forget) + draw_log[0]
        draw_state[2] = min(MOST_PENDING, draw_state[2] + 1.0)

    cdef void on_feedback(self, const double* draw_log, Py_ssize_t n_log, const Answer* answer) noexcept nogil:
        self.draw_state[2] = floor(self.draw_state[2] * 0.5)
        self.answers[0] += 1.0


cdef inline Py_ssize_t _interval(double u, const double* sums, Py_ssize_t count) noexcept nogil:
    """The i with sums[i] <= u < sums[i + 1]; -1 for none. It counts, as a branch could not be foreseen."""
    cdef Py_ssize_t i, gone = 0
    for i in range(1, count + 1):
        gone += sums[i] <= u
    return gone if gone < count else -1


cdef double _probability_left_out(Py_ssize_t first, Py_ssize_t second, const double* sums, Py_ssize_t count, Py_ssize_t most) noexcept nogil:
    """The probability, over u in [0, 1), that u falls into interval ``first``, and u + 1 into ``second`` (-1: none)."""
    cdef double total = sums[count], high
    cdef double twice = max(0.0, total - 1.0) if most > 1 else 0.0  # below this u, two are left out
    if first < 0:
        return max(0.0, 1.0 - total)
    if second < 0:
        return max(0.0, min(1.0, sums[first + 1]) - max(twice, sums[first]))
    high = min(min(sums[first + 1], sums[second + 1] - 1.0), twice)
    return max(0.0, high - max(sums[first], sums[second] - 1.0))


cdef double _probability_of_ranks(Py_ssize_t first, Py_ssize_t second, const double* sums, Py_ssize_t count, Py_ssize_t most) noexcept nogil:
    """The probability that exactly these are left out, in whatever order u finds them."""
    if second < 0:
        return _probability_left_out(first, -1, sums, count, most)
    return _probability_left_out(first, second, sums, count, most) + _probability_left_out(second, first, sums, count, most)


cdef double _set_probability(const Py_ssize_t* drawn, const Py_ssize_t* order, const double* sums, Py_ssize_t n, Py_ssize_t m, Py_ssize_t count) noexcept nogil:
    """The probability that the rule shows exactly these positions, in whatever order; without ties."""
    cdef Py_ssize_t i, first = -1, second = -1, missing = 0, most = min(2, n - m)
    if m == 1:
        return sums[drawn[0] + 1] - sums[drawn[0]] + (max(0.0, 1.0 - sums[count]) if drawn[0] == order[0] else 0.0)
    if not contains(drawn, m, order[0]):
        return 0.0
    for i in range(1, m):
        if not contains(drawn, m, order[i]):
            second = first
            first = i - 1
            missing += 1
    if missing > most:
        return 0.0
    for i in range(missing):
        if not contains(drawn, m, order[m + i]):
            return 0.0
    return _probability_of_ranks(first, second, sums, count, most)


cdef double _tied_probability(RunnerUpRule rule, const float* s, Py_ssize_t n, const Py_ssize_t* drawn, Py_ssize_t m, Py_ssize_t groups) noexcept nogil:
    """The same where labels are tied, over all the orders they could have had."""
    cdef Py_ssize_t first, second, g, i, sign, most = min(2, n - m), count = n if m == 1 else m - 1
    cdef Py_ssize_t* wanted = rule.ties.wanted
    cdef Py_ssize_t* group = rule.ties.group
    cdef const double* sums = rule.sums
    cdef double chance, way, total = 0.0
    cdef bint same
    if m == 1:
        chance = sums[drawn[0] + 1] - sums[drawn[0]]
        if is_tied(&rule.ties, 0, s[drawn[0]]):
            chance += max(0.0, 1.0 - sums[count]) / <double>rule.ties.size[0]
        return chance
    if not count_groups(&rule.ties, groups, s, drawn, m):
        return 0.0
    way = way_to_choose(&rule.ties, groups)
    for i in range(m):
        wanted[group[i]] -= 1  # what is left to explain, beyond ranks 1 to m
    for first in range(-1, m - 1):
        for second in range(-1, max(first, 0)):
            if (first >= 0) + (second >= 0) > most:
                continue
            for sign in range(1, -2, -2):  # try it, and take it back
                if first >= 0:
                    wanted[group[first + 1]] += sign
                    wanted[group[m]] -= sign
                if second >= 0:
                    wanted[group[second + 1]] += sign
                    wanted[group[m + 1]] -= sign
                if sign == 1:
                    same = True
                    for g in range(groups):
                        same = same and wanted[g] == 0
                    if same:
                        total += _probability_of_ranks(first, second, sums, count, most)
    return total * way
