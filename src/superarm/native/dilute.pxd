from superarm.native.rule cimport Rule


cdef class DiluteRule(Rule):
    cdef readonly double gamma
    cdef dict precomputed  # by (n, m): a, b and log_set
    # of the n and m that were prepared last
    cdef readonly double a, b
    cdef const double* log_set  # log of the probability of a set with |S n Y^| = j, j = 0..m
    cdef Py_ssize_t* pool  # labels of the top set that are still to be had
    cdef Py_ssize_t* skip  # positions that are not, in increasing order
