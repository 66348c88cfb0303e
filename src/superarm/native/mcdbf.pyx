"""MC-DBF: the step. (The equations: superarm/learners/mcdbf.py.)

The estimate e^ takes one value on each of the four groups S n Y^, S - Y^, Y^ - S and the rest.
"""

from libc.math cimport exp, log, rint, sqrt
from libc.stdint cimport int64_t

from superarm.native.arrays cimport double_data
from superarm.native.core cimport LinearCore
from superarm.native.cpu cimport kernels
from superarm.native.ranking cimport contains, position
from superarm.native.rule cimport RuleKernel
from superarm.native.sampling cimport log_dilute_order
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round

import numpy as np

cdef int64_t CENTRE_INTERVAL = 65536  # updates after which the mean of all labels' weights is subtracted
cdef double FIRST_RHO_WEIGHT = 20.0  # of the rho at the start, in answers
cdef double RHO_MEMORY = 0.999  # what an answer leaves of the weight of earlier ones
# the values that rho, the belief P(y in Y^), can take in the minimum-variance estimate; `rho_index` finds the
# nearest one
cdef enum:
    RHO_POINTS = 33
cdef double RHO_START = -3.0, RHO_STEP = 0.25  # of log(rho / (1 - rho))
RHO_GRID = 1.0 / (1.0 + np.exp(-(RHO_START + RHO_STEP * np.arange(RHO_POINTS))))


cdef struct Estimate:  # e^ on S n Y^, S - Y^, Y^ - S, and the rest
    double both
    double only_drawn
    double only_top
    double rest


cdef struct Table:  # of sets of m out of n labels that were drawn with this gamma
    const double* values  # e^ for [rho, j, f, group]; for "ordered" without the 1 / (Z tau1) part
    bint has_rho
    Py_ssize_t n
    Py_ssize_t m
    double gamma
    double log_tau1


cdef struct Belief:  # rho = P(y in Y^), by least squares
    double numerator
    double denominator


cdef inline int rho_index(double rho) noexcept nogil:
    """Return the number of the value on RHO_GRID that is nearest to ``rho``."""
    if rho > 1e-9:
        rho = min(rho, 1.0 - 1e-9)
    else:  # NaN too
        rho = 1e-9
    return <int>min(max(rint((log(rho / (1.0 - rho)) - RHO_START) / RHO_STEP), 0.0), RHO_POINTS - 1.0)


cdef class MCDBFCore(LinearCore):
    """The paper's algorithm for one bit about a set.

    Args:
        gamma: the share of exploration in the draws.
        estimate: ``"ordered"``, ``"set"`` or ``"minimum-variance"``.
        gate: whether steps are made only where the hinge loss is positive.
        margin: the margin of that loss; 0 to follow the noise of the estimates.
        rho: P(y in top set) at the start.
        learn_rho: whether to learn it.
        estimate_table: called with (n, m, gamma), returns an EstimateTable (theory/label_estimates.py).
    """

    cdef readonly double gamma
    cdef readonly str estimate
    cdef object estimate_table
    cdef readonly bint ordered, gate, learn_rho
    cdef readonly double margin
    cdef Belief* rho
    cdef double* squares  # the sum of |e^|^2
    cdef double new_squares  # |e^|^2 of the step at hand
    cdef int64_t* updates
    cdef Py_ssize_t* own_top  # the learner's own top set, where another system chose the set
    cdef object table_values  # the array behind the table
    cdef Table table  # for the sets of the last step

    def __init__(
        self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *,
        double gamma, str estimate, bint gate, double margin, double rho, bint learn_rho,
        estimate_table,
    ):
        LinearCore.__init__(self, k, scaling, kernel)
        self.gamma, self.estimate = gamma, estimate
        self.ordered = estimate == "ordered"
        self.gate, self.margin, self.learn_rho = gate, margin, learn_rho
        self.estimate_table = estimate_table
        self.rho = <Belief*>self.doubles("rho", 2)
        self.rho.numerator, self.rho.denominator = FIRST_RHO_WEIGHT * rho, FIRST_RHO_WEIGHT
        self.squares = self.doubles("squares", 1)
        self.updates = self.integers("updates", 1)
        self.own_top = self.scratch_intp("own_top", k)

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        self.fill_table(n, min(n, m), self.gamma)

    cdef int fill_table(self, Py_ssize_t n, Py_ssize_t m, double gamma) except -1:
        """Take the table of sets of m out of n labels that were drawn with this gamma."""
        exact = self.estimate_table(n, m, gamma)
        self.table_values = np.ascontiguousarray(exact.values, np.float64)
        self.table.values, self.table.has_rho = double_data(self.table_values), len(self.table_values) > 1
        self.table.n, self.table.m, self.table.gamma, self.table.log_tau1 = n, m, gamma, exact.log_tau1
        return 0

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        """Not for the plain step: with every label eligible it follows from the sets alone."""
        return self.gate or round.given or round.n < self.k

    cdef Estimate estimated(self, const Round* round, const Answer* answer, Py_ssize_t common) noexcept nogil:
        """Return what the answer says, where ``common`` labels of the top set were shown."""
        cdef Estimate e
        cdef const Table* table = &self.table
        cdef const double* value
        cdef double weight = 0.0, gamma = round.draw_log[0] if round.n_log > 0 else self.gamma
        if answer.label >= 0:  # the label itself is added later
            e.both = e.only_drawn = e.only_top = e.rest = 0.0
            return e
        if round.n != table.n or round.m != table.m or gamma != table.gamma:
            with gil:
                self.fill_table(round.n, round.m, gamma)
        value = table.values
        if table.has_rho:
            value += rho_index(self.rho.numerator / self.rho.denominator) * (table.m + 1) * 8
        value += (2 * common + (1 if answer.hit else 0)) * 4
        if self.ordered and answer.hit:
            weight = exp(-log_dilute_order(round.drawn, round.top, round.m, round.n, gamma) - table.log_tau1)
        e.both, e.only_drawn = value[0] + weight, value[1] + weight
        e.only_top, e.rest = value[2], value[3]
        return e

    cdef Py_ssize_t step_touched(
        self, const Round* round, const Answer* answer, const Estimate* e, Py_ssize_t common
    ) noexcept nogil:
        """Set c to the step e^ - 1_{Y^} / m, less ``rest`` everywhere: a vector added to every row of W changes no ranking.
        So only the labels of Y^ and S move; return how many."""
        cdef Py_ssize_t i, m = round.top_size, n = m
        for i in range(m):
            self.touched[i] = round.top[i]
            self.c[i] = e.both if common == m or contains(round.drawn, m, round.top[i]) else e.only_top
            self.c[i] = self.c[i] - e.rest - 1.0 / m
        if common < m and e.only_drawn != e.rest:
            for i in range(m):
                if not contains(round.top, m, round.drawn[i]):
                    self.touched[n], self.c[n] = round.drawn[i], e.only_drawn - e.rest
                    n += 1
        if answer.label >= 0:
            self.touched[n], self.c[n] = answer.label, 1.0
            n += 1
        return n

    cdef Py_ssize_t step_eligible(
        self, const Round* round, const Answer* answer, const Estimate* e
    ) noexcept nogil:
        """Set c to the step on every eligible label, and return how many these are: with the gate, among a part of the
        labels, or for the set of another system (e^ then follows its top set, the rest of the step the learner's own)."""
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef Py_ssize_t i, m = round.top_size, n = round.n
        cdef double mean_top = 0.0, total = 1.0, margin
        cdef double* c = self.c
        if round.given:
            for i in range(n):
                self.eligible_scores[i] = s[eligible[i]]
            kernels.top_positions(self.eligible_scores, n, self.own_top, m)
        for i in range(m):
            self.own_top[i] = eligible[self.own_top[i]] if round.given else round.top[i]
            mean_top += <double>s[self.own_top[i]] / m
        for i in range(n):
            c[i] = e.rest
        for i in range(m):
            c[position(eligible, n, round.top[i])] = e.both if contains(round.drawn, m, round.top[i]) else e.only_top
            if not contains(round.top, m, round.drawn[i]):
                c[position(eligible, n, round.drawn[i])] = e.only_drawn
        if answer.label >= 0:
            c[position(eligible, n, answer.label)] = 1.0
        if self.gate:
            margin = self.margin if self.margin > 0.0 else 1.0 + sqrt(self.squares[0]) / 5.0
            total = 0.0
            for i in range(n):
                self.new_squares += c[i] * c[i]
                if margin - <double>s[eligible[i]] + mean_top > 0.0:
                    total += c[i]
                else:
                    c[i] = 0.0
        for i in range(m):
            c[position(eligible, n, self.own_top[i])] -= total / m
        return n

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t i, n = round.n, m = round.top_size, common = 0, moved
        cdef Estimate e
        cdef double outside, slope
        cdef const Py_ssize_t* labels = self.touched
        if answer.label < 0 and n == m:  # everything was shown: the bit says nothing
            return True
        for i in range(m):
            common += contains(round.drawn, m, round.top[i])  # |S n Y^|
        e = self.estimated(round, answer, common)
        self.new_squares = 0.0
        if self.reads_scores(round):
            moved, labels = self.step_eligible(round, answer, &e), round.eligible
        else:
            moved = self.step_touched(round, answer, &e, common)
        if not self.weights.add_outer(labels, self.c, moved, round.x):
            return False
        self.updates[0] += 1
        self.squares[0] += self.new_squares
        if e.rest != 0.0 and self.updates[0] % CENTRE_INTERVAL == 0:
            with gil:
                self.weights.subtract_mean()
        if self.learn_rho and answer.label < 0 and n > m:
            outside = <double>(m - common) / (n - m)
            slope = <double>common / m - outside
            self.rho.numerator = RHO_MEMORY * self.rho.numerator + slope * (
                (1.0 if answer.hit else 0.0) - outside
            )
            self.rho.denominator = RHO_MEMORY * self.rho.denominator + slope * slope
        return True
