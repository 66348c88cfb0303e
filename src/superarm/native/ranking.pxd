"""Scores to orders and probabilities: the order of a set, softmax, membership."""

from libc.math cimport expf


cdef inline void best_first(const float* s, const Py_ssize_t* drawn, Py_ssize_t m, Py_ssize_t* labels) noexcept nogil:
    """The labels of ``drawn``, by their scores; of equals, the one that was drawn first."""
    cdef Py_ssize_t i, l, r
    for i in range(m):
        l, r = i, drawn[i]
        while l > 0 and s[r] > s[labels[l - 1]]:
            labels[l] = labels[l - 1]
            l -= 1
        labels[l] = r


cdef inline bint contains(const Py_ssize_t* labels, Py_ssize_t m, Py_ssize_t label) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(m):
        if labels[i] == label:
            return True
    return False


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


cdef inline void softmax(const float* s, const Py_ssize_t* labels, Py_ssize_t n, double sharpness, double* p) noexcept nogil:
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
