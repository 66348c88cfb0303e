"""How far a step of the sparse part goes: a pace for each label and each feature.

    w_jr += f_r c_r x~_j / (0.06 + sqrt(G_j))          for each non-zero j and the constant

With e = c / step, the error of each label,

    H_r += rate (e_r^2 - H_r),       f_r = sqrt(H' / (H_r + 0.1 H')),   H' the mean of H over labels
    G_j += x~_j^2 sum_r (f_r e_r)^2  counted before use

Rare labels and rare words take larger steps than frequent ones, and early steps are larger than late ones
(as in AdaGrad: Duchi, Hazan & Singer 2011). With ``forget``, G forgets as the counts of features do
(scaling.pyx): halved now and then.
"""

from libc.math cimport sqrtf

from superarm.native.cpu cimport kernels
from superarm.native.linear cimport prefetch_features

cdef double MIN_ERROR_SHARE = 0.1, TINY = 1e-12
cdef float STEP_OFFSET = 0.06


cdef class SparseStepSizes(Stage):
    """What has been stepped so far, by label and by feature.

    Args:
        k: labels.
        width: columns of the sparse part; 0 for none, and nothing to do.
        step: what the coefficients of a step were multiplied by.
        forget: the least weight of a new row.
    """

    def __init__(self, Py_ssize_t k, Py_ssize_t width, double step, double forget=0.0):
        self.k, self.width, self.step_size, self.forget = k, width, step, forget
        self.H = self.doubles("H", k if width > 0 else 0)
        self.G = self.floats("G", width + 1 if width > 0 else 0)
        self.updates = self.doubles("updates", 1)
        self.float_c = self.scratch_floats("float_c", k)

    cdef void step(self, AveragedWeights weights, double rate, double* c, const ScaledRow* x) noexcept nogil:
        cdef Py_ssize_t i, j, k = self.k
        cdef double mean = kernels.label_errors(self.H, c, self.step_size, rate, k) / k
        cdef double squared_norm = kernels.label_step_sizes(
            self.H, mean + TINY, MIN_ERROR_SHARE * mean + TINY, c, self.float_c, k
        )
        cdef float squared_step = <float>(squared_norm / (self.step_size * self.step_size))
        cdef float v, inverse = <float>(1.0 / weights.averaging.sparse_omega)
        for i in range(x.n):
            j, v = x.indices[i], x.sparse_factor * x.values[i]
            self.G[j] += v * v * squared_step
            kernels.adagrad_step(
                weights.sparse + 2 * k * j, self.float_c, v / (STEP_OFFSET + sqrtf(self.G[j])), inverse, k
            )
        j, v = self.width, x.sparse_bias
        self.G[j] += v * v * squared_step
        kernels.adagrad_step(
            weights.sparse + 2 * k * j, self.float_c, v / (STEP_OFFSET + sqrtf(self.G[j])), inverse, k
        )
        self.updates[0] += 1.0
        if self.updates[0] * self.forget > 1.0:
            self.updates[0] *= 0.5
            for j in range(self.width + 1):
                self.G[j] *= 0.5

    cdef void prefetch(self, const Row* row) noexcept nogil:
        if self.width > 0:
            prefetch_features(self.G, 1, row)
