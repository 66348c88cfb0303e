"""The part of a likelihood learner that is not linear: weights for random features of the row, and a gate.

    score = a1 + g a2        a1 linear (dense and sparse part), a2 of the random features phi, both averages
    p1    = softmax at the mix of the linear scores alone
    p2    = softmax at the mix of the sums, linear + random features
    W    += step (post - [(1 - g) p1 + g p2]) x~,     W2 += step (post - p2) phi

The gate g (likelihood.pyx) makes the random features (random_features.pyx) fade where the truth is linear and noisy.
"""

from libc.stdint cimport int64_t

from superarm.native.averaging cimport midpoint, score_pair
from superarm.native.cpu cimport kernels
from superarm.native.likelihood cimport add_gated, gate_gradient, step_gate
from superarm.native.random_features cimport STATS_INTERVAL


cdef class Curves(Stage):
    """Random features, their weights, and the gate.

    Args:
        k: labels.
        d: columns of the dense part.
        features: random features, an even number; 0 for none, and nothing to do.
        seed: the seed of the projections.
        bias: the constant beside the dense part.
        forget: the least weight of a new row.
    """

    def __init__(
        self, Py_ssize_t k, Py_ssize_t d, Py_ssize_t features, seed, double bias=0.0, double forget=0.0
    ):
        self.k, self.n_features = k, features
        self.random_features = RandomFeatures(d, features // 2, seed, bias, forget)
        self.weights = AveragedWeights(k, features, 0, forget)
        self.stages |= {"random_features": self.random_features, "weights": self.weights}
        self.gate = <Gate*>self.doubles("gate", sizeof(Gate) // sizeof(double))
        self.gate.value = 1.0
        if features == 0:
            k = d = 0
        self.linear_scores = score_pair(self.scratch_floats("linear_scores", 2 * k), k)
        self.feature_scores = score_pair(self.scratch_floats("feature_scores", 2 * k), k)
        self.mixed = self.scratch_floats("mixed", k)
        self.exp_scratch = self.scratch_floats("exp_scratch", k)
        self.probabilities = self.scratch_doubles("probabilities", k)
        self.feature_gradient = self.scratch_floats("feature_gradient", features)
        self.linear_gradient = self.scratch_floats("linear_gradient", d)

    cdef void add_average(self, const ScaledRow* x, float* s) noexcept nogil:
        cdef ScaledRow phi
        self.random_features.transform(x, &phi)
        self.weights.average_scores(&phi, self.feature_scores.average)
        add_gated(
            s, 1.0, <float>self.gate.value, self.feature_scores.average, self.linear_scores.average, self.k
        )

    cdef void add_last(self, float* last) noexcept nogil:
        cdef ScaledRow phi
        self.random_features.last_features(&phi)
        self.weights.last_scores(&phi, self.feature_scores.last)
        add_gated(
            last, 1.0, <float>self.gate.value, self.feature_scores.last, self.linear_scores.last, self.k
        )

    cdef void add_sparse_scores(self, const ScorePair* sparse, float v) noexcept nogil:
        cdef Py_ssize_t r
        for r in range(self.k):
            self.linear_scores.average[r] += v * sparse.average[r]
            self.linear_scores.last[r] += v * sparse.last[r]

    cdef void learn_gate(
        self, const double* q, const Round* round, const Answer* answer, const Noise* noise, double reach
    ) noexcept nogil:
        cdef double slope = gate_gradient(q, self.feature_scores.average, self.k, noise, round, answer)
        step_gate(self.gate, reach * slope, self.random_features.forget)

    cdef void set_probabilities(self, double* p) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef ScorePair linear = self.linear_scores, features = self.feature_scores
        cdef double g = self.gate.value
        for r in range(k):
            self.mixed[r] = 0.5 * (
                (linear.average[r] + features.average[r]) + (linear.last[r] + features.last[r])
            )
        kernels.softmax(self.mixed, self.probabilities, self.exp_scratch, k)
        for r in range(k):
            self.mixed[r] = midpoint(&linear, r)
        kernels.softmax(self.mixed, p, self.exp_scratch, k)
        for r in range(k):
            p[r] = (1.0 - g) * p[r] + g * self.probabilities[r]

    cdef void step_weights(
        self, const ScaledRow* x, const double* post, double step, AveragedWeights linear
    ) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef double* c = self.probabilities
        cdef ScaledRow phi
        for r in range(k):
            c[r] = step * (post[r] - c[r])
        self.random_features.last_features(&phi)
        self.weights.step(c, &phi)
        if <int64_t>self.weights.averaging.updates % STATS_INTERVAL == 0:
            kernels.weighted_row_sum(
                self.weights.A, self.weights.stride, c, k, self.n_features, self.feature_gradient
            )
            kernels.weighted_row_sum(linear.A, linear.stride, c, k, linear.d, self.linear_gradient)
            self.random_features.learn_relevance(self.feature_gradient, self.linear_gradient)
        self.random_features.update_stats(x)

    # ---- from Python

    @property
    def g(self):
        """The gate, in [0, 1]."""
        return self.gate.value
