from superarm.native.averaging cimport AveragedWeights, ScorePair
from superarm.native.likelihood cimport Gate, Noise
from superarm.native.random_features cimport RandomFeatures
from superarm.native.stage cimport Stage
from superarm.native.types cimport Answer, Round, ScaledRow


cdef class Curves(Stage):
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
    cdef void add_average(self, const ScaledRow* x, float* s) noexcept nogil
    cdef void add_last(self, float* last) noexcept nogil
    # v times the scores of the sparse part belong to the linear scores, too.
    cdef void add_sparse_scores(self, const ScorePair* sparse, float v) noexcept nogil
    # One update, in this order: the gate climbs, q being softmax(score), and ``reach`` how much of all this gets into it;
    cdef void learn_gate(
        self, const double* q, const Round* round, const Answer* answer, const Noise* noise, double reach
    ) noexcept nogil
    # p = (1 - g) p1 + g p2, which the step of the linear weights leads away from;
    cdef void set_probabilities(self, double* p) noexcept nogil
    # the weights of the features make their step, and what the features are made by follows the row.
    cdef void step_weights(
        self, const ScaledRow* x, const double* post, double step, AveragedWeights linear
    ) noexcept nogil
