"""LeaveOutKernel: what RunnerUp and Cover share. Ranks are left out by one uniform, and the set's probability is exact.

Of the m best ranks 0..m-1, rank 0 always stays. One uniform u chooses which of the others are left out: with C the
running sums of their probabilities, those in whose interval of C u or u + 1 falls. Where there are further ranks
(n_ranks > m), they fill up, and no more is left out than they can replace; else the set gets smaller.

Labels with equal scores are ranked at random. Ranks fall into groups: a label belongs to the group of the best one
whose score is within ``tolerance`` of its own. Tied labels share their probability p evenly, and are put onto the ranks
of their group in a random order, from (seed, round); a group that goes on behind the last rank gets there with random
ones of its labels. (The top set is by score and position, whatever the random order is: it must not depend on the draw,
so that 1{S = top} / p(S) is 1 on average.) The labels S are then shown with probability

    sum over sets of ranks R of P(R) prod_g 1 / C(size_g, |S n g|)

where R must have as many ranks of every group g as S has labels of it. With probability ``uniform`` the set is a
uniform one.

Uniforms: number 0 is u, number 1 decides about a uniform set, which takes the next m; those from 2 + m on break ties.
"""

from libc.math cimport exp, log

from superarm.native.cpu cimport kernels
from superarm.native.randomness cimport uniform
from superarm.native.sampling cimport draw_uniform_set, logp_uniform_set

# scores that differ by no more are tied: those of labels with equal histories may differ by rounding
cdef double SCORE_TOLERANCE = 1e-5


cdef class LeaveOutKernel(RuleKernel):
    def __init__(self, k, seed, uniform):
        super().__init__(k, seed)
        self.uniform = uniform
        self.p = self.scratch_doubles("p", k)
        self.sums = self.scratch_doubles("sums", k + 1)
        self.order = self.scratch_intp("order", k + 1)
        self.ranking = self.scratch_intp("ranking", k + 1)
        self.group_of_rank = self.scratch_intp("group_of_rank", k + 1)
        self.group_size = self.scratch_intp("group_size", k + 1)
        self.group_ranks = self.scratch_intp("group_ranks", k + 1)
        self.lowest_score = self.scratch_floats("lowest_score", k + 1)
        self.highest_score = self.scratch_floats("highest_score", k + 1)
        self.group_count = self.scratch_intp("group_count", k + 1)
        self.member = self.scratch_intp("member", k + 1)

    cdef void fill_softmax(self, const DrawContext* context) noexcept nogil:
        """Fill p with the softmax of the scores, but for ``scale``; ``order[0]`` is the best position."""
        self.scale = 1.0 / kernels.exp_sum(
            context.scores, context.scores[self.order[0]], 1.0, self.p, context.n
        )

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        """Return room for what `write_log` writes; a rule adds its own numbers."""
        return 6 + 2 * n

    # ------------------------------------------------------------ ties

    cdef void break_ties(
        self, const DrawContext* context, Py_ssize_t m, Py_ssize_t n_ranks, double more_tolerance
    ) noexcept nogil:
        """Group the first ``n_ranks`` places of ``order`` (which has one more, if there are more labels), and put tied
        labels into a random order; ``m`` labels are to be shown.

        ``more_tolerance`` is what scores may differ by beyond rounding.
        """
        cdef Py_ssize_t g, i, start = 0
        cdef uint64_t draw = <uint64_t>(2 + m)
        self.m, self.n_ranks = m, n_ranks
        self.may_leave_out_two = n_ranks == m or n_ranks > m + 1
        for i in range(n_ranks):
            self.ranking[i] = self.order[i]
        self.find_groups(context.scores, context.n, <float>(SCORE_TOLERANCE + more_tolerance))
        if self.has_ties:
            for g in range(self.n_groups):
                if self.group_size[g] > 1:
                    self.order_group(context.scores, context.n, g, start, context.round, &draw)
                start += self.group_ranks[g]

    cdef void find_groups(self, const float* s, Py_ssize_t n, float tolerance) noexcept nogil:
        cdef Py_ssize_t i, g = -1, n_ranks = self.n_ranks
        cdef float score
        for i in range(n_ranks):
            score = s[self.order[i]]
            if i == 0 or score < self.lowest_score[g]:
                g += 1
                self.lowest_score[g], self.highest_score[g], self.group_ranks[g] = score - tolerance, score, 0
            self.group_of_rank[i] = g
            self.group_ranks[g] += 1
            self.group_size[g] = self.group_ranks[g]
        self.n_groups, self.has_ties = g + 1, g + 1 < n_ranks
        if n > n_ranks and s[self.order[n_ranks]] >= self.lowest_score[g]:  # it goes on behind the last rank
            self.group_size[g], self.has_ties = 0, True
            for i in range(n):
                self.group_size[g] += self.in_group(g, s[i])

    cdef Py_ssize_t group_of(self, float score) noexcept nogil:
        """Return the group that a score belongs to; -1 if it belongs to none."""
        cdef Py_ssize_t low = 0, high = self.n_groups - 1, middle
        while low < high:
            middle = (low + high) // 2
            if score < self.lowest_score[middle]:
                low = middle + 1
            else:
                high = middle
        return low if self.in_group(low, score) else -1

    cdef bint in_group(self, Py_ssize_t g, float score) noexcept nogil:
        return self.lowest_score[g] <= score and score <= self.highest_score[g]

    cdef void order_group(
        self, const float* s, Py_ssize_t n, Py_ssize_t g, Py_ssize_t start, int64_t round, uint64_t* draw
    ) noexcept nogil:
        """Put random labels of group g onto its ranks, from ``start`` on, and share their p."""
        cdef Py_ssize_t i, at, size = 0
        cdef Py_ssize_t* order = self.order + start
        cdef Py_ssize_t* member = self.member
        cdef double total = 0.0
        if self.group_size[g] > self.group_ranks[g]:
            for i in range(n):
                if self.in_group(g, s[i]):
                    member[size] = i
                    size += 1
        else:
            size = self.group_ranks[g]
            for i in range(size):
                member[i] = order[i]
        for i in range(size):
            total += self.p[member[i]]
        for i in range(size):
            self.p[member[i]] = total / size
        for i in range(self.group_ranks[g]):  # Fisher and Yates
            at = i + <Py_ssize_t>(uniform(self.seed, <uint64_t>round, draw[0]) * <double>(size - i))
            draw[0] += 1
            member[i], member[at] = member[at], member[i]
            order[i] = member[i]

    # ------------------------------------------------------------ the draw

    cdef bint draw_set(self, const DrawContext* context, Draw* draw) noexcept nogil:
        """Draw a set around the m best ranks, and fill in its probability. Return whether it is a uniform one."""
        cdef Py_ssize_t i, m = self.m, size = 0, first = -1, second = -1
        cdef double u, probability
        cdef bint is_uniform = self.uniform > 0.0 and uniform(
            self.seed, <uint64_t>context.round, 1
        ) < self.uniform
        if is_uniform:
            draw_uniform_set(context.n, m, self.seed, context.round, 2, draw.drawn)
            size = m
        else:
            u = uniform(self.seed, <uint64_t>context.round, 0)
            first = interval(u, self.sums, self.n_sums)
            if self.may_leave_out_two:
                second = interval(u + 1.0, self.sums, self.n_sums)
                second = -1 if second == first else second
            for i in range(self.n_ranks):
                if size < m and (i == 0 or (i - 1 != first and i - 1 != second)):
                    draw.drawn[size] = self.order[i]
                    size += 1
        if is_uniform or self.has_ties:
            probability = self.set_probability(context.scores, draw.drawn, size)
        else:  # it is known which ranks are missing
            probability = self.interval_probability(first, second)
            if second >= 0:
                probability += self.interval_probability(second, first)
        if self.uniform > 0.0:
            probability *= 1.0 - self.uniform
            if size == m:
                probability += self.uniform * exp(logp_uniform_set(context.n, m))
        for i in range(m):
            draw.top[i] = self.ranking[i]
        draw.size, draw.top_size = size, m
        draw.log_propensity = log(probability)
        return is_uniform

    cdef double interval_probability(self, Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        """Return the probability, over u in [0, 1), that u falls into interval ``first``, and u + 1 into ``second``.

        Of either, -1 is none.
        """
        cdef const double* sums = self.sums
        cdef double total = sums[self.n_sums], high
        # below this u, two are left out
        cdef double limit = max(0.0, total - 1.0) if self.may_leave_out_two else 0.0
        if first < 0:
            return max(0.0, 1.0 - total)
        if second < 0:
            return max(0.0, min(1.0, sums[first + 1]) - max(limit, sums[first]))
        high = min(min(sums[first + 1], sums[second + 1] - 1.0), limit)
        return max(0.0, high - max(sums[first], sums[second] - 1.0))

    cdef double set_probability(
        self, const float* s, const Py_ssize_t* drawn, Py_ssize_t size
    ) noexcept nogil:
        """Return the probability that these positions are shown, but for uniform sets."""
        cdef double of_groups = self.count_groups(s, drawn, size)
        return self.length_of_matches() * of_groups if of_groups > 0.0 else 0.0

    cdef double count_groups(self, const float* s, const Py_ssize_t* drawn, Py_ssize_t size) noexcept nogil:
        """Fill ``group_count`` with how many of every group a set has. Return the probability of it, given these counts;
        0 if it has a label of no group."""
        cdef Py_ssize_t* count = self.group_count
        cdef Py_ssize_t g, i
        cdef double probability = 1.0
        for g in range(self.n_groups):
            count[g] = 0
        for i in range(size):
            g = self.group_of(s[drawn[i]])
            if g < 0:
                return 0.0
            count[g] += 1
        for g in range(self.n_groups):
            for i in range(count[g]):
                probability *= <double>(count[g] - i) / <double>(self.group_size[g] - i)
        return probability

    cdef double length_of_matches(self) noexcept nogil:
        """Return the length of all stretches of u in which the ranks that stay have as many of every group as
        ``group_count`` says."""
        cdef const double* sums = self.sums
        cdef const Py_ssize_t* group = self.group_of_rank
        cdef Py_ssize_t* count = self.group_count  # less those of the ranks that stay
        cdef Py_ssize_t g, i, sign, left_out, m = self.m, n_sums = self.n_sums
        cdef Py_ssize_t a = 0, b = n_sums, unequal = 0
        cdef double u = 0.0, end, total = 0.0
        for g in range(self.n_groups):
            unequal += count[g] != 0
        for i in range(m):
            unequal += _shift(count, group[i], -1)
        while a < n_sums and sums[a + 1] <= 0.0:
            a += 1
        if self.may_leave_out_two:  # u + 1 counts, too
            b = a
            while b < n_sums and sums[b + 1] <= 1.0:
                b += 1
        while u < 1.0:
            end = 1.0
            if a < n_sums:
                end = min(end, sums[a + 1])
            if b < n_sums:
                end = min(end, sums[b + 1] - 1.0)
            for sign in range(1, -2, -2):  # leave ranks out and fill up; then take it back
                left_out = 0
                if a < n_sums:
                    unequal += _shift(count, group[a + 1], sign)
                    left_out += 1
                if b < n_sums and b != a:
                    unequal += _shift(count, group[b + 1], sign)
                    left_out += 1
                for i in range(m, min(self.n_ranks, m + left_out)):
                    unequal += _shift(count, group[i], -sign)
                if sign == 1 and unequal == 0:
                    total += end - u
            u = end
            while a < n_sums and sums[a + 1] <= u:
                a += 1
            while b < n_sums and sums[b + 1] - 1.0 <= u:
                b += 1
        return total

    # ------------------------------------------------------------ records

    cdef Py_ssize_t write_log(
        self, const DrawContext* context, double* draw_log, Py_ssize_t at
    ) noexcept nogil:
        """Write down what explore/leave_out.py needs, from ``draw_log[at]`` on. Return where it ends.

        The number of sums, and the sums; of ranks that fill up, and their positions; of groups (0: no ties), and the
        ranks of each. Then +1 and the positions behind the ranks that are tied with the last one, or if
        they are fewer, -1 and the others.
        """
        cdef Py_ssize_t i, behind, m = self.m, last = self.n_groups - 1
        cdef const float* s = context.scores
        cdef bint inside
        draw_log[at] = self.n_sums
        for i in range(self.n_sums):
            draw_log[at + 1 + i] = self.sums[i + 1]
        at += 1 + self.n_sums
        draw_log[at] = self.n_ranks - m
        for i in range(m, self.n_ranks):
            draw_log[at + 1 + i - m] = self.ranking[i]
        at += 1 + self.n_ranks - m
        draw_log[at] = self.n_groups if self.has_ties else 0
        at += 1
        if not self.has_ties:
            return at
        for i in range(self.n_groups):
            draw_log[at + i] = self.group_ranks[i]
        at += self.n_groups
        behind = self.group_size[last] - self.group_ranks[last]
        inside = 2 * behind <= context.n - self.n_ranks
        draw_log[at] = 1.0 if inside else -1.0
        at += 1
        for i in range(context.n):
            self.member[i] = 0
        for i in range(self.n_ranks):
            self.member[self.ranking[i]] = 1
        for i in range(context.n):
            if not self.member[i] and self.in_group(last, s[i]) == inside:
                draw_log[at] = i
                at += 1
        return at


cdef inline Py_ssize_t _shift(Py_ssize_t* count, Py_ssize_t g, Py_ssize_t change) noexcept nogil:
    """Change count[g]. Return +1 if it was 0 and is not any more, -1 if it has become 0."""
    cdef Py_ssize_t before = count[g] != 0
    count[g] += change
    return (count[g] != 0) - before
