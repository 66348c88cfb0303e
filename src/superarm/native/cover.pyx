"""Cover in compiled code: explore/cover.py has its equations.

Its draw_log has a `LogHead`, the numbers that move the rule; then q, and what leave_out.pyx writes.
"""

from libc.math cimport exp, log, sqrt

cimport cython
cimport numpy as np

from superarm.native.arrays cimport double_data
from superarm.native.leave_out cimport LeaveOutKernel
from superarm.native.types cimport Answer, Draw, DrawContext

cdef double MIN_PROBABILITY = 1e-4  # over k: the least p that is told from 0
cdef double MIN_ANSWERS = 1000.0  # answers from which a broken promise is reported
cdef double MAX_SPENT = 0.95  # the largest share of alpha that leaving out may cost
cdef double SPENT_AT_START = 3.0  # that share, were all certain at the start
cdef double HALVING_TIME = 500.0  # decisions a label until it has halved
cdef double SMOOTHING = 500.0  # answers over which misses are averaged
cdef double MAX_EXPONENT = 600.0  # of a weight that stays finite

cpdef enum:
    MAX_TARGETS = 16  # coverages that a kernel keeps a threshold for

cdef struct BudgetState:  # its draw_state: of decisions that count, at the rule's own coverage
    double decisions  # t
    double cost  # M: what leaving out at q_b = 1 would have cost
    double certainty  # C: the sum of sum_r p_r^2

cdef struct LogHead:  # what moves the rule; its record has the same names
    double coverage  # that was asked for
    double counts  # whether the promise counts; 0 in the warm-up
    double cost  # what it adds to M
    double size  # labels shown
    double cut_by  # 1: set_size made the set smaller; 2: a uniform set
    double weight_of_no  # how much a no, and a yes, is about rows whose truth can be shown
    double weight_of_yes
    double certainty  # sum_r p_r^2

cdef struct Tally:  # what is counted for each target
    double answers
    double misses
    double shown  # labels
    double capped_misses  # of sets that set_size made smaller
    double noes_to_all  # noes to sets of all labels

cdef Py_ssize_t N_LOG_HEAD = sizeof(LogHead) // sizeof(double), N_TALLY = sizeof(Tally) // sizeof(double)

cpdef enum:  # why a promise cannot be kept; 0: it can
    WRONG_ANSWERS = 1
    SET_SIZE_TOO_SMALL = 2

LOG_KEYS = tuple(LogHead(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))  # the names of its numbers, in their order


@cython.final
cdef class CoverKernel(LeaveOutKernel):
    cdef readonly double coverage, eta, false_no, false_yes
    # the index of a label that is never shown and may be the truth; -1: there is none
    cdef readonly Py_ssize_t none_label
    # every answer names the label: whatever is shown teaches, so nothing is left out
    cdef readonly bint full_information
    cdef double* warm_up  # rounds; part of the state, so that labels added later do not make it longer
    cdef double* targets  # coverages that are in use; 0 where there is room
    cdef double* thresholds  # q of each target
    cdef double* recent_misses  # a running mean for each target
    cdef Tally* tally  # the counts of each target
    cdef readonly bint has_broken_promise
    cdef public bint warned  # about the broken promise

    def __init__(
        self, k, seed, *, coverage, warm_up, eta, uniform, false_no, false_yes, full_information=False,
        none_label=-1,
    ):
        super().__init__(k, seed, uniform)
        self.coverage, self.eta, self.false_no, self.false_yes = coverage, eta, false_no, false_yes
        self.none_label, self.full_information = none_label, full_information
        self.n_draw_state = sizeof(BudgetState) // sizeof(double)
        self.draw_state = self.doubles("draw_state", self.n_draw_state)
        self.warm_up = self.doubles("warm_up", 1, warm_up)
        self.targets = self.doubles("targets", MAX_TARGETS)
        self.thresholds = self.doubles("thresholds", MAX_TARGETS)
        self.recent_misses = self.doubles("recent_misses", MAX_TARGETS)
        self.tally = <Tally*>self.doubles("tally", (MAX_TARGETS, N_TALLY))
        self.add_target(0, coverage)

    # ------------------------------------------------------------ targets and their thresholds

    def has_room(self, double target):
        """Return whether a threshold is kept for this coverage, or can be."""
        return self.target_index(target) >= 0 or self.target_index(0.0) >= 0

    cpdef double threshold(self, double target) noexcept nogil:
        """Return q of this coverage."""
        cdef Py_ssize_t at = self.target_index(target)
        return self.first_threshold(target) if at < 0 else self.thresholds[at]

    def edge(self, double target):
        """Return the least p that is shown at this coverage."""
        q = self.threshold(target)
        return exp(-q) if q < self.max_threshold() else 0.0

    def tally_at(self, double target):
        """Return what was counted at this coverage, by the names of `Tally`."""
        at = self.target_index(target)
        return self.tally[at] if at >= 0 else Tally(0.0, 0.0, 0.0, 0.0, 0.0)

    cpdef int broken_promise(self, double target) noexcept nogil:
        """Return why this coverage cannot be kept: WRONG_ANSWERS, SET_SIZE_TOO_SMALL, or 0 if it can."""
        cdef Py_ssize_t at = self.target_index(target)
        if at < 0:
            return 0
        cdef const Tally* tally = self.tally + at
        cdef double alpha = 1.0 - target, excess = tally.misses - alpha * tally.answers
        # with false_no, noes to all labels are among the answers
        cdef double asked = tally.answers + (tally.noes_to_all if self.false_no == 0.0 else 0.0)
        if asked < MIN_ANSWERS:
            return 0
        if tally.noes_to_all > alpha * asked:
            return WRONG_ANSWERS
        if excess > 3.0 * sqrt(tally.answers * alpha) and excess <= tally.capped_misses:
            return SET_SIZE_TOO_SMALL
        return 0

    def calibrate(self, double threshold, dict counts, double round):
        """Take the threshold of its own coverage from elsewhere, and these counts alone; the warm-up ends at ``round``."""
        cdef Py_ssize_t at = self.target_index(self.coverage)
        self.thresholds[at] = min(self.max_threshold(), threshold)
        self.recent_misses[at] = 1.0 - self.coverage
        self.tally[at] = counts
        self.warm_up[0] = min(self.warm_up[0], round)

    cdef double max_threshold(self) noexcept nogil:
        """Return q from which on everything is shown."""
        return log(self.k / MIN_PROBABILITY)

    cdef double first_threshold(self, double target) noexcept nogil:
        """Return where q starts: cautious, as a low one is paid for with misses, and a high one falls soon."""
        return min(self.max_threshold(), log(self.k / sqrt(1.0 - target)))

    cdef void add_target(self, Py_ssize_t at, double target) noexcept nogil:
        self.targets[at], self.recent_misses[at] = target, 1.0 - target
        self.thresholds[at] = self.first_threshold(target)

    cdef Py_ssize_t target_index(self, double target) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(MAX_TARGETS):
            if self.targets[i] == target:
                return i
        return -1

    # ------------------------------------------------------------ the draw

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return N_LOG_HEAD + 1 + LeaveOutKernel.log_size(self, n, m)

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, n = context.n, size, n_above
        cdef double target = context.coverage if context.coverage > 0.0 else self.coverage
        cdef double q = self.threshold(target), cost = 0.0, cut_by = 0.0, certainty = 0.0
        cdef double inside = 0.0, outside, ineligible
        cdef LogHead* log_head = <LogHead*>draw.draw_log
        cdef bint counts = context.round >= self.warm_up[0]
        self.best_positions(context, self.order, 1)
        self.fill_softmax(context)
        ineligible = self.weigh_ineligible(context)
        if counts:
            n_above = n if q >= self.max_threshold() else self.count_above(n, exp(-q) / self.scale)
            size = min(context.m, n_above)
            cut_by = 1.0 if n_above > size else 0.0
        else:
            size = self.half_size(context)
        self.best_positions(context, self.order, min(n, size + 1))
        self.break_ties(context, size, size, 0.0)
        for i in range(n):
            certainty += (self.p[i] * self.scale) ** 2
        self.n_sums, self.sums[0] = 0, 0.0
        # else a miss is impossible, as the bound needs it
        if counts and not self.full_information and q < self.max_threshold():
            cost = self.fill_sums(context, target, size, certainty)
        if self.draw_set(context, draw):
            cut_by = 2.0
        # what an answer will say about rows whose truth can be shown
        for i in range(draw.size):
            inside += self.p[draw.drawn[i]] * self.scale
        outside = max(0.0, 1.0 - inside) if draw.size < n else 0.0
        log_head.coverage, log_head.counts = target, counts
        log_head.cost = cost
        log_head.size, log_head.cut_by, log_head.certainty = draw.size, cut_by, certainty
        log_head.weight_of_no = _share(
            outside * (1.0 - self.false_yes) + inside * self.false_no, ineligible * (1.0 - self.false_yes)
        )
        log_head.weight_of_yes = _share(
            inside * (1.0 - self.false_no) + outside * self.false_yes, ineligible * self.false_yes
        )
        draw.draw_log[N_LOG_HEAD] = q
        draw.n_log = self.write_log(context, draw.draw_log, N_LOG_HEAD + 1)

    cdef double weigh_ineligible(self, const DrawContext* context) noexcept nogil:
        """Return p of the labels that cannot be shown, on the scale on which p of the eligible ones sum up to 1."""
        cdef Py_ssize_t r, i = 0
        cdef double total = 0.0
        cdef float best = context.scores[self.order[0]]
        if context.n == self.k:
            return 0.0
        for r in range(self.k):
            if i < context.n and context.eligible[i] == r:
                i += 1
            else:
                total += exp(min(MAX_EXPONENT, context.all_scores[r] - best))
        return total * self.scale

    cdef Py_ssize_t half_size(self, const DrawContext* context) noexcept nogil:
        """Return how many of the best labels have p that sum up nearest to one half, at most m."""
        cdef Py_ssize_t i, ranked = min(context.m, 8)
        cdef double before, total
        while True:
            self.best_positions(context, self.order, ranked)
            total = 0.0
            for i in range(ranked):
                before = total
                total += self.p[self.order[i]] * self.scale
                if total >= 0.5:
                    return i + 1 if i == 0 or total - 0.5 < 0.5 - before else i
            if ranked == context.m:
                return context.m
            ranked = min(context.m, 4 * ranked)

    cdef Py_ssize_t count_above(self, Py_ssize_t n, double edge) noexcept nogil:
        """Return how many labels have p of at least ``edge`` (not scaled), but for rounding; at least one."""
        cdef Py_ssize_t i, count = 0
        edge *= 1.0 - 1e-6
        for i in range(n):
            count += self.p[i] >= edge
        return max(1, count)

    cdef double fill_sums(
        self, const DrawContext* context, double target, Py_ssize_t size, double certainty
    ) noexcept nogil:
        """Fill ``sums`` with the running sums of pi (sum i is that of rank i), and return what they cost at q_b = 1.

        ``certainty``, sum_r p_r^2 of this decision, counts at another coverage than the rule's own, of which
        draw_state has the sum.
        """
        cdef Py_ssize_t i, at = self.target_index(target)
        cdef const BudgetState* budget = <const BudgetState*>context.draw_state
        cdef double t = context.round - self.warm_up[0], alpha = 1.0 - target, beta, p_r, q = 1.0, cost = 0.0
        cdef double rest = max(1e-9, 1.0 - self.p[self.order[0]] * self.scale)
        cdef bint is_own = target == self.coverage
        for i in range(1, size):
            p_r = self.p[self.order[i]] * self.scale
            cost += min(1.0, 2.0 * p_r / rest) * p_r
        if is_own and budget.cost > 0.0:
            t = budget.decisions
            certainty = budget.certainty / t
        beta = SPENT_AT_START * certainty * sqrt(certainty) / (1.0 + t / (HALVING_TIME * self.k))
        beta = min(MAX_SPENT, beta)
        if at >= 0:  # while more is missed than is allowed, less is left out
            beta *= min(1.0, max(0.0, 2.0 - self.recent_misses[at] / alpha))
        if not is_own:  # M is not theirs: each pays for itself
            q = min(1.0, beta * alpha / cost) if cost > 0.0 else 1.0
        elif budget.cost > 0.0:
            q = min(1.0, beta * alpha * (t + 1.0) / budget.cost)
        self.n_sums = size - 1
        for i in range(1, size):
            self.sums[i] = self.sums[i - 1] + q * min(1.0, 2.0 * self.p[self.order[i]] * self.scale / rest)
        return cost

    # ------------------------------------------------------------ what moves it

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        cdef const LogHead* decision = <const LogHead*>draw_log
        cdef BudgetState* budget = <BudgetState*>draw_state
        if n_log >= N_LOG_HEAD and decision.counts > 0.0 and decision.coverage == self.coverage:
            budget.decisions += 1.0
            budget.cost += decision.cost
            budget.certainty += decision.certainty

    def count_answer(self, np.ndarray draw_log, bint hit, Py_ssize_t label):
        """Move the threshold and the counts by an answer that the learner does not learn; ``label`` is -1 if unknown."""
        cdef Answer answer
        answer.hit, answer.label, answer.likelihood = hit, label, NULL
        self.on_feedback(double_data(draw_log), len(draw_log), &answer)

    cdef void on_feedback(
        self, const double* draw_log, Py_ssize_t n_log, const Answer* answer
    ) noexcept nogil:
        cdef double weight, alpha, missed, q, step, most, clear = 1.0
        cdef Py_ssize_t at
        cdef const LogHead* decision = <const LogHead*>draw_log
        cdef Tally* tally
        if n_log < N_LOG_HEAD:  # a set that another system chose has taught what the warm-up is there for
            self.warm_up[0] = max(0.0, self.warm_up[0] - 1.0)
            return
        if decision.counts == 0.0 or answer.likelihood != NULL:
            return
        alpha, missed = 1.0 - decision.coverage, 0.0 if answer.hit else 1.0
        if answer.label >= 0:  # no doubt is left
            weight = 0.0 if answer.label == self.none_label else 1.0
        else:
            weight = decision.weight_of_yes if answer.hit else decision.weight_of_no
            clear = 1.0 - self.false_no - self.false_yes
            missed = (missed - self.false_no) / clear  # a true miss, on average
        at = self.target_index(decision.coverage)
        if at < 0:
            at = self.target_index(0.0)
            if at < 0:
                return
            self.add_target(at, decision.coverage)
        self.recent_misses[at] += weight * (missed - self.recent_misses[at]) / SMOOTHING
        q, step = self.thresholds[at], self.eta * weight * clear * (missed - alpha)
        if step > 0.0 and (decision.cut_by > 0.0 or decision.size == self.k):
            # a higher q would not have helped: do not wind it up. Noes to all labels that are wrong at the known
            # rate move it up and down by eta false_no / (2 alpha) or so, and need room
            most = self.max_threshold() + self.eta * (1.0 + 2.0 * self.false_no / alpha)
            self.thresholds[at] = max(q, min(q + step, most))
        else:
            self.thresholds[at] = max(0.0, q + step)
        tally = self.tally + at
        tally.answers += weight
        tally.misses += weight * missed
        tally.shown += weight * decision.size
        if decision.cut_by == 1.0:
            tally.capped_misses += weight * missed
        if answer.label < 0 and self.none_label < 0 and decision.size == self.k:  # beyond false_no
            tally.noes_to_all += -self.false_no / (1.0 - self.false_no) if answer.hit else 1.0
        self.has_broken_promise = self.has_broken_promise or self.broken_promise(decision.coverage) != 0


cdef inline double _share(double part, double rest) noexcept nogil:
    """Return part / (part + rest); nothing of nothing is 0."""
    return part / (part + rest) if part > 0.0 else 0.0
