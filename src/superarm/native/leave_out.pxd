from libc.stdint cimport int64_t, uint64_t

from superarm.native.rule cimport RuleKernel
from superarm.native.types cimport Draw, DrawContext


cdef class LeaveOutKernel(RuleKernel):
    cdef readonly double uniform  # the share of sets drawn uniformly
    cdef double* p  # of each position, but for the factor `scale`; labels that are tied share theirs evenly
    cdef double scale
    # the running sums of the probabilities with which ranks 1, 2, ... are left out, from 0 on
    cdef double* sums
    cdef Py_ssize_t n_sums
    cdef Py_ssize_t* order  # positions by rank, tied ones in the order of the draw; one more than n_ranks
    cdef Py_ssize_t* ranking  # the same, tied ones by score and position: what does not depend on the draw
    cdef Py_ssize_t m  # labels of the set before any is left out
    cdef Py_ssize_t n_ranks  # ranks that may be shown: more than m, where the next ones fill up
    cdef bint may_leave_out_two  # else one
    # groups of tied labels; without ties, each rank is a group of its own
    cdef bint has_ties
    cdef Py_ssize_t n_groups
    cdef Py_ssize_t* group_of_rank
    cdef Py_ssize_t* group_size  # in labels
    cdef Py_ssize_t* group_ranks
    cdef float* lowest_score  # of each group
    cdef float* highest_score
    cdef Py_ssize_t* group_count  # scratch space, while a set is compared with ranks
    cdef Py_ssize_t* member  # scratch space, of positions

    cdef void fill_softmax(self, const DrawContext* context) noexcept nogil
    cdef void break_ties(
        self, const DrawContext* context, Py_ssize_t m, Py_ssize_t n_ranks, double more_tolerance
    ) noexcept nogil
    cdef bint draw_set(self, const DrawContext* context, Draw* draw) noexcept nogil
    cdef Py_ssize_t write_log(
        self, const DrawContext* context, double* draw_log, Py_ssize_t at
    ) noexcept nogil
    cdef bint in_group(self, Py_ssize_t g, float score) noexcept nogil
    cdef Py_ssize_t group_of(self, float score) noexcept nogil
    cdef double interval_probability(self, Py_ssize_t first, Py_ssize_t second) noexcept nogil
    cdef double set_probability(self, const float* s, const Py_ssize_t* drawn, Py_ssize_t size) noexcept nogil
    cdef double count_groups(self, const float* s, const Py_ssize_t* drawn, Py_ssize_t size) noexcept nogil
    cdef double length_of_matches(self) noexcept nogil
    cdef void find_groups(self, const float* s, Py_ssize_t n, float tolerance) noexcept nogil
    cdef void order_group(
        self, const float* s, Py_ssize_t n, Py_ssize_t g, Py_ssize_t start, int64_t round, uint64_t* draw
    ) noexcept nogil


cdef inline Py_ssize_t interval(double u, const double* sums, Py_ssize_t n_sums) noexcept nogil:
    """Return the i with sums[i] <= u < sums[i + 1]; -1 for none. It counts, as a branch could not be predicted."""
    cdef Py_ssize_t i, below = 0
    for i in range(1, n_sums + 1):
        below += sums[i] <= u
    return below if below < n_sums else -1
