from superarm.native.averaging cimport AveragedWeights
from superarm.native.core cimport Core
from superarm.native.curves cimport Curves, Noise
from superarm.native.sparse_steps cimport SparseStepSizes
from superarm.native.part_gates cimport PartGates
from superarm.native.types cimport Answer, Features, Round


cdef class SetLogitCore(Core):
    """The likelihood of one answer, online."""

    cdef readonly AveragedWeights weights
    cdef readonly Curves curves
    cdef readonly SparseStepSizes step_sizes
    cdef readonly PartGates part_gates
    cdef readonly bint mixed_rows
    cdef public double step  # of the dense part and its curves
    cdef readonly double sparse_step
    cdef readonly double average_share  # of the average, in post
    cdef readonly double revive  # of post that labels which were not shown give to each other, on a miss
    cdef readonly Py_ssize_t none_label  # the label that is never shown takes no part in that; -1 if there is none
    cdef Noise noise
    cdef double* mean_posterior  # the running average of post
    cdef float* last  # scratch: the scores of W
    cdef float* mixed
    cdef float* exp_scratch
    cdef double* post
    cdef double* c  # p of the dense part, then its step
    cdef double* sparse_c  # of the sparse part
    cdef void set_last_scores(self, const Features* x) noexcept nogil
    cdef void set_posterior(self, const float* s, const Py_ssize_t* drawn, Py_ssize_t m, const Answer* answer) noexcept nogil
    cdef void set_probabilities(self, const Round* round, const Answer* answer) noexcept nogil


# Turn p, the probabilities of k labels, in place into those given a likelihood of every label, or a bit.
cdef void times_likelihood(double* p, Py_ssize_t k, const double* likelihood) noexcept nogil
cdef void given_bit(double* p, Py_ssize_t k, const Noise* noise, double revive, Py_ssize_t none_label, const double* mean_posterior, const Py_ssize_t* drawn, Py_ssize_t m, bint hit, double* revive_weights) noexcept nogil
