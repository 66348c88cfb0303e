from superarm.native.stage cimport Stage
from superarm.native.types cimport Features


cdef class RandomFeatures(Stage):
    """Random waves of a row: the curved features phi."""

    cdef readonly Py_ssize_t d, n_frequencies, copies, groups, blocks, group_size  # projections of each group
    cdef readonly double forget, share, stretch, turns, to_z
    cdef float* sign  # groups x blocks x 3 x 256
    cdef float* mean  # of the 2 P waves
    cdef float* var
    cdef float* inverse  # 1 / sd, now and then brought up to date
    cdef float* previous  # the last row
    cdef float* relevance  # of every column
    cdef float* slope  # the running mean of its squared slope
    cdef double* bank_gradient  # of the waves of z and those of a z: the running mean of their squared slopes
    cdef double* bank_scale  # of both
    cdef double* seen  # by the places in random_features.pyx
    # of the row that was lifted last:
    cdef float* angle
    cdef float* raw
    cdef float* phi
    cdef double squares, factor  # of phi: its squared length, and the factor that makes it half-way
    cdef float* columns
    cdef float* work

    cdef double current_bandwidth(self) noexcept nogil
    cdef void lift(self, const Features* x, Features* phi) noexcept nogil
    cdef void lifted(self, Features* phi) noexcept nogil  # the phi that `lift` has made
    cdef void apply_bank_scale(self) noexcept nogil
    cdef void add_bank_gradients(self, const float* curved_gradient, double rate) noexcept nogil
    cdef void project_back(self) noexcept nogil
    cdef void update_stats(self, const Features* x) noexcept nogil
    # Take in the slope of the loss along every column: from those along phi and along the row.
    cdef void learn_relevance(self, const float* curved_gradient, const float* linear_gradient) noexcept nogil
