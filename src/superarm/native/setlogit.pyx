"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (scaling.pyx).

**The update.** W += step (post - p) x~ with a constant step (dense part: what is too small to matter is left out;
sparse part: at the pace of each label and feature, sparse_steps.pyx); predictions use the running average A
(averaging.pyx). A constant step escapes local optima, the average removes its noise. With the scores s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'                        where the gradient is taken
    post  softmax at  (1 - average_share) s + average_share s',  times the likelihood of the answer, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  a label: post = e_y;
    several answers about one row: a likelihood for each label

On a miss, the labels that were not shown give a share ``revive`` of their part of post to each other in proportion
to 1 / (mean_posterior + 0.01/k), mean_posterior being the running average of post: a label that hardly ever has any
is revived.

**Rows with both parts** have one softmax over the sum of both scores, and a gate for each part (likelihood.pyx):

    score  = u a1 + v a2       a1 of the dense part with its curves (curves.pyx), a2 of the sparse part, both averages
    dense    W1 += step (post - softmax(a1 + v a2)) x1
    sparse   W2 += step (post - softmax(a2 + u a1)) x2       (the softmax at the midpoint of average and last weights)

Where one part is noise, its gate closes, and the other part learns as if it were alone. Each part learns as if its own
gate were open, so that it can come back. (docs/research.md: mixed rows)
"""

from libc.string cimport memcpy

from superarm.native.averaging cimport AveragedWeights, ScorePair, averaging_rate, midpoint, score_pair
from superarm.native.core cimport Core
from superarm.native.cpu cimport kernels
from superarm.native.curves cimport Curves
from superarm.native.likelihood cimport Gate, Noise, add_gated, gate_gradient, given_bit, step_gate
from superarm.native.likelihood cimport times_likelihood
from superarm.native.linear cimport norm_is_safe
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.sparse_steps cimport SparseStepSizes
from superarm.native.types cimport Answer, Round, Row, ScaledRow

cdef double POSTERIOR_WINDOW = 3.0  # of the running average of post


cdef class SetLogitCore(Core):
    """SetLogit and AveragedSoftmax.

    Args:
        k: labels.
        seed: the seed of the curves.
        scaling: how rows reach the weights.
        kernel: how sets are chosen.
        step: the step size of the dense part and its curves.
        sparse_step: the step size of the sparse part.
        average_share: the share of the average's scores in those that make post.
        revive: the share of post that labels which were not shown give to each other, on a miss.
        curves: random features of the dense part, an even number.
        bias: the constant beside the dense part.
        forget: the least weight of a new round.
        false_yes, false_no: how often a bit is wrong.
        none_label: the index of the label that is never shown, and never revived; -1 for none.
    """

    cdef readonly AveragedWeights weights
    cdef readonly Curves curves
    cdef readonly SparseStepSizes step_sizes
    cdef readonly bint mixed_rows  # they have both parts
    cdef public double step
    cdef readonly double sparse_step, average_share, revive
    cdef readonly Py_ssize_t none_label
    cdef Noise noise
    cdef double* mean_posterior
    cdef Gate* dense_gate  # u
    cdef Gate* sparse_gate  # v
    # scratch space:
    # of rows with both parts, before u; those of the sparse part are with the weights
    cdef ScorePair dense_scores
    cdef float* last  # the scores of W
    cdef float* mixed
    cdef float* exp_scratch
    cdef double* probabilities
    cdef double* post
    cdef double* c  # p of the dense part, then its step
    cdef double* sparse_c  # of the sparse part
    cdef double* revive_weights  # by which labels that were not shown share what they give, on a miss

    def __init__(
        self, *, Py_ssize_t k, seed, Scaling scaling, RuleKernel kernel, double step, double sparse_step,
        double average_share, double revive, Py_ssize_t curves, double bias, double forget=0.0,
        double false_yes=0.0, double false_no=0.0, Py_ssize_t none_label=-1,
    ):
        cdef Py_ssize_t d = scaling.d, width = scaling.width
        Core.__init__(self, k, scaling, kernel)
        self.step, self.sparse_step, self.average_share = step, sparse_step, average_share
        self.revive, self.none_label = revive, none_label
        self.noise = Noise(false_yes, false_no)
        self.weights = AveragedWeights(k, d, width, forget)
        self.curves = Curves(k, d, curves if d > 0 else 0, seed, bias, forget)
        self.step_sizes = SparseStepSizes(k, width, sparse_step, forget)
        self.stages |= {"weights": self.weights, "curves": self.curves, "step_sizes": self.step_sizes}
        self.mixed_rows = d > 0 and width > 0
        self.dense_gate = <Gate*>self.doubles(
            "part_gates.gates", 2 * sizeof(Gate) // sizeof(double) if self.mixed_rows else 0
        )
        self.sparse_gate = self.dense_gate + 1
        if self.mixed_rows:
            self.dense_gate.value = self.sparse_gate.value = 1.0
        self.mean_posterior = self.doubles("mean_posterior", k, 1.0 / k)
        self.dense_scores = score_pair(self.scratch_floats("dense_scores", 2 * k), k)
        self.last = self.scratch_floats("last", k)
        self.mixed = self.scratch_floats("mixed", k)
        self.exp_scratch = self.scratch_floats("exp_scratch", k)
        self.probabilities = self.scratch_doubles("probabilities", k)
        self.post = self.scratch_doubles("post", k)
        self.c = self.scratch_doubles("c", k)
        self.sparse_c = self.scratch_doubles("sparse_c", k)
        self.revive_weights = self.scratch_doubles("revive_weights", k)

    def on_labels_added(self, Py_ssize_t before) -> None:
        """Give labels from ``before`` on, which are new, a mean posterior of 0: they are tried first."""
        self.arrays["mean_posterior"][before:] = 0.0

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        if self.weights.width > 0:
            self.weights.score_sparse(x)
        if self.weights.d == 0:
            memcpy(s, self.weights.sparse_scores.average, self.k * sizeof(float))
            return
        self.weights.average_scores(x, s)
        if self.curves.n_features > 0:
            self.curves.add_average(x, s)
        if self.mixed_rows:
            self.add_sparse_part(s, self.weights.sparse_scores.average, self.dense_scores.average)

    cdef void score_last(self, const ScaledRow* x) noexcept nogil:
        """Fill in the scores of the last weights, at the row that was scored last."""
        if self.weights.d == 0:
            memcpy(self.last, self.weights.sparse_scores.last, self.k * sizeof(float))
            return
        self.weights.last_scores(x, self.last)
        if self.curves.n_features > 0:
            self.curves.add_last(self.last)
        if self.mixed_rows:
            self.add_sparse_part(self.last, self.weights.sparse_scores.last, self.dense_scores.last)

    cdef void add_sparse_part(self, float* s, const float* sparse, float* dense) noexcept nogil:
        add_gated(s, <float>self.dense_gate.value, <float>self.sparse_gate.value, sparse, dense, self.k)

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef double* c = self.c
        cdef double* sparse_c = self.sparse_c
        cdef double* post = self.post
        cdef double rate
        if not norm_is_safe(round.x):
            return False
        self.score_last(round.x)
        self.set_posterior(round, answer)
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

    cdef void set_posterior(self, const Round* round, const Answer* answer) noexcept nogil:
        """post = the probability of each label, given the answer."""
        cdef Py_ssize_t r, k = self.k
        if answer.label >= 0:
            for r in range(k):
                self.post[r] = 0.0
            self.post[answer.label] = 1.0
            return
        kernels.mix_scores(
            round.s, self.last, <float>self.average_share, <float>(1.0 - self.average_share), self.mixed, k
        )
        kernels.softmax(self.mixed, self.post, self.exp_scratch, k)
        if answer.likelihood != NULL:
            times_likelihood(self.post, k, answer.likelihood)
        else:
            given_bit(
                self.post, k, &self.noise, round, answer.hit, self.revive, self.none_label, self.mean_posterior,
                self.revive_weights,
            )

    cdef void set_probabilities(self, const Round* round, const Answer* answer) noexcept nogil:
        """c and sparse_c = p, which the step of each part leads away from; the curves and the gates make their steps."""
        cdef double* p = self.c if self.weights.d > 0 else self.sparse_c
        cdef double* q = self.probabilities  # softmax(score)
        cdef double reach = 1.0  # how much of the curves gets into the score
        cdef float v
        if self.mixed_rows:
            reach, v = self.dense_gate.value, <float>self.sparse_gate.value
            self.set_sparse_probabilities()
        if self.mixed_rows or self.curves.n_features > 0:
            kernels.softmax(round.s, q, self.exp_scratch, self.k)
        if self.curves.n_features > 0:
            if self.mixed_rows:
                self.curves.add_sparse_scores(&self.weights.sparse_scores, v)
            self.curves.learn_gate(q, round, answer, &self.noise, reach)
            self.curves.set_probabilities(p)
            self.curves.step_weights(round.x, self.post, self.step, self.weights)
        elif self.mixed_rows:
            self.softmax_of_sum(&self.dense_scores, v, &self.weights.sparse_scores, p)
        else:
            kernels.mix_scores(round.s, self.last, 0.5, 0.5, self.mixed, self.k)
            kernels.softmax(self.mixed, p, self.exp_scratch, self.k)
        if self.mixed_rows:
            self.learn_part_gate(self.dense_gate, q, self.dense_scores.average, round, answer)
            self.learn_part_gate(self.sparse_gate, q, self.weights.sparse_scores.average, round, answer)

    cdef void learn_part_gate(
        self, Gate* gate, const double* q, const float* a, const Round* round, const Answer* answer
    ) noexcept nogil:
        step_gate(gate, gate_gradient(q, a, self.k, &self.noise, round, answer), self.weights.forget)

    cdef void set_sparse_probabilities(self) noexcept nogil:
        """sparse_c = p of the sparse part, the curves mixed in as curves.pyx does."""
        cdef Py_ssize_t r
        cdef float u = <float>self.dense_gate.value
        cdef double g = self.curves.gate.value
        cdef double* p = self.sparse_c
        cdef const ScorePair* features = &self.curves.feature_scores
        if self.curves.n_features == 0:
            self.softmax_of_sum(&self.weights.sparse_scores, u, &self.dense_scores, p)
            return
        self.softmax_of_sum(&self.weights.sparse_scores, u, &self.curves.linear_scores, p)
        for r in range(self.k):
            self.mixed[r] += u * (0.5 * (<double>features.average[r] + features.last[r]))
        kernels.softmax(self.mixed, self.probabilities, self.exp_scratch, self.k)
        for r in range(self.k):
            p[r] = (1.0 - g) * p[r] + g * self.probabilities[r]

    cdef void softmax_of_sum(
        self, const ScorePair* own, float gate, const ScorePair* other, double* p
    ) noexcept nogil:
        """p = softmax(mixed),  mixed = own + gate other, both at the midpoint"""
        cdef Py_ssize_t r
        for r in range(self.k):
            self.mixed[r] = midpoint(own, r) + gate * midpoint(other, r)
        kernels.softmax(self.mixed, p, self.exp_scratch, self.k)

    cdef void prefetch_weights(self, const Row* row) noexcept nogil:
        self.scaling.prefetch(row)
        self.weights.prefetch(row)
        self.step_sizes.prefetch(row)
