"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (scaling.pyx).

**The update.** W += step (post - p) x~ with a constant step (dense part: what is too small to matter is left out;
sparse part: at the pace of each label and feature, sparse_steps.pyx); predictions use the running average A (averaging.pyx).
A constant step escapes local optima, the average removes its noise. With the scores s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'                        where the gradient is taken
    post  softmax at  (1 - average_share) s + average_share s',  times the likelihood of the answer, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  a label: post = e_y;
    several answers about one row: a likelihood for each label

On a miss, the labels that were not shown give a share ``revive`` of their part of post to each other in proportion
to 1 / (mean_posterior + 0.01/k), mean_posterior being the running average of post: a label that hardly ever has any is revived.

A row with both parts has one softmax over the sum of both scores, each part with its own step and its own gate
(part_gates.pyx); curves.pyx says what random features of the dense part add.
"""

from libc.math cimport signbit
from libc.string cimport memcpy

from superarm.native.averaging cimport averaging_rate
from superarm.native.cpu cimport kernels
from superarm.native.curves cimport GRADIENT_AVERAGE_SHARE, likelihood_inside, likelihood_outside
from superarm.native.linear cimport safe_to_add
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Features, Round, Row

cdef double POSTERIOR_WINDOW = 3.0  # of the running average of post


cdef class SetLogitCore(Core):
    """SetLogit and AveragedSoftmax.

    Args:
        k: labels.
        seed: of the curves.
        scaling: how rows reach the weights.
        rule: how sets are chosen.
        step: of the dense part and its curves.
        sparse_step: of the sparse part.
        average_share: of the average, where post is taken.
        revive: of post that labels which were not shown give to each other, on a miss.
        curves: random features of the dense part, an even number.
        bias: the constant beside the dense part.
        forget: the least weight of a new round.
        false_yes, false_no: how often a bit is wrong.
        none_label: the number of the label that is never shown; -1 for none.
    """

    def __init__(
        self, *, Py_ssize_t k, seed, Scaling scaling, RuleKernel rule, double step,
        double sparse_step, double average_share, double revive, Py_ssize_t curves, double bias, double forget=0.0,
        double false_yes=0.0, double false_no=0.0, Py_ssize_t none_label=-1,
    ):
        cdef Py_ssize_t d = scaling.d, width = scaling.width
        Core.__init__(self, k, scaling, rule)
        self.step, self.sparse_step, self.average_share, self.revive, self.none_label = step, sparse_step, average_share, revive, none_label
        self.noise = Noise(false_yes, false_no)
        self.weights = AveragedWeights(k, d, width, forget)
        self.curves = Curves(k, d, curves if d > 0 else 0, seed, bias, forget)
        self.step_sizes = SparseStepSizes(k, width, sparse_step, forget)
        self.mixed_rows = d > 0 and width > 0
        self.part_gates = PartGates(k if self.mixed_rows else 0, self.weights, forget)
        self.stages |= {"weights": self.weights, "curves": self.curves, "step_sizes": self.step_sizes, "part_gates": self.part_gates}
        self.mean_posterior = self.doubles("mean_posterior", k, 1.0 / k)
        self.last = self.scratch_floats("last", k)
        self.mixed = self.scratch_floats("mixed", k)
        self.exp_scratch = self.scratch_floats("exp_scratch", k)
        self.post = self.scratch_doubles("post", k)
        self.c = self.scratch_doubles("c", k)
        self.sparse_c = self.scratch_doubles("sparse_c", k)

    def on_labels_added(self, Py_ssize_t before):
        """Give labels from ``before`` on, which are new, a mean posterior of 0: they are tried first."""
        self.arrays["mean_posterior"][before:] = 0.0

    cdef void score(self, const Features* x, float* s) noexcept nogil:
        if self.weights.width > 0:
            self.weights.score_sparse(x)
        if self.weights.d == 0:
            memcpy(s, self.weights.sparse_scores.average, self.k * sizeof(float))
            return
        self.weights.average_scores(x, s)
        if self.curves.n_features > 0:
            self.curves.add_average(x, s)
        if self.mixed_rows:
            self.part_gates.add_average(s)

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef double* c = self.c
        cdef double* sparse_c = self.sparse_c
        cdef double* post = self.post
        cdef double rate
        if not safe_to_add(c, 0, round.x):
            return False
        self.set_last_scores(round.x)
        self.set_posterior(round.s, round.drawn, round.m, answer)
        self.set_probabilities(round, answer)
        rate = averaging_rate(self.weights.averaging.updates, self.weights.forget, POSTERIOR_WINDOW)
        if self.weights.width > 0:
            for r in range(k):
                sparse_c[r] = self.sparse_step * (post[r] - sparse_c[r])
            self.step_sizes.step(self.weights, rate, sparse_c, round.x)
        if self.weights.d > 0:
            for r in range(k):
                c[r] = self.step * (post[r] - c[r])
        self.weights.step(c, round.x)
        for r in range(k):
            self.mean_posterior[r] += rate * (post[r] - self.mean_posterior[r])
        return True

    cdef void set_last_scores(self, const Features* x) noexcept nogil:
        if self.weights.d == 0:
            memcpy(self.last, self.weights.sparse_scores.last, self.k * sizeof(float))
            return
        self.weights.last_scores(x, self.last)
        if self.curves.n_features > 0:
            self.curves.add_last(self.last)
        if self.mixed_rows:
            self.part_gates.add_last(self.last)

    cdef void set_probabilities(self, const Round* round, const Answer* answer) noexcept nogil:
        """c and sparse_c = p, which the step of each part leads away from; the curves and the gates make their steps."""
        cdef double* p = self.c if self.weights.d > 0 else self.sparse_c
        cdef double reach = 1.0  # how much of the curves gets into the score
        if self.mixed_rows:
            reach = self.part_gates.dense_gate.value
            self.part_gates.sparse_probabilities(self.curves, self.sparse_c)
        if self.curves.n_features > 0:
            if self.mixed_rows:
                self.curves.add_sparse_scores(&self.weights.sparse_scores, <float>self.part_gates.sparse_gate.value)
            self.curves.learn_gate(round, answer, &self.noise, reach)
            self.curves.set_probabilities(p)
            self.curves.step_weights(round.x, self.post, self.step, self.weights)
        elif self.mixed_rows:
            self.part_gates.dense_probabilities(p)
        else:
            kernels.mix_scores(round.s, self.last, GRADIENT_AVERAGE_SHARE, 1.0 - GRADIENT_AVERAGE_SHARE, self.mixed, self.k)
            kernels.softmax(self.mixed, p, self.exp_scratch, self.k)
        if self.mixed_rows:
            self.part_gates.learn(round, answer, &self.noise)

    cdef void set_posterior(self, const float* s, const Py_ssize_t* drawn, Py_ssize_t m, const Answer* answer) noexcept nogil:
        """post = the probability of each label, given the answer."""
        cdef Py_ssize_t r
        if answer.label >= 0:
            for r in range(self.k):
                self.post[r] = 0.0
            self.post[answer.label] = 1.0
            return
        kernels.mix_scores(s, self.last, <float>self.average_share, <float>(1.0 - self.average_share), self.mixed, self.k)
        kernels.softmax(self.mixed, self.post, self.exp_scratch, self.k)
        if answer.likelihood != NULL:
            times_likelihood(self.post, self.k, answer.likelihood)
        else:
            given_bit(
                self.post, self.k, &self.noise, self.revive, self.none_label, self.mean_posterior, drawn, m, answer.hit, self.c
            )

    cdef void prefetch_weights(self, const Row* row) noexcept nogil:
        self.scaling.prefetch(row)
        self.weights.prefetch(row)
        self.step_sizes.prefetch(row)


cdef void times_likelihood(double* p, Py_ssize_t k, const double* likelihood) noexcept nogil:
    """Turn p, in place, into post: the probability of each label given the likelihood."""
    cdef double total = 0.0, high = 0.0
    cdef Py_ssize_t r
    for r in range(k):
        total += p[r] * likelihood[r]
        high = max(high, likelihood[r])
    if not total > 1e-20 * high:  # it had probability 0: nothing can be learnt from it
        return
    for r in range(k):
        p[r] *= likelihood[r] / total


cdef void given_bit(
    double* p, Py_ssize_t k, const Noise* noise, double revive, Py_ssize_t none_label, const double* mean_posterior,
    const Py_ssize_t* drawn, Py_ssize_t m, bint hit, double* revive_weights,
) noexcept nogil:
    """Turn p, in place, into post: the probability of each label given the bit."""
    cdef double inside = likelihood_inside(noise, hit), outside = likelihood_outside(noise, hit)
    cdef double shown = 0.0, total, revived = 0.0 if hit else revive, given = 0.0, spread = 0.0, floor = 0.01 / k
    cdef Py_ssize_t i, r
    for i in range(m):
        shown += p[drawn[i]]
    total = shown * inside + max(1.0 - shown, 0.0) * outside
    if total < 1e-20:  # the bit had probability 0: nothing can be learnt from it
        return
    for i in range(m):
        p[drawn[i]] *= -inside / total  # marked by a minus
    for r in range(k):
        if signbit(p[r]):
            p[r] = -p[r]
        else:
            p[r] *= outside / total
            if revived > 0.0 and r != none_label:
                given += revived * p[r]
                p[r] *= 1.0 - revived
                # until the total is known, what r receives waits
                revive_weights[r] = 1.0 / (mean_posterior[r] + floor)
                spread += revive_weights[r]
                continue
        revive_weights[r] = 0.0
    if given > 0.0:
        for r in range(k):
            p[r] += given * revive_weights[r] / spread
