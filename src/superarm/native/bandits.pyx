"""Learners of one label and one bit: Banditron, EPABF. (The papers: superarm/learners.)"""

from libc.math cimport INFINITY, exp, fabs

from superarm.native.core cimport LinearCore
from superarm.native.full_information cimport BOUNDED, SQUARED
from superarm.native.linear cimport squared_norm_with_bias
from superarm.native.ranking cimport position
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round


cdef class BanditronCore(LinearCore):
    """W += (1[y~ = y] / P(y~) e_y~ - e_y^) x"""

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t drawn = round.drawn[0], top = round.top[0], n = 2
        if round.n == 1:
            return True
        self.touched[0], self.c[0] = top, -1.0
        self.touched[1], self.c[1] = drawn, exp(-round.log_propensity) if answer.hit else 0.0
        if top == drawn:
            self.c[0] += self.c[1]
            n = 1
        return self.weights.add_outer(self.touched, self.c, n, round.x)

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False


cdef class EPABFCore(LinearCore):
    """W += sum_r lambda_r (a e_y~ - e_r) x,   a = 1[y~ = y] / P(y~),   l_r = [1 - a s_y~ + s_r]_+

    `epabf_multipliers` finds the lambda_r of the quadratic program.
    """

    cdef readonly double C
    cdef readonly int variant  # full_information.pxd

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel rule, *, double C, int variant):
        LinearCore.__init__(self, k, scaling, rule)
        self.C, self.variant = C, variant

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef Py_ssize_t i, n = round.n, at = position(eligible, n, round.drawn[0])
        cdef double X = squared_norm_with_bias(round.x), a = exp(-round.log_propensity) if answer.hit else 0.0
        cdef double own = 1.0 - a * <double>s[round.drawn[0]], loss, high, delta, total = 0.0
        cdef double* c = self.c
        if n == 1 or X == 0.0:
            return True
        for i in range(n):
            loss = own + s[eligible[i]]
            c[i] = (loss if loss > 0.0 else 0.0) / X
        high = self.C if self.variant == BOUNDED else INFINITY
        delta = 1.0 / (2.0 * self.C * X) if self.variant == SQUARED else 0.0
        epabf_multipliers(c, n, at, a, high, delta)
        for i in range(n):
            total += c[i]
            c[i] = -c[i]
        c[at] += a * total
        return self.weights.add_outer(eligible, c, n, round.x)


cdef inline double _clip(double value, double high) noexcept nogil:
    return 0.0 if not value > 0.0 else high if value > high else value


cdef void epabf_multipliers(double* losses, Py_ssize_t n, Py_ssize_t at, double a, double high, double delta) noexcept nogil:
    """Replace losses / X by lambda; ``at`` is the position of y~, ``high`` the upper bound on lambda."""
    cdef Py_ssize_t i, iteration
    cdef double own = losses[at], low_theta = -INFINITY, high_theta = INFINITY, theta = 0.0, v = 0.0
    cdef double cross = a * a - a, diagonal = (a - 1.0) * (a - 1.0) + delta
    cdef double S, slope, value, free, gap, slope_v, new
    for iteration in range(200):
        S = slope = 0.0
        for i in range(n):
            if i != at:
                value = (losses[i] - theta) / (1.0 + delta)
                S += _clip(value, high)
                if 0.0 < value < high:
                    slope -= 1.0 / (1.0 + delta)
        if diagonal > 0.0:
            free = (own - cross * S) / diagonal
        else:
            free = high if own > cross * S else 0.0
        v = _clip(free, high)
        gap = theta - a * a * S - cross * v
        slope_v = -cross / diagonal * slope if 0.0 < free < high else 0.0
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
        losses[i] = _clip((losses[i] - theta) / (1.0 + delta), high)
    losses[at] = v
