"""Learners with nothing beside W. (The papers: superarm/learners.)

Perceptron, Softmax, MC-SLP and PA are told every label, Banditron and EPABF one bit about one label.
"""

from libc.math cimport INFINITY, exp, fabs

from superarm.native.core cimport LinearCore
from superarm.native.linear cimport squared_norm_with_bias
from superarm.native.ranking cimport position, softmax
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round


# ---------------------------------------------------------------- told every label


cdef class PerceptronCore(LinearCore):
    """if y^ != y:  W_y += x,  W_y^ -= x"""

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        if round.top[0] == answer.label:
            return True
        self.touched[0], self.c[0] = answer.label, 1.0
        self.touched[1], self.c[1] = round.top[0], -1.0
        return self.weights.add_outer(self.touched, self.c, 2, round.x)

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False


cdef class SoftmaxCore(LinearCore):
    """p = softmax(W x),   W += step (e_y - p) x"""

    cdef readonly double step

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, double step):
        LinearCore.__init__(self, k, scaling, kernel)
        self.step = step

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t i
        softmax(round.s, round.eligible, round.n, 1.0, self.c)
        for i in range(round.n):
            self.c[i] = self.step * ((1.0 if round.eligible[i] == answer.label else 0.0) - self.c[i])
        return self.weights.add_outer(round.eligible, self.c, round.n, round.x)


cdef class MCSLPCore(LinearCore):
    """W_r += x (1[r = y] - 1[r in Y^] / m);  with the gate, only where margin - s_y + mean_{Y^} s > 0"""

    cdef readonly bint gate
    cdef readonly double margin

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, bint gate, double margin):
        LinearCore.__init__(self, k, scaling, kernel)
        self.gate, self.margin = gate, margin

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t i, m = round.top_size
        cdef double loss
        if self.gate:
            loss = self.margin - <double>round.s[answer.label]
            for i in range(m):
                loss += <double>round.s[round.top[i]] / m
            if not loss > 0.0:
                return True
        self.touched[0], self.c[0] = answer.label, 1.0
        for i in range(m):
            self.touched[i + 1], self.c[i + 1] = round.top[i], -1.0 / m
        return self.weights.add_outer(self.touched, self.c, m + 1, round.x)

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return self.gate


cdef class PassiveAggressiveCore(LinearCore):
    """What PA and EPABF have: limits to the multipliers of their quadratic programs.

    Args:
        max_lambda: the most that PA's multipliers may sum up to, and each of EPABF's may be; infinite for no limit.
        slack_price: 2 C, where squared slacks cost C each; infinite where no slack is allowed, or its cost is linear.
    """

    cdef readonly double max_lambda, slack_price

    def __init__(
        self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, double max_lambda, double slack_price
    ):
        LinearCore.__init__(self, k, scaling, kernel)
        self.max_lambda, self.slack_price = max_lambda, slack_price


cdef class PACore(PassiveAggressiveCore):
    """W'_y = W_y + Lambda x,   W'_r = W_r - lambda_r x,   lambda_r = max(l_r - bound, 0) / X,   l_r = 1 - s_y + s_r

    `pa_threshold` finds Lambda and the bound, exactly.
    """

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef Py_ssize_t i, label = answer.label, positive = 0
        cdef double X = squared_norm_with_bias(round.x), own = 1.0 - <double>s[label], loss, Lambda, bound
        cdef double* c = self.c  # the positive losses, then the step
        for i in range(round.n):
            loss = own + s[eligible[i]]
            if eligible[i] != label and loss > 0.0:
                c[positive] = loss
                positive += 1
        if positive == 0 or X == 0.0:
            return True
        pa_threshold(c, positive, X, self.max_lambda, self.slack_price, &Lambda, &bound)
        for i in range(round.n):
            loss = own + s[eligible[i]] - bound
            c[i] = Lambda if eligible[i] == label else -(loss if loss > 0.0 else 0.0) / X
        return self.weights.add_outer(eligible, c, round.n, round.x)


cdef void pa_threshold(
    double* losses, Py_ssize_t count, double X, double max_total, double slack_price, double* Lambda,
    double* bound,
) noexcept nogil:
    """Lambda, and the loss above which a label is in the support. Reorders the losses.

    Starting with all labels, those below the bound leave the support, which raises the bound, until none is left below
    (Michelot 1986). Where ``max_total`` limits Lambda, the support is a part of that without a limit.
    """
    cdef Py_ssize_t i, n
    cdef double total, diagonal = 1.0 / slack_price
    cdef bint capped = False
    while True:
        total = 0.0
        for i in range(count):
            total += losses[i]
        Lambda[0] = max_total if capped else total / ((count + 1) * X + count * diagonal)
        bound[0] = (total - max_total * X) / count if capped else Lambda[0] * (X + diagonal)
        n = 0
        for i in range(count):
            if losses[i] > bound[0]:
                losses[n] = losses[i]
                n += 1
        if n == count:
            if capped or Lambda[0] <= max_total:
                return
            capped = True
        count = n


# ---------------------------------------------------------------- told one bit about one label


cdef class BanditronCore(LinearCore):
    """W += (1[y~ = y] / P(y~) e_y~ - e_y^) x"""

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        if round.n == 1:
            return True
        self.touched[0], self.c[0] = round.top[0], -1.0
        self.touched[1], self.c[1] = round.drawn[0], exp(-round.log_propensity) if answer.hit else 0.0
        if round.top[0] == round.drawn[0]:
            self.c[0] += self.c[1]
            return self.weights.add_outer(self.touched, self.c, 1, round.x)
        return self.weights.add_outer(self.touched, self.c, 2, round.x)

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False


cdef class EPABFCore(PassiveAggressiveCore):
    """W += sum_r lambda_r (a e_y~ - e_r) x,   a = 1[y~ = y] / P(y~),   l_r = [1 - a s_y~ + s_r]_+

    `epabf_multipliers` finds the lambda_r of the quadratic program.
    """

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef Py_ssize_t i, n = round.n, at = position(eligible, n, round.drawn[0])
        cdef double X = squared_norm_with_bias(round.x), a = exp(-round.log_propensity) if answer.hit else 0.0
        cdef double own = 1.0 - a * <double>s[round.drawn[0]], total = 0.0
        cdef double* c = self.c
        if n == 1 or X == 0.0:
            return True
        for i in range(n):
            c[i] = clip(own + s[eligible[i]], INFINITY) / X
        epabf_multipliers(c, n, at, a, self.max_lambda, 1.0 / (self.slack_price * X))
        for i in range(n):
            total += c[i]
            c[i] = -c[i]
        c[at] += a * total
        return self.weights.add_outer(eligible, c, n, round.x)


cdef inline double clip(double value, double high) noexcept nogil:
    """To [0, high]; NaN to 0."""
    return 0.0 if not value > 0.0 else high if value > high else value


cdef void epabf_multipliers(
    double* losses, Py_ssize_t n, Py_ssize_t at, double a, double max_lambda, double diagonal
) noexcept nogil:
    """Replace losses / X by lambda, by Newton's method between bounds (learners/epabf.py).

    ``at`` is the position of y~; ``diagonal``, over X, is added to the diagonal of the quadratic program.
    """
    cdef Py_ssize_t i, iteration
    cdef double own = losses[at], low_theta = -INFINITY, high_theta = INFINITY, theta = 0.0, v = 0.0
    cdef double cross = a * a - a, own_diagonal = (a - 1.0) * (a - 1.0) + diagonal
    cdef double S, slope, value, free, gap, slope_v, new
    for iteration in range(200):
        S = slope = 0.0
        for i in range(n):
            if i != at:
                value = (losses[i] - theta) / (1.0 + diagonal)
                S += clip(value, max_lambda)
                if 0.0 < value < max_lambda:
                    slope -= 1.0 / (1.0 + diagonal)
        if own_diagonal > 0.0:
            free = (own - cross * S) / own_diagonal
        else:
            free = max_lambda if own > cross * S else 0.0
        v = clip(free, max_lambda)
        gap = theta - a * a * S - cross * v
        slope_v = -cross / own_diagonal * slope if 0.0 < free < max_lambda else 0.0
        if fabs(gap) <= 1e-13 * (1.0 + fabs(theta)):
            break
        if gap > 0.0:
            high_theta = theta
        else:
            low_theta = theta
        new = theta - gap / (1.0 - a * a * slope - cross * slope_v)
        if not low_theta < new < high_theta:
            new = 0.5 * (low_theta + high_theta)
        if new == theta or new == low_theta or new == high_theta:
            break
        theta = new
    for i in range(n):
        losses[i] = clip((losses[i] - theta) / (1.0 + diagonal), max_lambda)
    losses[at] = v
