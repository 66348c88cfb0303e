"""Cover: as few labels as a promised coverage needs.

    T = { r : p_r >= exp(-q) },  at least the best one, at most m       q += eta (missed - alpha), at least 0

p = softmax of the scores over the eligible labels, alpha = 1 - coverage. From q = log(k / 1e-4) on everything
is shown. Runners-up in T are left out with probability

    pi_r = q_b b_r,   b_r = min(1, 2 p_r / (1 - p_1)),   q_b = min(1, beta alpha t / M)
    beta = min(0.95, 3 (C / t)^1.5 / (1 + t / 500 k)) clip(2 - recent / alpha, 0, 1)

by one uniform u: with the running sums of pi, those in whose interval u or u + 1 falls. In the first
``warm_up`` rounds the best labels are shown whose p sum up nearest to one half. A learner with ``full_information`` about the
label learns from any set: nothing is left out.

Labels tied with the last one of T (or of the half) take its place at random.

draw_state    of its own coverage, t: decisions that count, M: what leaving out at q_b = 1 would have cost, C: the sum of
           sum_r p_r^2, how certain they were
draw_log   HEAD numbers that move the rule: coverage; whether it counts; what it adds to M; labels shown; what
           limits it (1: the largest size, 2: a uniform set); the weights of a no and of a yes; sum_r p_r^2; then q, how many
           sums there are, and they; how many ranks are tied with labels behind them, and then +1 or -1, and the
           labels behind them (+1), or if they are fewer, all others (-1)

explore/cover.py says why.
"""

from libc.math cimport exp, fabs, log, sqrt
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from superarm.native.cpu cimport vectors
from superarm.native.randomness cimport uniform
from superarm.native.rule cimport Rule
from superarm.native.types cimport Answer, Draw
from superarm.native.uniform cimport draw_uniform, log_uniform

cdef extern from *:
    """
    #define LEVELS 16
    #define COUNTS 5 /* numbers in the tally of a level */
    #define HEAD 8
    #define EQUAL 1e-5f /* scores of labels with equal histories may differ by rounding */
    #define LEAST 1e-4 /* over k: the least p that is told from 0 */
    #define ENOUGH 1000.0 /* answers from which a broken promise is told */
    #define MOST 0.95 /* the largest share of alpha that leaving out may cost */
    #define SPEND 3.0 /* that share, were all certain at the start */
    #define SLOW 500.0 /* decisions a label until it has halved */
    #define RECENT 500.0 /* answers over which misses are smoothed */
    """
    const int LEVELS, COUNTS, HEAD
    const float EQUAL
    const double LEAST, ENOUGH, MOST, SPEND, SLOW, RECENT


cdef class CoverRule(Rule):
    def __init__(self, k, seed, coverage, warm_up, eta, uniform, false_no, false_yes):
        super().__init__(k, seed)
        self.coverage = self.level = coverage
        self.eta, self.uniform, self.false_no, self.false_yes = eta, uniform, false_no, false_yes
        self.none, self.full_information = -1, False
        self.n_draw_state = 3
        self.draw_state = self.doubles("decided", 3)
        self.warm_up = self.doubles("warm_up", 1, warm_up)
        self.levels = self.doubles("levels", LEVELS)
        self.thresholds = self.doubles("thresholds", LEVELS)
        self.recent = self.doubles("recent", LEVELS)
        self.tally = self.doubles("tally", (LEVELS, COUNTS))
        self.use_level(0, coverage)
        self.s = <float*>self.scratch("s", k, np.float32)
        self.p = <double*>self.scratch("p", k, np.float64)
        self.own = <double*>self.scratch("own", k + 1, np.float64)
        self.sums = <double*>self.scratch("sums", k + 1, np.float64)
        self.order = <Py_ssize_t*>self.scratch("order", k + 1, np.intp)
        self.tied = <Py_ssize_t*>self.scratch("tied", k + 1, np.intp)
        self.mark = <Py_ssize_t*>self.scratch("mark", k + 1, np.intp)

    def has_room(self, double level):
        """Whether a threshold is kept for this coverage, or can be."""
        return self.level_index(level) >= 0 or self.level_index(0.0) >= 0

    def threshold(self, double level):
        """q of this coverage."""
        return self.q(level)

    def edge(self, double level):
        """The least p that is shown at this coverage."""
        q = self.q(level)
        return exp(-q) if q < log(self.k / LEAST) else 0.0

    cdef double q(self, double level) noexcept nogil:
        cdef Py_ssize_t at = self.level_index(level)
        return first_threshold(self.k, 1.0 - level) if at < 0 else self.thresholds[at]

    cdef void use_level(self, Py_ssize_t at, double level) noexcept nogil:
        self.levels[at], self.recent[at] = level, 1.0 - level
        self.thresholds[at] = first_threshold(self.k, 1.0 - level)

    cdef Py_ssize_t level_index(self, double level) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(LEVELS):
            if self.levels[i] == level:
                return i
        return -1

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return HEAD + 5 + 2 * n

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, at, size, start, wanted, shown = 0, held = 0, group = 0, count = 0, first = -1, second = -1
        cdef Py_ssize_t* order = self.order
        cdef Py_ssize_t* tied = self.tied
        cdef double* p = self.p
        cdef double* sums = self.sums
        cdef double alpha = 1.0 - self.level, q, scale, u, chance, inside = 0.0, outside, none = 0.0, cost = 0.0, limit = 0.0, certainty = 0.0
        cdef float edge, high
        cdef uint64_t t = <uint64_t>round
        cdef bint counts = round >= self.warm_up[0]
        cdef const float* all_scores = s
        m = min(n, m)
        if eligible[n - 1] != n - 1:  # else all labels are eligible
            for i in range(n):
                self.s[i] = all_scores[eligible[i]]
            s = self.s
        vectors.top_positions(s, n, order, 1)
        high = s[order[0]]
        scale = 1.0 / vectors.exp_sum(s, high, 1.0, p, n)

        # how many
        q = self.q(self.level)
        if not counts:
            size = self.half(s, n, m, scale)
        else:
            wanted = n if q >= log(self.k / LEAST) else self.above(n, exp(-q) / scale)
            size = min(m, wanted)
            limit = 1.0 if wanted > m else 0.0
            vectors.top_positions(s, n, order, size)

        # which, where labels are tied at the edge
        edge = s[order[size - 1]]
        for i in range(n):
            if fabs(s[i] - edge) <= EQUAL:
                tied[group] = i
                group += 1
        while held < size and s[order[size - 1 - held]] - edge <= EQUAL:
            held += 1
        start = size - held
        for i in range(start):
            self.own[i] = p[order[i]] * scale
        if group > held:
            u = 0.0
            for i in range(group):
                u += p[tied[i]]
            for i in range(held):
                at = i + <Py_ssize_t>(uniform(self.seed, t, <uint64_t>(2 + n + i)) * <double>(group - i))
                tied[i], tied[at] = tied[at], tied[i]
                order[start + i] = tied[i]
                self.own[start + i] = u / <double>group * scale
        else:
            for i in range(start, size):
                self.own[i] = p[order[i]] * scale
            held = group = 0

        for i in range(n):
            certainty += (p[i] * scale) ** 2
        # without whom
        if counts and size > 1 and not self.full_information and q < log(self.k / LEAST):  # else a miss is impossible, as the bound needs it
            count = size - 1
            cost = self.leave_out(draw_state, alpha, size, certainty, round - self.warm_up[0])
        u = uniform(self.seed, t, 0)
        for i in range(count):
            if sums[i] <= u < sums[i + 1]:
                first = i
            if sums[i] - 1.0 <= u < sums[i + 1] - 1.0:
                second = i
        if self.uniform > 0.0 and uniform(self.seed, t, 1) < self.uniform:
            draw_uniform(n, size, self.seed, round, 2, drawn)
            shown, limit = size, 2.0
        else:
            for i in range(size):
                if i == 0 or (i - 1 != first and i - 1 != second):
                    drawn[shown] = order[i]
                    shown += 1
        chance = self.probability(drawn, shown, size, held, group, count)
        if self.uniform > 0.0:
            chance = (1.0 - self.uniform) * chance
            if shown == size:
                chance += self.uniform * exp(log_uniform(n, size))
        draw.logp_ordered = draw.logp_set = log(chance)
        draw.size, draw.top_size = shown, size

        # what an answer will say about rows whose truth can be shown
        for i in range(shown):
            inside += p[drawn[i]] * scale
        outside = max(0.0, 1.0 - inside) if shown < n else 0.0
        if self.none >= 0:
            none = exp(all_scores[self.none] - high) * scale
        draw_log[0], draw_log[1], draw_log[2], draw_log[3], draw_log[4] = self.level, counts, cost, shown, limit
        draw_log[5] = _share(outside * (1.0 - self.false_yes) + inside * self.false_no, none * (1.0 - self.false_yes))
        draw_log[6] = _share(inside * (1.0 - self.false_no) + outside * self.false_yes, none * self.false_yes)
        draw_log[7] = certainty
        draw_log[HEAD] = q
        draw_log[HEAD + 1] = count
        at = HEAD + 2
        for i in range(count):
            draw_log[at + i] = sums[i + 1]
        at += count
        draw_log[at] = held
        at += 1
        if held > 0:
            at += _write_tied(s, edge, eligible, n, order, size, self.mark, group - held, draw_log + at)
        draw.n_log = at
        for i in range(size):
            top[i] = eligible[order[i]]
        for i in range(shown):
            drawn[i] = eligible[drawn[i]]

    cdef Py_ssize_t half(self, const float* s, Py_ssize_t n, Py_ssize_t m, double scale) noexcept nogil:
        """How many of the best labels have p that sum up nearest to one half; ``order`` has them."""
        cdef Py_ssize_t i, room = min(m, 8)
        cdef double before, total
        while True:
            vectors.top_positions(s, n, self.order, room)
            total = 0.0
            for i in range(room):
                before = total
                total += self.p[self.order[i]] * scale
                if total >= 0.5:
                    return i + 1 if i == 0 or total - 0.5 < 0.5 - before else i
            if room == m:
                return m
            room = min(m, 4 * room)

    cdef Py_ssize_t above(self, Py_ssize_t n, double edge) noexcept nogil:
        """How many labels have p of at least ``edge`` (not scaled), but for rounding; at least one."""
        cdef Py_ssize_t i, count = 0
        edge *= 1.0 - 1e-6
        for i in range(n):
            count += self.p[i] >= edge
        return max(1, count)

    cdef double leave_out(self, const double* draw_state, double alpha, Py_ssize_t size, double certain, double t) noexcept nogil:
        """Fill ``sums`` with the running sums of pi (sum i is that of rank i + 1), and return what they cost at q_b = 1.

        certain, t: sum_r p_r^2 of this decision, and how many came before it; at its own coverage, draw_state has better.
        """
        cdef Py_ssize_t i, at = self.level_index(self.level)
        cdef double* own = self.own
        cdef double beta, q = 1.0, cost = 0.0, rest = max(1e-9, 1.0 - own[0])
        cdef bint usual = self.level == self.coverage
        for i in range(1, size):
            cost += min(1.0, 2.0 * own[i] / rest) * own[i]
        if usual and draw_state[1] > 0.0:
            t = draw_state[0]
            certain = draw_state[2] / t
        beta = min(MOST, SPEND * certain * sqrt(certain) / (1.0 + t / (SLOW * self.k)))
        if at >= 0:  # while more is missed than is allowed, less is left out
            beta *= min(1.0, max(0.0, 2.0 - self.recent[at] / alpha))
        if not usual:  # M is not theirs: each pays for itself
            q = min(1.0, beta * alpha / cost) if cost > 0.0 else 1.0
        elif draw_state[1] > 0.0:
            q = min(1.0, beta * alpha * (t + 1.0) / draw_state[1])
        self.sums[0] = 0.0
        for i in range(1, size):
            self.sums[i] = self.sums[i - 1] + q * min(1.0, 2.0 * own[i] / rest)
        return cost

    cdef double probability(self, const Py_ssize_t* drawn, Py_ssize_t shown, Py_ssize_t size, Py_ssize_t held, Py_ssize_t group, Py_ssize_t count) noexcept nogil:
        """The probability that exactly these positions are shown, but for uniform sets.

        The last ``held`` ranks belong to any of the ``group`` labels in ``tied``.
        """
        cdef Py_ssize_t i, a = 0, b = 0, start = size - held, missing = 0, wanted = 0, fixed, lent
        cdef double u = 0.0, upto, total = 0.0
        cdef const double* sums = self.sums
        cdef Py_ssize_t* mark = self.mark
        cdef bint fine = True
        for i in range(shown):
            mark[drawn[i]] = 1
        for i in range(start):
            missing += not mark[self.order[i]]
        for i in range(group):
            wanted += mark[self.tied[i]]
        fine = shown == start - missing + wanted and wanted <= held and (start == 0 or mark[self.order[0]])
        while fine and b < count and sums[b + 1] - 1.0 <= 0.0:
            b += 1
        while fine and u < 1.0:  # over the stretches of u in which the same ones are left out
            upto = 1.0
            if a < count:
                upto = min(upto, sums[a + 1])
            if b < count:
                upto = min(upto, sums[b + 1] - 1.0)
            fixed = lent = 0
            for i in range(2):
                if i == 0 and a < count or i == 1 and b < count and b != a:
                    if (a if i == 0 else b) + 1 >= start:
                        lent += 1
                    else:
                        # one that is shown cannot have been left out: 3 is more than can be missing
                        fixed += 1 if not mark[self.order[(a if i == 0 else b) + 1]] else 3
            if fixed == missing and lent == held - wanted:
                total += upto - u
            u = upto
            while a < count and sums[a + 1] <= u:
                a += 1
            while b < count and sums[b + 1] - 1.0 <= u:
                b += 1
        for i in range(shown):
            mark[drawn[i]] = 0
        for i in range(wanted):
            total *= <double>(wanted - i) / <double>(group - i)
        return total

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        if n_log > 0 and draw_log[1] > 0.0 and draw_log[0] == self.coverage:
            draw_state[0] += 1.0
            draw_state[1] += draw_log[2]
            draw_state[2] += draw_log[7]

    cdef void on_feedback(self, const double* draw_log, Py_ssize_t n_log, const Answer* answer) noexcept nogil:
        cdef double weight, alpha, missed, q, step, most, asked, clear = 1.0
        cdef Py_ssize_t at
        cdef double* tally
        if n_log == 0:  # somebody else's set has taught what the warm-up is there for
            self.warm_up[0] = max(0.0, self.warm_up[0] - 1.0)
            return
        if draw_log[1] == 0.0 or answer.likelihood != NULL:
            return
        alpha, missed = 1.0 - draw_log[0], 0.0 if answer.hit else 1.0
        if answer.label >= 0:  # no doubt is left
            weight = 0.0 if answer.label == self.none else 1.0
        else:
            weight = draw_log[6] if answer.hit else draw_log[5]
            clear = 1.0 - self.false_no - self.false_yes
            missed = (missed - self.false_no) / clear  # a true miss, on average
        at = self.level_index(draw_log[0])
        if at < 0:
            at = self.level_index(0.0)
            if at < 0:
                return
            self.use_level(at, draw_log[0])
        self.recent[at] += weight * (missed - self.recent[at]) / RECENT
        q, step = self.thresholds[at], self.eta * weight * clear * (missed - alpha)
        if step > 0.0 and (draw_log[4] > 0.0 or draw_log[3] == self.k):
            # a higher q would not have helped: do not wind it up. Noes to all labels that are wrong at the known
            # rate move it up and down by eta false_no / (2 alpha) or so, and need room
            most = log(self.k / LEAST) + self.eta * (1.0 + 2.0 * self.false_no / alpha)
            self.thresholds[at] = max(q, min(q + step, most))
        else:
            self.thresholds[at] = max(0.0, q + step)
        tally = self.tally + COUNTS * at
        tally[0] += weight
        tally[1] += weight * missed
        tally[2] += weight * draw_log[3]
        if draw_log[4] == 1.0:
            tally[3] += weight * missed
        if answer.label < 0 and self.none < 0 and draw_log[3] == self.k:  # beyond false_no
            tally[4] += -self.false_no / (1.0 - self.false_no) if answer.hit else 1.0
        if not self.short:
            missed = tally[1] - alpha * tally[0]
            asked = tally[0] + (tally[4] if self.false_no == 0.0 else 0.0)
            self.short = asked >= ENOUGH and (
                missed > 0.0 and missed * missed > 9.0 * tally[0] * alpha and missed <= tally[3]
                or tally[4] > alpha * asked
            )


cdef inline double first_threshold(Py_ssize_t k, double alpha) noexcept nogil:
    """Where q starts: cautious, as a low one is paid for with misses, and a high one falls soon."""
    return min(log(k / LEAST), log(k / sqrt(alpha)))


cdef inline double _share(double part, double rest) noexcept nogil:
    """part / (part + rest); nothing of nothing is 0."""
    return part / (part + rest) if part > 0.0 else 0.0


cdef Py_ssize_t _write_tied(const float* s, float edge, const Py_ssize_t* eligible, Py_ssize_t n, const Py_ssize_t* order, Py_ssize_t size, Py_ssize_t* mark, Py_ssize_t behind, double* out) noexcept nogil:
    """Write +1 and the labels behind the ranks that are tied with the last, or -1 and the others; how much it wrote."""
    cdef Py_ssize_t i, at = 1
    cdef bint inside = 2 * behind <= n - size
    out[0] = 1.0 if inside else -1.0
    for i in range(size):
        mark[order[i]] = 1
    for i in range(n):
        if not mark[i] and (fabs(s[i] - edge) <= EQUAL) == inside:
            out[at] = eligible[i]
            at += 1
    for i in range(size):
        mark[order[i]] = 0
    return at
