"""Scores to orders and probabilities: the order of a set, softmax, membership."""

from libc.math cimport expf
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from superarm.native.types cimport Draw


cdef inline void best_first(
    const float* s, const Py_ssize_t* drawn, Py_ssize_t m, Py_ssize_t* labels
) noexcept nogil:
    """The labels of ``drawn``, by their scores; of equals, the one that was drawn first."""
    cdef Py_ssize_t i, l, r
    for i in range(m):
        l, r = i, drawn[i]
        while l > 0 and s[r] > s[labels[l - 1]]:
            labels[l] = labels[l - 1]
            l -= 1
        labels[l] = r


cdef inline Py_ssize_t write_sets(const float* s, const Draw* draw, Py_ssize_t* flat) noexcept nogil:
    """Write the DecisionSets (decisions/decision.py) of a draw, one after the other. Return how many indices these are."""
    best_first(s, draw.drawn, draw.size, flat)
    memcpy(flat + draw.size, draw.drawn, draw.size * sizeof(Py_ssize_t))
    memcpy(flat + 2 * draw.size, draw.top, draw.top_size * sizeof(Py_ssize_t))
    return 2 * draw.size + draw.top_size


cdef inline bint contains(const Py_ssize_t* labels, Py_ssize_t m, Py_ssize_t label) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(m):
        if labels[i] == label:
            return True
    return False


ctypedef fused Sortable:
    float
    int32_t
    Py_ssize_t


cdef inline void insert_sorted(Sortable* ordered, Py_ssize_t n, Sortable value) noexcept nogil:
    """Put a value into its place among n increasing ones."""
    while n > 0 and ordered[n - 1] > value:
        ordered[n] = ordered[n - 1]
        n -= 1
    ordered[n] = value


cdef inline Py_ssize_t position(const Py_ssize_t* values, Py_ssize_t n, Py_ssize_t value) noexcept nogil:
    """Where ``value`` stands in increasing ``values``."""
    cdef Py_ssize_t low = 0, high = n - 1, middle
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline void softmax(
    const float* s, const Py_ssize_t* labels, Py_ssize_t n, double sharpness, double* p
) noexcept nogil:
    """p_i = softmax(sharpness s) over the given labels, in their order."""
    cdef Py_ssize_t i
    cdef float a = <float>sharpness, high = s[labels[0]]
    cdef double total = 0.0, scale
    for i in range(1, n):
        if s[labels[i]] > high:
            high = s[labels[i]]
    for i in range(n):
        p[i] = expf(a * (s[labels[i]] - high))
        total += p[i]
    scale = 1.0 / total
    for i in range(n):
        p[i] *= scale
