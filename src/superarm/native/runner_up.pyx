"""RunnerUp in compiled code: explore/runner_up.py has its equations.

Its draw_log has a `LogHead`, then what leave_out.pyx writes; it is empty if everything is shown.
"""

from libc.math cimport exp, floor, log, sqrt
from libc.stdint cimport uint64_t

from superarm.native.cpu cimport kernels
from superarm.native.leave_out cimport LeaveOutKernel, interval
from superarm.native.randomness cimport uniform
from superarm.native.rule cimport RuleKernel
from superarm.native.sampling cimport draw_uniform_set
from superarm.native.types cimport Answer, Draw, DrawContext

cdef double MAX_PENDING = 300.0

cdef struct BudgetState:  # its draw_state
    double rounds  # t
    double cost  # M: what exploring without a budget would have cost
    double pending  # decisions that wait for an answer, at most MAX_PENDING; each answer halves them

cdef struct LogHead:
    double cost  # what the round adds to M

cdef Py_ssize_t N_LOG_HEAD = sizeof(LogHead) // sizeof(double)


cdef class RunnerUpKernel(LeaveOutKernel):
    cdef readonly double explore, forget
    cdef double* answers  # how many have come; moved by on_feedback alone
    cdef double exponent  # w
    cdef double* b

    def __init__(self, k, seed, explore, uniform, forget):
        super().__init__(k, seed, uniform)
        self.explore, self.forget = explore, forget
        self.exponent = 0.5 - 0.4 * self.explore
        self.n_draw_state = sizeof(BudgetState) // sizeof(double)
        self.draw_state = self.doubles("draw_state", self.n_draw_state)
        self.answers = self.doubles("answers", 1)
        self.b = self.scratch_doubles("b", k)

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return 0 if n <= m else N_LOG_HEAD + LeaveOutKernel.log_size(self, n, m)

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        cdef Py_ssize_t n = context.n, m = context.m, n_ranks = min(n, m + 2) if m > 1 else 1
        cdef double more_tolerance = 0.0, pending = (<const BudgetState*>context.draw_state).pending
        if n == m:
            RuleKernel.choose(self, context, draw)
            return
        if self.answers[0] > 0.0 and pending > 0.0:
            more_tolerance = log(1.0 + pending / self.answers[0])
        self.best_positions(context, self.order, min(n, n_ranks + 1))
        self.fill_softmax(context)
        self.break_ties(context, m, n_ranks, more_tolerance)
        (<LogHead*>draw.draw_log).cost = self.fill_sums(context)
        draw.n_log = self.write_log(context, draw.draw_log, N_LOG_HEAD)
        if m == 1:
            self.draw_label(context, draw)
        else:
            self.draw_set(context, draw)

    cdef double fill_sums(self, const DrawContext* context) noexcept nogil:
        """Fill ``sums`` with the running sums of pi, and return what they would have cost at q = 1.

        Sum i belongs to rank i; at m = 1, to position i - 1, shown in place of the top one.
        Without ties, log(p_r / p_1) is the difference of their scores.
        """
        cdef Py_ssize_t i, n = context.n, m = context.m, best = self.order[0]
        cdef const float* s = context.scores
        cdef double* p = self.p
        cdef double* sums = self.sums
        cdef const BudgetState* budget = <const BudgetState*>context.draw_state
        cdef double keep = 1.0 - self.forget, t = budget.rounds * keep, M = budget.cost * keep
        cdef double q = 1.0, b, p_r, p_1 = p[best] * self.scale, p_next, rest, cost = 0.0
        if self.explore < 1.0 and M > 0.0:
            q = min(1.0, (0.07 * sqrt(<double>m) + self.explore / (1.0 - self.explore)) * sqrt(n * t) / M)
        sums[0], self.n_sums = 0.0, n if m == 1 else m - 1
        if m == 1:
            if not self.has_ties:
                kernels.exp_sum(s, s[best], <float>(1.0 + self.exponent), self.b, n)
            for i in range(n):
                p_r = p[i] * self.scale
                if self.has_ties:
                    b = p_r * exp(self.exponent * log(p_r / p_1)) if p_r > 0.0 else 0.0
                else:
                    b = self.b[i] * self.scale
                cost += b * (p_1 - p_r)
                sums[i + 1] = sums[i] + q * b
            return cost
        rest, p_next = max(1e-9, 1.0 - p_1), p[self.order[m]] * self.scale
        for i in range(1, m):
            p_r = p[self.order[i]] * self.scale
            b = log(max(p_r, 1e-30) / p_1) if self.has_ties else <double>(s[self.order[i]] - s[best])
            b = min(1.0, 2.0 * p_r / rest) * exp(self.exponent * b)
            cost += b * (p_r - p_next)
            sums[i] = sums[i - 1] + q * b
        return cost

    cdef void draw_label(self, const DrawContext* context, Draw* draw) noexcept nogil:
        """Draw the label to show at m = 1: the one in whose interval u falls, or the top one; now and then a uniform one."""
        cdef Py_ssize_t n = context.n, shown = 0
        cdef double u = uniform(self.seed, <uint64_t>context.round, 0), probability
        draw.top[0] = self.ranking[0]
        if self.uniform > 0.0 and uniform(self.seed, <uint64_t>context.round, 1) < self.uniform:
            draw_uniform_set(n, 1, self.seed, context.round, 2, &shown)
        else:
            shown = interval(u, self.sums, n)
            shown = self.order[0] if shown < 0 else shown
        probability = self.sums[shown + 1] - self.sums[shown]
        if self.in_group(0, context.scores[shown]):
            probability += max(0.0, 1.0 - self.sums[n]) / <double>self.group_size[0]
        probability = (1.0 - self.uniform) * probability + self.uniform / n
        draw.drawn[0], draw.log_propensity = shown, log(probability)

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        cdef BudgetState* budget = <BudgetState*>draw_state
        if n_log > 0:  # else everything was shown
            budget.rounds = budget.rounds * (1.0 - self.forget) + 1.0
            budget.cost = budget.cost * (1.0 - self.forget) + (<const LogHead*>draw_log).cost
        budget.pending = min(MAX_PENDING, budget.pending + 1.0)

    cdef void on_feedback(
        self, const double* draw_log, Py_ssize_t n_log, const Answer* answer
    ) noexcept nogil:
        cdef BudgetState* budget = <BudgetState*>self.draw_state
        budget.pending = floor(budget.pending * 0.5)
        self.answers[0] += 1.0
