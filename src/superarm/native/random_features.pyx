"""Random Fourier features of a row, so that a linear model of them is not linear in the row (Rahimi & Recht 2007).

With z the standardised dense part of a row (scaling.pyx, before the constant takes its share):

    u    = P random projections, half of them of z and half of a z, each about N(0, |z|^2) and N(0, |a z|^2),
           times clip(5.5 sqrt(q), 1, 4)
    phi  = [cos u, sin u], each feature standardised online, clipped to ±5, as long as half-way between 1 and its
           own length: what scaling does to a row, again

**The projections** (Le, Sarlos & Smola 2013, "Fastfood", in spirit). 256 numbers are 16 rows of 16 lanes. One
stage turns row i by i lanes, flips signs at random and takes the Walsh-Hadamard transform over the rows; three
stages are as good as a Gaussian matrix and cost O(256 log 256). Fewer than 64 columns are written several times.
Longer rows than 256 are cut into blocks, each with signs of its own; they are added up before the last transform. The
projections are an even number of groups, each with signs of its own: even groups of z, odd ones of a z. The signs are
a function of the seed.

**The bandwidth.** q, the running mean of (z . z')^2 over rows z, z' that follow each other, is one over the
effective dimension of the rows.

**The relevance** a_j of a column: the root mean square of the loss's slope along it, by the averages of the linear
and of the features' weights, over all columns 1 in the mean square. A column that does not matter leaves the features of
a z, and their bandwidth is spent on those that do; where all matter, the features of z serve better.

**The scale** l_b of a bank, the features of z or those of a z, by which phi is multiplied, is learnt in the same way:
the root mean square of the slope along its features as they are before it (divided by l_b), over both banks 1 in the mean
square, and l_b^2 within [0.1, 1.9].

`transform` reads the state, `update_stats` and `learn_relevance` move it.
"""

from libc.math cimport floor, pi, sqrt
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from superarm.native.arrays cimport float_data
from superarm.native.cpu cimport kernels
from superarm.native.randomness cimport uniform

cdef double BANDWIDTH_FACTOR = 5.5, MIN_BANDWIDTH = 1.0, MAX_BANDWIDTH = 4.0
cdef Py_ssize_t BLOCK_SIZE = 256
cdef Py_ssize_t MIN_SPREAD = 64  # columns should fill as many of the 256 places
cdef double EVERY_ROW_UNTIL = 256.0
cdef double FIRST_DIMENSION = 16.0  # effective dimension at the start, and the weight of it in rows
cdef double GRADIENT_WINDOW = 3.0
cdef double MIN_BANK_WEIGHT = 0.1  # l_b^2; the other bank has the rest of 2


cdef class RandomFeatures(Stage):
    """The projections, and what the rows seen so far say about the features and the columns.

    Args:
        d: columns of the dense part.
        n_frequencies: P, as many cosines as sines; 0 for none.
        seed: the seed of the signs.
        bias: the constant beside the row, whose length is then sqrt(1 - bias^2).
        forget: the least weight of a new row.
    """

    def __init__(
        self, Py_ssize_t d, Py_ssize_t n_frequencies, uint64_t seed, double bias=0.0, double forget=0.0
    ):
        d = d if n_frequencies > 0 else 0
        self.d, self.n_frequencies, self.forget = d, n_frequencies, forget
        self.groups = 2 * ((n_frequencies + 2 * BLOCK_SIZE - 1) // (2 * BLOCK_SIZE))
        self.blocks = (d + BLOCK_SIZE - 1) // BLOCK_SIZE
        self.group_size = (n_frequencies + self.groups - 1) // max(1, self.groups)
        self.copies = max(1, MIN_SPREAD // max(1, d))
        # Factors that several methods and onnx.py share:
        self.row_length = (1.0 - bias * bias) ** 0.5  # |x~| / |z|, the constant feature having the rest
        # to projections: three stages enlarge by 4 each
        self.projection_scale = (BLOCK_SIZE / 16.0**3 / self.copies) ** 0.5
        # from x~ to turns of the circle, at a bandwidth of 1
        self.turns_per_unit = self.projection_scale / self.row_length / (2.0 * pi)
        self.dot_factor = self.row_length**-4.0  # from (x~ . x~')^2 to (z . z')^2
        self.sign = self.floats("sign", (self.groups, self.blocks, 3, BLOCK_SIZE))
        self.mean, self.var = self.floats("mean", 2 * n_frequencies), self.floats("var", 2 * n_frequencies)
        self.inverse = self.floats("inverse", 2 * n_frequencies)
        self.previous, self.slope = self.floats("previous", d), self.floats("slope", d)
        self.relevance = self.floats("relevance", d, 1.0)
        self.bank_gradient, self.bank_scale = self.doubles("bank_gradient", 2), self.doubles(
            "bank_scale", 2, 1.0
        )
        self.counters = <FeatureCounters*>self.doubles("counters", sizeof(FeatureCounters) // sizeof(double))
        self.counters.inverse_dimension = 1.0 / FIRST_DIMENSION
        self.angle = self.scratch_floats("angle", self.groups * self.group_size + BLOCK_SIZE)
        self.raw = self.scratch_floats("raw", 2 * n_frequencies)
        self.features = self.scratch_floats("features", 2 * n_frequencies)
        self.columns = self.scratch_floats("columns", d)
        self.work = self.scratch_floats("work", 6 * BLOCK_SIZE)
        self.factor = 1.0
        cdef Py_ssize_t i
        for i in range(self.groups * self.blocks * 3 * BLOCK_SIZE):  # no round has the number -1
            self.sign[i] = 1.0 if uniform(seed, <uint64_t>-1, i) < 0.5 else -1.0

    cdef double current_bandwidth(self) noexcept nogil:
        return min(
            MAX_BANDWIDTH, max(MIN_BANDWIDTH, BANDWIDTH_FACTOR * sqrt(self.counters.inverse_dimension))
        )

    cdef void transform(self, const ScaledRow* x, ScaledRow* phi) noexcept nogil:
        cdef float scale = x.factor * <float>(self.current_bandwidth() * self.turns_per_unit)
        cdef double typical = self.counters.mean_squared_norm
        self.project(x.dense)
        self.squared_norm = kernels.random_features(
            self.angle, scale, self.mean, self.inverse, self.raw, self.features, self.n_frequencies
        )
        self.factor = 1.0
        if self.squared_norm > 0.0:
            self.factor = 1.0 / sqrt(
                sqrt(self.squared_norm * (typical if typical > 0.0 else self.squared_norm))
            )
        self.last_features(phi)

    cdef void last_features(self, ScaledRow* phi) noexcept nogil:
        phi.dense, phi.d = self.features, 2 * self.n_frequencies
        phi.factor, phi.bias = <float>self.factor, 0.0
        phi.indices, phi.values, phi.n = NULL, NULL, 0
        phi.sparse_factor, phi.sparse_bias = 1.0, 0.0
        phi.squared_norm = self.squared_norm * self.factor * self.factor

    cdef void update_stats(self, const ScaledRow* x) noexcept nogil:
        """Update the statistics by the row that was transformed last."""
        cdef FeatureCounters* counters = self.counters
        cdef double dot = kernels.dot_and_keep(x.dense, x.factor, self.previous, self.d), rate
        counters.n_rows += 1.0
        rate = max(1.0 / (counters.n_rows + FIRST_DIMENSION), self.forget)
        counters.inverse_dimension += (self.dot_factor * (dot * dot) - counters.inverse_dimension) * rate
        rate = max(1.0 / counters.n_rows, max(0.001, self.forget))
        counters.mean_squared_norm += (self.squared_norm - counters.mean_squared_norm) * rate
        if counters.n_rows < EVERY_ROW_UNTIL or <int64_t>counters.n_rows % STATS_INTERVAL == 0:
            counters.n_counted += 1.0
            rate = max(1.0 / counters.n_counted, min(1.0, STATS_INTERVAL * self.forget))
            kernels.update_mean_var(
                self.raw, self.mean, self.var, <float>rate, <float>(1.0 - rate), 2 * self.n_frequencies
            )
        # 1/sd moves slowly: every row at first, then after each further 1 %
        if counters.n_rows >= counters.next_inverse:
            counters.next_inverse = counters.n_rows + 1.0 + floor(counters.n_rows * 0.01)
            kernels.inverse_root(self.var, self.inverse, 2 * self.n_frequencies)
            self.apply_bank_scale()

    cdef void apply_bank_scale(self) noexcept nogil:
        """To 1/sd, so that no feature costs one multiplication more."""
        cdef Py_ssize_t g, n
        cdef float l
        for g in range(self.groups):
            n = min(self.group_size, self.n_frequencies - g * self.group_size)
            l = <float>self.bank_scale[g % 2]
            kernels.multiply(self.inverse + g * self.group_size, l, n)
            kernels.multiply(self.inverse + self.n_frequencies + g * self.group_size, l, n)

    cdef void project(self, const float* z) noexcept nogil:
        """Fill `angle` with the projections of z."""
        kernels.project(
            self.sign, self.groups, self.blocks, z, self.relevance, self.d, self.copies, self.group_size,
            self.work, self.angle,
        )

    cdef void project_back(self) noexcept nogil:
        """From `angle` to `columns`."""
        cdef Py_ssize_t i
        # an odd number of frequencies leaves one over
        for i in range(self.n_frequencies, self.groups * self.group_size):
            self.angle[i] = 0.0
        kernels.project_back(
            self.sign, self.groups, self.blocks, self.angle, self.relevance, self.d, self.copies,
            self.group_size, self.work, self.columns,
        )

    cdef void add_bank_gradients(self, const float* feature_gradient, double rate) noexcept nogil:
        cdef double squared_norms[2]
        cdef Py_ssize_t g, n
        squared_norms[0], squared_norms[1] = 0.0, 0.0
        for g in range(self.groups):
            n = min(self.group_size, self.n_frequencies - g * self.group_size)
            squared_norms[g % 2] += kernels.sum_squares(feature_gradient + g * self.group_size, n)
            squared_norms[g % 2] += kernels.sum_squares(
                feature_gradient + self.n_frequencies + g * self.group_size, n
            )
        for g in range(2):
            self.bank_gradient[g] += rate * (
                squared_norms[g] / self.bank_scale[g] ** 2 - self.bank_gradient[g]
            )

    cdef void learn_relevance(
        self, const float* feature_gradient, const float* linear_gradient
    ) noexcept nogil:
        """Update relevance and scales by the gradients at the row that was transformed last; overwrites its angles."""
        cdef FeatureCounters* counters = self.counters
        cdef double* bank = self.bank_gradient
        cdef Py_ssize_t j
        cdef float scale = <float>(self.projection_scale * self.current_bandwidth() * self.factor), rate
        cdef double total, share
        kernels.angle_slopes(feature_gradient, self.inverse, self.raw, self.angle, self.n_frequencies)
        self.project_back()
        counters.n_gradients += 1.0
        rate = <float>max(
            GRADIENT_WINDOW / (counters.n_gradients + GRADIENT_WINDOW),
            min(1.0, STATS_INTERVAL * self.forget)
        )
        self.add_bank_gradients(feature_gradient, rate)
        total = kernels.update_slopes(
            scale, self.columns, <float>self.row_length, linear_gradient, rate, self.slope, self.d
        )
        # the features change with it: seldom, after each further 10 %
        if counters.n_gradients >= counters.next_relevance and total > 0.0:
            counters.next_relevance = 1.1 * counters.n_gradients + 8.0
            for j in range(self.d):
                self.relevance[j] = <float>sqrt(<double>self.slope[j] * self.d / total)
            if bank[0] + bank[1] > 0.0:
                for j in range(2):
                    share = min(
                        2.0 - MIN_BANK_WEIGHT, max(MIN_BANK_WEIGHT, 2.0 * bank[j] / (bank[0] + bank[1]))
                    )
                    self.bank_scale[j] = sqrt(share)

    def projections(self, x):
        """Return u of a row z, before its bandwidth: the bias apart, about N(0, |z|^2) or N(0, |a z|^2) each."""
        row = np.ascontiguousarray(x, np.float32)
        self.project(float_data(row))
        return self._scratch["angle"][: self.n_frequencies].astype(np.float64) * self.projection_scale

    @property
    def mean_squared_norm(self):
        """The mean of |phi|^2 over the rows seen so far, before phi gets its length."""
        return self.counters.mean_squared_norm

    @property
    def bandwidth(self):
        """clip(5.5 sqrt(q), 1, 4)."""
        return self.current_bandwidth()
