"""Rows with both parts: one softmax over the sum of both, and a gate for each part.

    score  = u a1 + v a2       a1 of the dense part with its curves, a2 of the sparse part, both averages
    dense    W1 += step (post - softmax(a1 + v a2)) x1
    sparse   W2 += step (post - softmax(a2 + u a1)) x2       (the softmax at the mix of average and last weights)

The gates u, v in [0, 1] start at 1 and climb the likelihood of the answers, as that of the curves does
(curves.pyx): where one part is noise, its gate closes, and the other part learns as if it were alone. Each part
learns as if its own gate were open, so that it can come back. (docs/research.md: mixed rows)
"""

from superarm.native.averaging cimport score_pair
from superarm.native.cpu cimport kernels
from superarm.native.curves cimport GRADIENT_AVERAGE_SHARE, step_gate, gate_gradient


cdef class PartGates(Stage):
    """The gates of both parts.

    Args:
        k: labels; 0 where rows have one part, and nothing to do.
        weights: of both parts.
        forget: the least weight of a new round.
    """

    def __init__(self, Py_ssize_t k, AveragedWeights weights, double forget=0.0):
        self.k, self.weights, self.forget = k, weights, forget
        self.dense_gate = <Gate*>self.doubles("gates", 2 * sizeof(Gate) // sizeof(double) if k > 0 else 0)
        self.sparse_gate = self.dense_gate + 1
        if k > 0:
            self.dense_gate.value = self.sparse_gate.value = 1.0
        self.dense = score_pair(self.scratch_floats("dense", 2 * k), k)
        self.mixed = self.scratch_floats("mixed", k)
        self.exp_scratch = self.scratch_floats("exp_scratch", k)
        self.probabilities = self.scratch_doubles("probabilities", k)

    cdef void add_average(self, float* s) noexcept nogil:
        self.add_gated(s, self.weights.sparse_scores.average, self.dense.average)

    cdef void add_last(self, float* last) noexcept nogil:
        self.add_gated(last, self.weights.sparse_scores.last, self.dense.last)

    cdef void add_gated(self, float* s, const float* sparse, float* dense) noexcept nogil:
        """dense = s;  s = u dense + v sparse"""
        cdef float u = <float>self.dense_gate.value, v = <float>self.sparse_gate.value
        cdef Py_ssize_t r
        for r in range(self.k):
            dense[r] = s[r]
            s[r] = u * dense[r] + v * sparse[r]

    cdef void learn(self, const Round* round, const Answer* answer, const Noise* noise) noexcept nogil:
        kernels.softmax(round.s, self.probabilities, self.exp_scratch, self.k)
        cdef double dense = gate_gradient(self.probabilities, self.dense.average, self.k, noise, round.drawn, round.m, answer)
        cdef double sparse = gate_gradient(self.probabilities, self.weights.sparse_scores.average, self.k, noise, round.drawn, round.m, answer)
        step_gate(self.dense_gate, dense, self.forget)
        step_gate(self.sparse_gate, sparse, self.forget)

    cdef void dense_probabilities(self, double* p) noexcept nogil:
        self.mix(&self.dense, &self.weights.sparse_scores, <float>self.sparse_gate.value)
        kernels.softmax(self.mixed, p, self.exp_scratch, self.k)

    cdef void sparse_probabilities(self, Curves curves, double* p) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef float u = <float>self.dense_gate.value, share = GRADIENT_AVERAGE_SHARE
        cdef double g = curves.gate.value
        if curves.n_features == 0:
            self.mix(&self.weights.sparse_scores, &self.dense, u)
            kernels.softmax(self.mixed, p, self.exp_scratch, k)
            return
        self.mix(&self.weights.sparse_scores, &curves.linear_scores, u)
        kernels.softmax(self.mixed, p, self.exp_scratch, k)
        for r in range(k):
            self.mixed[r] += u * (share * curves.feature_scores.average[r] + (1 - share) * curves.feature_scores.last[r])
        kernels.softmax(self.mixed, self.probabilities, self.exp_scratch, k)
        for r in range(k):
            p[r] = (1.0 - g) * p[r] + g * self.probabilities[r]

    cdef void mix(self, const ScorePair* own, const ScorePair* other, float gate) noexcept nogil:
        """mixed = own + gate other, each at the mix of average and last weights where the gradient is taken."""
        cdef Py_ssize_t r
        cdef float share = GRADIENT_AVERAGE_SHARE, rest = 1 - share
        for r in range(self.k):
            self.mixed[r] = (
                share * own.average[r] + rest * own.last[r] + gate * (share * other.average[r] + rest * other.last[r])
            )
