"""Rows and weights: scores W x, and steps W += c x.

    dense    label-major    W[label, feature]     one label's weights are contiguous
    sparse   feature-major  W[feature, label]     one feature's weights are contiguous

Each part has room for one more feature at its end, the constant beside it; dense rows of W are padded to whole
cache lines. A row with both parts has the sum of both scores.
"""

from libc.math cimport fabs
from libc.string cimport memset

import numpy as np

from superarm.native.cpu cimport kernels
from superarm.native.prefetch cimport superarm_prefetch_far


cdef class Weights(Stage):
    """One matrix of weights.

    Args:
        k: labels.
        d, width: columns of the dense and of the sparse part.
        value: what they start with.
    """

    def __init__(self, Py_ssize_t k, Py_ssize_t d, Py_ssize_t width, double value=0.0):
        self.k, self.d, self.width = k, d, width
        self.stride = padded_width(d)
        self.dense = self.floats("dense", (k, self.stride), value) if d > 0 else NULL
        self.sparse = self.floats("sparse", (width + 1, k), value) if width > 0 else NULL

    cdef void scores(self, const ScaledRow* x, float* s) noexcept nogil:
        if self.d > 0:
            kernels.scores(self.dense, self.stride, self.k, self.d, x.dense, x.factor, x.bias, s)
        else:
            memset(s, 0, self.k * sizeof(float))
        if self.width > 0:
            kernels.axpy(s, x.sparse_bias, self.sparse + self.width * self.k, self.k)
            kernels.sparse_scores(self.sparse, self.k, x.indices, x.values, x.n, x.sparse_factor, s)

    cdef bint add_outer(
        self, const Py_ssize_t* labels, const double* c, Py_ssize_t n, const ScaledRow* x
    ) noexcept nogil:
        """w_r += c_r x for n pairs (r, c_r); False, and nothing done, if W might overflow."""
        if not safe_to_add(c, n, x):
            return False
        if self.d > 0:
            kernels.dense_add(self.dense, self.stride, labels, c, n, x.dense, self.d, x.factor, x.bias)
        if self.width > 0:
            kernels.sparse_add(
                self.sparse, self.k, self.width, labels, c, n, x.indices, x.values, x.n, x.sparse_factor,
                x.sparse_bias,
            )
        return True

    def subtract_mean(self):
        """Subtract the mean of all labels' weights: no ranking changes, and float32 stays sharp."""
        for part, W in self.arrays.items():
            W -= W.mean(axis=0 if part == "dense" else 1, dtype=np.float64, keepdims=True).astype(np.float32)

    cdef void prefetch(self, const Row* row) noexcept nogil:
        """Prefetch the weights of a sparse row. (Dense rows want all weights, which are at hand.)"""
        if self.width > 0:
            prefetch_features(self.sparse, self.k, row)


cdef bint norm_is_safe(const ScaledRow* x) noexcept nogil:
    """Return whether |x| is at most 10^15: even 10^8 steps of 10^15 along it cannot make a weight infinite."""
    return x.squared_norm <= 1e30


cdef bint safe_to_add(const double* c, Py_ssize_t n, const ScaledRow* x) noexcept nogil:
    """Return whether adding c x keeps far from the largest float: |c| at most 10^15, and `norm_is_safe`."""
    cdef double peak = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        peak += fabs(c[i])
    return peak <= 1e15 and norm_is_safe(x)


cdef double squared_norm_with_bias(const ScaledRow* x) noexcept nogil:
    """Return the squared length of what reaches the weights, constants included."""
    return x.squared_norm + <double>x.bias * <double>x.bias + <double>x.sparse_bias * <double>x.sparse_bias


cdef void prefetch_features(const float* W, Py_ssize_t k, const Row* row) noexcept nogil:
    """Prefetch the k numbers of each sparse feature of the row."""
    cdef Py_ssize_t i
    cdef const float* w
    for i in range(row.n):
        w = W + <Py_ssize_t>row.indices[i] * k
        superarm_prefetch_far(w)  # more than two lines that follow each other, the processor finds itself
        superarm_prefetch_far(w + min(k, 2 * LINE_FLOATS) - 1)
