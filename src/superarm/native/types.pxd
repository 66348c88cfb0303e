"""The contract of compiled code: what a row, a round, an answer and a draw are."""

from libc.stdint cimport int32_t, int64_t


cdef struct Row:
    # As it came: a dense part and a sparse part; either may be empty.
    const float* dense
    Py_ssize_t d
    const int32_t* indices  # increasing
    const float* values
    Py_ssize_t n  # stored entries of the sparse part


cdef struct ScaledRow:
    # As it reaches the weights: factor dense and a constant beside it, sparse_factor values and a constant beside them.
    const float* dense
    Py_ssize_t d
    float factor
    float bias
    const int32_t* indices
    const float* values
    Py_ssize_t n
    float sparse_factor
    float sparse_bias
    double squared_norm  # of both parts without the constants; infinite where a step must be refused


cdef struct Answer:
    # What is known about the row's label: a set and a bit, a label, or a likelihood for every label.
    bint hit
    Py_ssize_t label  # -1 where it is not known
    const double* likelihood  # of k labels; NULL for most


cdef struct DrawContext:
    # What a rule chooses from.
    const float* scores  # of the n eligible labels
    Py_ssize_t n
    Py_ssize_t m  # labels to show, at most n
    int64_t round
    const double* draw_state
    const Py_ssize_t* eligible  # the indices of these labels, increasing
    const float* all_scores  # of all labels, eligible or not, by their indices
    double coverage  # to keep, for a rule that promises one; 0: the rule's own


cdef struct Draw:
    # What a rule has chosen. Labels are positions in DrawContext.scores, until the core has made indices of them. The
    # rule finds both sizes at DrawContext.m, n_log and log_propensity at 0: it sets what is to be different.
    Py_ssize_t* drawn  # the set, in the order of the draw
    Py_ssize_t* top  # the top set, best first
    double* draw_log  # what the rule must know to be asked again
    Py_ssize_t size  # labels shown
    Py_ssize_t top_size
    Py_ssize_t n_log  # numbers written to draw_log
    double log_propensity  # log of the probability of the set


cdef struct Round:
    # One round, as `learn` sees it.
    const Row* row
    const ScaledRow* x
    const float* s  # scores of all labels, now, if `reads_scores`
    const Py_ssize_t* eligible  # labels that could be shown, increasing
    Py_ssize_t n
    const Py_ssize_t* drawn  # the shown set, in the order of the draw
    Py_ssize_t m
    const Py_ssize_t* top  # the top set, best first; top_size 0 if it is not known
    Py_ssize_t top_size
    double log_propensity
    const double* draw_log  # what the rule wrote down, n_log numbers
    Py_ssize_t n_log
    bint given  # another system chose the set
