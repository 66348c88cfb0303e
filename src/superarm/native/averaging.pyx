"""Weights W that keep moving, and their running average, for both parts of a row.

After update t the average moves by rho_t (W - average), rho_t = max(w / (t + w), forget), with a window w of
3 (dense part) or 20 (sparse part).

    dense    A is the average; it takes W in every 8 updates (every update at first), with the rho of all of
             them at once; in between, steps below MIN_STEP (most of them) are not made
    sparse   average = W - omega A, exactly: what a step adds to W, it adds to A divided by omega, and omega
             shrinks by 1 - rho, so only the non-zeros of x are touched (sparse_steps.pyx has the step)
"""

from libc.stdint cimport int64_t

import numpy as np

from superarm.native.cpu cimport kernels
from superarm.native.linear cimport padded_width, prefetch_features

cdef double DENSE_WINDOW = 3.0, SPARSE_WINDOW = 20.0
cdef enum:
    AVERAGE_INTERVAL = 8
    EVERY_UPDATE_UNTIL = 64
cdef double MIN_OMEGA = 1e-12  # omega starts anew below it, before 1 / omega outgrows float32
# dense steps below it are left out (but for the constant) when the average does not take W in
cdef double MIN_STEP = 3e-4


cdef class AveragedWeights(Stage):
    """Weights and their running average.

    Args:
        k: labels.
        d, width: columns of the dense and of the sparse part.
        forget: the least rate of the average.
    """

    def __init__(self, Py_ssize_t k, Py_ssize_t d, Py_ssize_t width, double forget=0.0):
        self.k, self.d, self.width, self.forget = k, d, width, forget
        self.stride = padded_width(d)
        self.W, self.A = self.floats("W", (k, self.stride)), self.floats("A", (k, self.stride))
        self.sparse = self.floats("sparse", (width + 1 if width > 0 else 0, 2, k))
        self.averaging = <AveragingState*>self.doubles(
            "averaging_state", sizeof(AveragingState) // sizeof(double), 1.0
        )
        self.averaging.updates = 0.0
        self.sparse_scores = score_pair(self.scratch_floats("sparse_scores", 2 * k), k)

    cdef void average_scores(self, const ScaledRow* x, float* s) noexcept nogil:
        kernels.scores(self.A, self.stride, self.k, self.d, x.dense, x.factor, x.bias, s)

    cdef void last_scores(self, const ScaledRow* x, float* last) noexcept nogil:
        kernels.scores(self.W, self.stride, self.k, self.d, x.dense, x.factor, x.bias, last)

    cdef void score_sparse(self, const ScaledRow* x) noexcept nogil:
        cdef Py_ssize_t r, k = self.k
        cdef float* both = self.sparse_scores.last  # side by side with those of A, which become the average's
        cdef const float* w = self.sparse + 2 * k * self.width
        cdef float omega = <float>self.averaging.sparse_omega
        for r in range(2 * k):
            both[r] = x.sparse_bias * w[r]
        kernels.sparse_scores(self.sparse, 2 * k, x.indices, x.values, x.n, x.sparse_factor, both)
        for r in range(k):
            both[k + r] = both[r] - omega * both[k + r]

    cdef void step(self, const double* c, const ScaledRow* x) noexcept nogil:
        if self.d > 0:
            self.step_dense(c, x)
        if self.width > 0:
            self.shrink()
        self.averaging.updates += 1.0

    cdef void step_dense(self, const double* c, const ScaledRow* x) noexcept nogil:
        cdef AveragingState* state = self.averaging
        cdef double updates = state.updates + 1.0
        cdef Py_ssize_t r, d = self.d
        cdef float rate
        cdef float* w
        cdef float* a
        state.dense_omega *= 1.0 - averaging_rate(state.updates, self.forget, DENSE_WINDOW)
        rate = <float>(1.0 - state.dense_omega)
        if updates >= EVERY_UPDATE_UNTIL and <int64_t>updates % AVERAGE_INTERVAL != 0:
            kernels.step_rows(self.W, self.stride, c, self.k, MIN_STEP, x.dense, x.factor, x.bias, d)
            return
        state.dense_omega = 1.0
        for r in range(self.k):
            w, a = self.W + r * self.stride, self.A + r * self.stride
            w[d] += <float>c[r] * x.bias
            kernels.step_and_average(w, a, x.factor * <float>c[r], x.dense, rate, d)
            a[d] += rate * (w[d] - a[d])

    cdef void shrink(self) noexcept nogil:
        """The average of the sparse part takes in an update that A already has."""
        cdef AveragingState* state = self.averaging
        cdef Py_ssize_t i, r, k = self.k
        cdef float* a
        state.sparse_omega *= 1.0 - averaging_rate(state.updates, self.forget, SPARSE_WINDOW)
        if state.sparse_omega < MIN_OMEGA:  # rare
            for i in range(self.width + 1):
                a = self.sparse + (2 * i + 1) * k
                for r in range(k):
                    a[r] *= <float>state.sparse_omega
            state.sparse_omega = 1.0

    cdef void prefetch(self, const Row* row) noexcept nogil:
        if self.width > 0:
            prefetch_features(self.sparse, 2 * self.k, row)

    def average(self):
        """Return the average itself: of the dense part (k, d + 1), of the sparse part (width + 1, k)."""
        W, A = self.arrays["sparse"][:, 0], self.arrays["sparse"][:, 1]
        return self.arrays["A"][:, : self.d + 1], W - np.float32(self.averaging.sparse_omega) * A
