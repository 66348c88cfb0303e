"""Rows on one scale, so that no step needs tuning to the data. Scaling belongs to the learner.

**UnitScaling**: x~ = x / |x| over both parts of the row, as the paper's learners assume; one constant beside it.

**StandardScaling**, learnt online, each part of a row on its own:

    dense    z_j = soft_clip((x_j - mean_j) / sd_j),  soft_clip(v) = v up to ±5, beyond ±(7.5 - 12.5 / |v|)
             x~ = z sqrt((1 - bias^2) / (|z| rms|z|))
    sparse   z_j = x_j (log((n + 1) / df_j) + 0.1),  x~ = z sqrt(1 - bias^2) / |z|

The root mean square of |z| runs over the rows seen so far; df_j counts those whose feature j is not zero. Beside each
part stands a constant feature. Multiplying all features by a number changes nothing. `scale` reads the statistics,
`update_stats` counts in the row that was scaled last. ``forget`` (0 for never) is the least weight of a new row.

**One bad value cannot spoil a column.** A value far outside counts as the edge of what is usual. For each column,
with n values counted, of which a share `nonmode_share` is not the mode (many columns are 0 nearly always):

    limit = 4 sqrt(var / nonmode_share)           no limit while var = 0: a constant column has no scale yet
    c     = clip(x - mean, ±limit)
    rate  = max(1 / (n + 1), forget)
    mean += rate c;   var = (1 - rate) (var + rate c^2);   nonmode_share += rate (1[x is not the mode] - nonmode_share)

so that a value moves the mean by at most rate times the limit and multiplies the variance by at most
1 + 16 rate / nonmode_share. The first values are kept until there are 16: up to there, mean and variance are
theirs, none counting as farther from their median than 6 times the median of the distances that are not 0; the
mode is that median. A column that changes is followed:

    wider, moved   more than half of the values that are not the usual one lie outside, by a running mean with a rate of
                   0.02: n is set to 32 at most, rate to 0.1 at least
    narrower       mean, var and nonmode_share of every 4th row, at a rate of 0.016, are kept as well. Where
                   var / nonmode_share is there less than 1/64 of what it is here, they are taken over, and n = 250
    new            what comes first in a column that was constant has no limit, and may be bad. While nonmode_share is below
                   8 rate (and 1/4), a value that is 32 times nearer to the mode than the root of var / nonmode_share
                   begins anew: mean is the mode, var = nonmode_share (x - mode)^2

What moves slowly is renewed seldom: 1 / sd, the limits and whether a column is narrower, with every row at first, then
after each further 1 %, or 100 rows; with every row while a column is wider or moved.

**Huge values.** A number beyond ±10^15 counts as ±10^15, so that no square leaves float32: an identifier of 19
digits is a constant column, not a row that nothing can be learnt from. NaN and infinity are refused.

**Named rows** (data/columns.py): the first ``n_numbers`` dense columns are numbers, and column n_numbers + j says
whether number j is missing. Then z_j = 0, and its statistics stay. All dense columns after the numbers are marks of 0
and ±1, which keep their scale (sd = 1): a rare word is not louder than a common one.
"""

from libc.math cimport INFINITY, NAN, fabsf, floor, log, sqrt, sqrtf
from libc.stdint cimport int64_t

from superarm.native.cpu cimport kernels
from superarm.native.linear cimport prefetch_features
from superarm.native.ranking cimport insert_sorted

cdef extern from "kernels.h":
    const float HUGE_NUMBER

cdef float MAX_FLOAT = 3.402823466e38
# of rows of length 1: what is made of other ones, in single precision, may be infinite
cdef double SMALLEST_NORM = 1e-30, LARGEST_NORM = 1e30
cdef float FAST_RATE = 0.016
cdef enum:
    N_FIRST = 16
    FAST_INTERVAL = 4  # the statistics that forget fast take in every 4th row


cdef struct ScalingCounters:  # of dense rows
    double n_rows
    double mean_squared_norm  # of |z|^2
    double next_refresh  # the row at which 1 / sd and limit are due again


cdef class Scaling(Stage):
    """Rows as they come, and what every scaling has: the widths of both parts."""

    def __init__(self, Py_ssize_t d, Py_ssize_t width):
        self.d, self.width = d, width

    cdef void scale(self, const Row* row, ScaledRow* x) noexcept nogil:
        x.dense, x.d = row.dense, row.d
        x.factor, x.bias = 1.0, 0.0
        x.indices, x.values, x.n = row.indices, row.values, row.n
        x.sparse_factor, x.sparse_bias = 1.0, 0.0
        x.squared_norm = 0.0

    cdef void update_stats(self, const Row* row) noexcept nogil:
        pass

    cdef void prefetch(self, const Row* row) noexcept nogil:
        pass


# ---------------------------------------------------------------- length 1


cdef class UnitScaling(Scaling):
    """Rows of length 1, beside a constant.

    Args:
        d, width: columns of the dense and of the sparse part.
        bias: the constant; it stands beside the dense part where there is one.
    """

    cdef readonly double bias

    def __init__(self, Py_ssize_t d, Py_ssize_t width, double bias):
        Scaling.__init__(self, d, width)
        self.bias = bias

    cdef void scale(self, const Row* row, ScaledRow* x) noexcept nogil:
        cdef float total = 0.0, factor = 1.0
        cdef double wide = 0.0, squared_norm = 1.0
        cdef Py_ssize_t i
        if row.d > 0:
            total = kernels.sum_squares(row.dense, row.d)
        if row.n > 0:
            total += kernels.sum_squares(row.values, row.n)
        if 1e-30 < total < 1e30:
            factor = <float>1.0 / sqrtf(total)
        else:  # a sum of squares outside of float32's range, a row of zeros, or NaN: slowly, in float64
            for i in range(row.d):
                wide += <double>row.dense[i] * <double>row.dense[i]
            for i in range(row.n):
                wide += <double>row.values[i] * <double>row.values[i]
            if wide < SMALLEST_NORM * SMALLEST_NORM:  # as a row of zeros: a step by it would be infinite
                squared_norm = 0.0
            else:
                factor = <float>(1.0 / sqrt(wide))
                if not sqrt(wide) <= LARGEST_NORM:
                    squared_norm = INFINITY
        x.dense, x.d = row.dense, row.d
        x.factor = factor
        x.indices, x.values, x.n = row.indices, row.values, row.n
        x.sparse_factor = factor
        x.bias = <float>self.bias if self.d > 0 else 0.0
        x.sparse_bias = 0.0 if self.d > 0 else <float>self.bias
        x.squared_norm = squared_norm


# ---------------------------------------------------------------- standardised


cdef class StandardScaling(Scaling):
    """Rows standardised online.

    Args:
        d, width: columns of the dense and of the sparse part.
        bias, sparse_bias: the constants beside them.
        forget: the least weight of a new row.
        n_numbers: of named rows, how many dense columns may be missing.
    """

    cdef readonly double bias, sparse_bias, forget
    cdef readonly Py_ssize_t n_numbers
    cdef ScalingCounters* counters
    # of each dense column; the equations are above
    cdef float* mean
    cdef float* var
    cdef float* inverse  # 1 / sd
    cdef float* n_values  # in mean and var
    cdef float* mode
    cdef float* nonmode_share
    cdef float* outlier_rate
    cdef float* fast_mean
    cdef float* fast_var
    cdef float* fast_nonmode_share
    cdef float* limit
    cdef float* first_values  # in order of size, so that no row can be read off; 0 later
    # of each sparse column, and of all
    cdef float* df
    cdef double* n_sparse_rows
    # of the row that was scaled last
    cdef float* z
    cdef float* repaired  # what is missing filled in, what is huge bounded
    cdef const float* x  # the row, repaired where it had to be
    cdef float* sparse_z
    cdef double squared_norm  # |z|^2

    def __init__(
        self, Py_ssize_t d, Py_ssize_t width, double bias, double sparse_bias, double forget=0.0,
        Py_ssize_t n_numbers=0,
    ):
        Scaling.__init__(self, d, width)
        self.bias, self.sparse_bias, self.forget, self.n_numbers = bias, sparse_bias, forget, n_numbers
        self.mean, self.var = self.floats("mean", d), self.floats("var", d)
        self.inverse = self.floats("inverse", d)
        self.counters = <ScalingCounters*>self.doubles("counters", sizeof(ScalingCounters) // sizeof(double))
        self.n_values = self.floats("n_values", d)
        self.mode, self.nonmode_share = self.floats("mode", d), self.floats("nonmode_share", d)
        self.outlier_rate = self.floats("outlier_rate", d)
        self.fast_mean, self.fast_var = self.floats("fast_mean", d), self.floats("fast_var", d)
        self.fast_nonmode_share = self.floats("fast_nonmode_share", d)
        self.limit = self.floats("limit", d)
        self.first_values = self.floats("first_values", (d, N_FIRST))
        self.df = self.floats("df", width)
        self.n_sparse_rows = self.doubles("n_sparse_rows", 1)
        self.z = self.scratch_floats("z", d)
        self.repaired = self.scratch_floats("repaired", d)
        self.x = self.repaired
        self.sparse_z = self.scratch_floats("sparse_z", width)

    cdef void scale(self, const Row* row, ScaledRow* x) noexcept nogil:
        x.dense, x.d = self.z, self.d
        x.factor, x.bias = 1.0, <float>self.bias if self.d > 0 else 0.0
        x.indices, x.values, x.n = row.indices, self.sparse_z, row.n
        x.sparse_factor = 1.0
        x.sparse_bias = <float>self.sparse_bias if self.width > 0 else 0.0
        x.squared_norm = 0.0
        if self.d > 0:
            x.squared_norm += self.scale_dense(row, x)
        if self.width > 0:
            x.squared_norm += self.scale_sparse(row)

    cdef double scale_dense(self, const Row* row, ScaledRow* out) noexcept nogil:
        """Fill z and its factor. Return its squared length, infinite where a step must be refused."""
        cdef const float* x = row.dense
        cdef float* z = self.z
        cdef Py_ssize_t j, d = self.d, n = self.n_numbers, huge = 0
        cdef double total, typical
        if n > 0:  # what is missing is as the mean
            for j in range(n):
                self.repaired[j] = x[j] if x[n + j] == 0.0 else self.mean[j]
            for j in range(n, d):
                self.repaired[j] = x[j]
            x = self.repaired
        total = kernels.standardise(x, self.mean, self.inverse, z, d, &huge)
        if huge:
            for j in range(d):
                if not fabsf(x[j]) <= MAX_FLOAT:  # clipping would hide NaN and infinity: the scores show them
                    z[j] = <float>NAN
                    return INFINITY
                self.repaired[j] = min(HUGE_NUMBER, max(-HUGE_NUMBER, x[j]))
            x = self.repaired
            total = kernels.standardise(x, self.mean, self.inverse, z, d, &huge)
        self.x, self.squared_norm = x, total
        if total > 0.0:
            typical = self.counters.mean_squared_norm if self.counters.mean_squared_norm > 0.0 else total
            out.factor = <float>sqrt((1.0 - self.bias * self.bias) / sqrt(total * typical))
        return total * <double>out.factor * <double>out.factor

    cdef double scale_sparse(self, const Row* row) noexcept nogil:
        cdef float* z = self.sparse_z
        cdef Py_ssize_t i, n = row.n
        cdef float v, total = 0.0, scale
        cdef double ratio, rows = self.n_sparse_rows[0] + 2.0
        cdef double rest = 1.0 - self.sparse_bias * self.sparse_bias
        for i in range(n):
            ratio = rows / (self.df[row.indices[i]] + 1.0)
            v = row.values[i]
            if HUGE_NUMBER < fabsf(v) <= MAX_FLOAT:
                v = HUGE_NUMBER if v > 0.0 else -HUGE_NUMBER
            v *= <float>(log(ratio if ratio > 1.0 else 1.0) + 0.1)
            z[i] = v
            total += v * v
        if total > 0.0:
            scale = <float>sqrt(rest / total)
            for i in range(n):
                z[i] *= scale
        if total <= MAX_FLOAT:
            return rest if total > 0.0 else 0.0
        return INFINITY  # NaN or infinity, which a step refuses

    cdef void update_stats(self, const Row* row) noexcept nogil:
        if self.d > 0:
            self.update_dense()
        if self.width > 0:
            self.update_sparse(row)

    cdef void update_dense(self) noexcept nogil:
        cdef const float* x = self.x
        cdef ScalingCounters* counters = self.counters
        cdef Py_ssize_t j, d = self.d, n = self.n_numbers
        cdef double rate = max(1.0 / (counters.n_rows + 1.0), self.forget)
        if n == 0:
            self.update_numbers(x, 0, d)
        else:
            for j in range(n):
                if x[n + j] == 0.0:
                    self.update_numbers(x, j, j + 1)
            kernels.update_mean_var(
                x + n, self.mean + n, self.var + n, <float>rate, <float>(1.0 - rate), d - n
            )
        counters.n_rows += 1.0
        rate = max(1.0 / counters.n_rows, max(0.001, self.forget))
        counters.mean_squared_norm += (self.squared_norm - counters.mean_squared_norm) * rate
        if counters.n_rows >= counters.next_refresh:
            counters.next_refresh = counters.n_rows + 1.0
            if kernels.refresh_limits(
                self.mean, self.var, self.n_values, self.nonmode_share, self.outlier_rate, self.fast_mean,
                self.fast_var, self.fast_nonmode_share, self.limit, d if n == 0 else n,
            ) == 0:
                counters.next_refresh += min(100.0, floor(counters.n_rows * 0.01))
            kernels.inverse_root(self.var, self.inverse, d)
            if n > 0:
                for j in range(n, d):  # marks keep their scale
                    self.inverse[j] = min(self.inverse[j], <float>1.0)

    cdef void update_numbers(self, const float* x, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t j
        if self.n_values[first] < N_FIRST:
            for j in range(first, last):
                self.init_stats(j, x[j])
            return
        if <int64_t>self.counters.n_rows % FAST_INTERVAL == 0:
            kernels.update_fast(
                x + first, self.mean + first, self.mode + first, self.limit + first, self.fast_mean + first,
                self.fast_var + first, self.fast_nonmode_share + first, FAST_RATE, last - first,
            )
        kernels.update_clipped(
            x + first, self.mean + first, self.var + first, self.n_values + first, self.mode + first,
            self.nonmode_share + first, self.outlier_rate + first, self.limit + first, <float>self.forget,
            last - first,
        )

    cdef void init_stats(self, Py_ssize_t j, float x) noexcept nogil:
        """Count one of the first values of a column: mean, variance and mode are those of all of them."""
        cdef float[N_FIRST] far
        cdef float* first = self.first_values + j * N_FIRST
        cdef Py_ssize_t i, n = <Py_ssize_t>self.n_values[j] + 1, zeros = 0
        cdef float middle, limit, gap
        cdef double mean = 0.0, square = 0.0
        insert_sorted(first, n - 1, x)
        middle = first[n // 2]
        for i in range(n):
            insert_sorted(far, i, fabsf(first[i] - middle))
        while zeros < n and far[zeros] == 0.0:
            zeros += 1
        limit = 0.0 if zeros == n else <float>6.0 * far[(zeros + n) // 2]
        for i in range(n):
            gap = min(limit, max(-limit, first[i] - middle))
            mean += gap
            square += <double>gap * gap
        mean /= n
        self.mean[j] = self.fast_mean[j] = middle + <float>mean
        self.var[j] = self.fast_var[j] = <float>max(0.0, square / n - mean * mean)
        self.mode[j] = middle
        self.nonmode_share[j] = self.fast_nonmode_share[j] = <float>(n - zeros) / n
        self.n_values[j] = n
        if n == N_FIRST:  # they are not needed any more
            for i in range(N_FIRST):
                first[i] = 0.0
            self.limit[j] = MAX_FLOAT
            if self.var[j] > 0.0:
                self.limit[j] = <float>(4.0 * sqrt(self.var[j] / self.nonmode_share[j]))

    cdef void update_sparse(self, const Row* row) noexcept nogil:
        cdef Py_ssize_t i, j
        self.n_sparse_rows[0] += 1.0
        for i in range(row.n):
            self.df[row.indices[i]] += 1.0
        if self.forget > 0.0 and self.n_sparse_rows[0] * self.forget > 1.0:  # halve the past now and then
            self.n_sparse_rows[0] *= 0.5
            for j in range(self.width):
                self.df[j] *= 0.5

    cdef void prefetch(self, const Row* row) noexcept nogil:
        if self.width > 0:
            prefetch_features(self.df, 1, row)

    @property
    def mean_squared_norm(self):
        """The mean of |z|^2 over the rows seen so far."""
        return self.counters.mean_squared_norm
