from superarm.native.averaging cimport AveragedWeights, ScorePair
from superarm.native.random_features cimport RandomFeatures
from superarm.native.stage cimport Stage
from superarm.native.types cimport Answer, Features, Round

cdef extern from *:
    """
    #define GRADIENT_AVERAGE_SHARE 0.5f /* the average's share where the gradient is taken */
    """
    const float GRADIENT_AVERAGE_SHARE


cdef struct Noise:
    # How often an answer is wrong.
    double false_yes
    double false_no


cdef inline double likelihood_inside(const Noise* noise, bint hit) noexcept nogil:
    """Return the probability of this bit where the right label is among the shown ones."""
    return 1.0 - noise.false_no if hit else noise.false_no


cdef inline double likelihood_outside(const Noise* noise, bint hit) noexcept nogil:
    """Return the probability of this bit where it is not."""
    return noise.false_yes if hit else 1.0 - noise.false_yes


cdef struct Gate:
    # A number in [0, 1] that the answers move (curves.pyx).
    double value  # g
    double squared_slopes  # G


cdef class Curves(Stage):
    """The part of a likelihood learner that is not linear: weights for random features of the row, and a gate."""

    cdef readonly Py_ssize_t k, n_features
    cdef readonly RandomFeatures random_features
    cdef readonly AveragedWeights weights  # of the random features
    cdef Gate* gate
    cdef ScorePair linear_scores  # scratch: of all but the random features
    cdef ScorePair feature_scores  # of the random features
    cdef float* mixed
    cdef float* exp_scratch
    cdef double* probabilities  # p2, then the step
    cdef float* feature_gradient  # of the loss along the features, and along the row
    cdef float* linear_gradient

    # s += g a2, for the average; and for the last weights, at the same row.
    cdef void add_average(self, const Features* x, float* s) noexcept nogil
    cdef void add_last(self, float* last) noexcept nogil
    cdef void add_gated(self, float* s, const float* features, float* linear) noexcept nogil
    # v times the scores of the sparse part belong to the linear scores, too.
    cdef void add_sparse_scores(self, const ScorePair* sparse, float v) noexcept nogil
    # One update, in this order: the gate climbs, ``reach`` being how much of all this gets into the score;
    cdef void learn_gate(self, const Round* round, const Answer* answer, const Noise* noise, double reach) noexcept nogil
    # p = (1 - g) p1 + g p2, which the step of the linear weights leads away from;
    cdef void set_probabilities(self, double* p) noexcept nogil
    # the weights of the features make their step, and what the features are made by follows the row.
    cdef void step_weights(self, const Features* x, const double* post, double step, AveragedWeights linear) noexcept nogil


cdef double gate_gradient(const double* q, const float* a, Py_ssize_t k, const Noise* noise, const Py_ssize_t* drawn, Py_ssize_t m, const Answer* answer) noexcept nogil
cdef void step_gate(Gate* gate, double slope, double forget) noexcept nogil
