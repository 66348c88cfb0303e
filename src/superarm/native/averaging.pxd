from superarm.native.stage cimport Stage
from superarm.native.types cimport Row, ScaledRow


cdef struct AveragingState:
    double dense_omega  # the product of 1 - rho since the average of the dense part last took W in
    double sparse_omega  # omega of the sparse part
    double updates


cdef struct ScorePair:
    # Scores of all labels: by the last weights, and by their average.
    float* last
    float* average


cdef inline ScorePair score_pair(float* numbers, Py_ssize_t k) noexcept nogil:
    """Return the pair in 2 k numbers."""
    return ScorePair(numbers, numbers + k)


cdef inline float midpoint(const ScorePair* scores, Py_ssize_t r) noexcept nogil:
    """Return the score of a label half-way between both, where gradients are taken."""
    return 0.5 * (scores.average[r] + scores.last[r])


cdef inline double averaging_rate(double updates, double forget, double window) noexcept nogil:
    """Return rho of the update that follows ``updates`` earlier ones."""
    return max(window / (updates + 1.0 + window), forget)


cdef class AveragedWeights(Stage):
    cdef readonly Py_ssize_t k, d, width, stride
    cdef readonly double forget
    cdef float* W  # dense: k x stride, as in linear.pyx
    cdef float* A
    cdef float* sparse  # (width + 1) x 2 x k: of each feature W, then A; the last row is the constant's
    cdef AveragingState* averaging
    cdef ScorePair sparse_scores  # scratch: scores of the sparse part of the row that `score_sparse` saw last

    # Scores of the dense part: by the average, and by the last weights.
    cdef void average_scores(self, const ScaledRow* x, float* s) noexcept nogil
    cdef void last_scores(self, const ScaledRow* x, float* last) noexcept nogil
    cdef void score_sparse(self, const ScaledRow* x) noexcept nogil
    # w_r += c_r x for every label and the dense part, and the average of both parts takes in an update. The sparse
    # part has made its step before (sparse_steps.pyx).
    cdef void step(self, const double* c, const ScaledRow* x) noexcept nogil
    cdef void step_dense(self, const double* c, const ScaledRow* x) noexcept nogil
    cdef void shrink(self) noexcept nogil
    cdef void prefetch(self, const Row* row) noexcept nogil
