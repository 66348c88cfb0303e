from superarm.native.averaging cimport AveragedWeights, ScorePair
from superarm.native.curves cimport Curves, Gate, Noise
from superarm.native.stage cimport Stage
from superarm.native.types cimport Answer, Round


cdef class PartGates(Stage):
    """Rows with both parts: a gate for each."""

    cdef readonly Py_ssize_t k
    cdef readonly double forget
    cdef AveragedWeights weights
    cdef Gate* dense_gate  # u
    cdef Gate* sparse_gate  # v
    cdef ScorePair dense  # scratch: scores of the dense part with its curves; those of the sparse part are with the weights
    cdef float* mixed
    cdef float* exp_scratch
    cdef double* probabilities

    # s = u s + v (scores of the sparse part), for the average; and for the last weights.
    cdef void add_average(self, float* s) noexcept nogil
    cdef void add_last(self, float* last) noexcept nogil
    cdef void add_gated(self, float* s, const float* sparse, float* dense) noexcept nogil
    # The gates climb the likelihood of the answer.
    cdef void learn(self, const Round* round, const Answer* answer, const Noise* noise) noexcept nogil
    # p = the probabilities that weights are to be moved away from: of the dense part without curves, of the sparse part.
    cdef void dense_probabilities(self, double* p) noexcept nogil
    cdef void sparse_probabilities(self, Curves curves, double* p) noexcept nogil
    cdef void mix(self, const ScorePair* own, const ScorePair* other, float gate) noexcept nogil
