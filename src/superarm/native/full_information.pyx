"""Learners that are told every label: Perceptron, Softmax, MC-SLP, PA. (The papers: superarm/learners.)"""

from superarm.native.core cimport LinearCore
from superarm.native.linear cimport squared_norm_with_bias
from superarm.native.ranking cimport softmax
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round


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

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel rule, *, double step):
        LinearCore.__init__(self, k, scaling, rule)
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

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel rule, *, bint gate, double margin):
        LinearCore.__init__(self, k, scaling, rule)
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


cdef class PACore(LinearCore):
    """W'_y = W_y + Lambda x,   W'_r = W_r - lambda_r x,   lambda_r = max(l_r - bound, 0) / X,   l_r = 1 - s_y + s_r

    `pa_threshold` finds Lambda and the bound, exactly.
    """

    cdef readonly double C
    cdef readonly int variant
    cdef double* losses

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel rule, *, double C, int variant):
        LinearCore.__init__(self, k, scaling, rule)
        self.C, self.variant = C, variant
        self.losses = self.scratch_doubles("losses", k)

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef Py_ssize_t i, label = answer.label, positive = 0
        cdef double X = squared_norm_with_bias(round.x), own = 1.0 - <double>s[label], loss, Lambda, bound
        for i in range(round.n):
            loss = own + s[eligible[i]]
            if eligible[i] != label and loss > 0.0:
                self.losses[positive] = loss
                positive += 1
        if positive == 0 or X == 0.0:
            return True
        pa_threshold(self.losses, positive, X, self.C, self.variant, &Lambda, &bound)
        for i in range(round.n):
            loss = own + s[eligible[i]] - bound
            self.c[i] = Lambda if eligible[i] == label else -(loss if loss > 0.0 else 0.0) / X
        return self.weights.add_outer(eligible, self.c, round.n, round.x)


cdef void pa_threshold(double* losses, Py_ssize_t count, double X, double C, int variant, double* Lambda, double* bound) noexcept nogil:
    """Lambda, and the loss above which a label is in the support. Reorders the losses.

    Starting with all labels, those below the bound leave the support, which raises the bound, until none is left below
    (Michelot 1986). For PA-I with Lambda = C the support is a part of plain PA's.
    """
    cdef Py_ssize_t i, n
    cdef double total, extra = 1.0 / (2.0 * C) if variant == SQUARED else 0.0
    cdef bint capped = False
    while True:
        total = 0.0
        for i in range(count):
            total += losses[i]
        Lambda[0] = C if capped else total / ((count + 1) * X + count * extra)
        bound[0] = (total - C * X) / count if capped else Lambda[0] * (X + extra)
        n = 0
        for i in range(count):
            if losses[i] > bound[0]:
                losses[n] = losses[i]
                n += 1
        if n == count:
            if variant != BOUNDED or capped or Lambda[0] <= C:
                return
            capped = True
        count = n
