from superarm.native.stage cimport Stage
from superarm.native.types cimport ScaledRow


cdef enum:
    # the statistics of the features, and the slopes, take in every 8th row; at first every one
    STATS_INTERVAL = 8


cdef struct FeatureCounters:
    double n_rows
    double n_counted  # rows in mean and var
    double mean_squared_norm  # of |phi|^2, before it gets its length
    double next_inverse  # the row at which 1 / sd is due again
    double inverse_dimension  # q
    double n_gradients
    double next_relevance  # the gradient at which the relevance is due again


cdef class RandomFeatures(Stage):
    cdef readonly Py_ssize_t d, n_frequencies, copies, groups, blocks, group_size  # projections of each group
    cdef readonly double forget, row_length, projection_scale, turns_per_unit, dot_factor
    cdef float* sign  # groups x blocks x 3 x 256
    cdef float* mean  # of the 2 P features
    cdef float* var
    cdef float* inverse  # 1 / sd, now and then brought up to date
    cdef float* previous  # the last row
    cdef float* relevance  # of every column
    cdef float* slope  # the running mean of its squared slope
    # of the features of z and those of a z: the running mean of their squared slopes
    cdef double* bank_gradient
    cdef double* bank_scale  # of both
    cdef FeatureCounters* counters
    # of the row that was transformed last:
    cdef float* angle
    cdef float* raw
    cdef float* features
    # of the features: their squared norm, and the factor that makes their length half-way
    cdef double squared_norm, factor
    cdef float* columns
    cdef float* work

    cdef double current_bandwidth(self) noexcept nogil
    cdef void transform(self, const ScaledRow* x, ScaledRow* phi) noexcept nogil
    cdef void last_features(self, ScaledRow* phi) noexcept nogil  # those that `transform` has made
    cdef void apply_bank_scale(self) noexcept nogil
    cdef void add_bank_gradients(self, const float* feature_gradient, double rate) noexcept nogil
    cdef void project(self, const float* z) noexcept nogil
    cdef void project_back(self) noexcept nogil
    cdef void update_stats(self, const ScaledRow* x) noexcept nogil
    # Take in the slope of the loss along every column: from those along the features and along the row.
    cdef void learn_relevance(
        self, const float* feature_gradient, const float* linear_gradient
    ) noexcept nogil
