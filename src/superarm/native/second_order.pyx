"""Learners with a matrix beside W: SOBA (diagonal and full) and Newtron. (The papers: superarm/learners.)"""

from libc.math cimport exp, sqrt
from libc.string cimport memset

from superarm.native.cpu cimport kernels
from superarm.native.linear cimport Weights, squared_norm_with_bias
from superarm.native.ranking cimport softmax
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round


cdef class CoordinateCore(LinearCore):
    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel):
        LinearCore.__init__(self, k, scaling, kernel)
        self.z = self.scratch_doubles("z", scaling.d + scaling.width + 2)
        self.features = self.scratch_intp("features", scaling.width + 1)

    cdef void read_coordinates(self, const ScaledRow* x) noexcept nogil:
        """Fill in the coordinates of a row as it reaches the weights."""
        cdef Py_ssize_t i, width = self.weights.width
        cdef double* z = self.z
        self.n_dense = self.n_sparse = 0
        if x.d > 0:
            for i in range(x.d):
                z[i] = x.factor * x.dense[i]
            z[x.d] = x.bias
            self.n_dense = x.d + 1
        if width > 0:
            z += self.n_dense
            for i in range(x.n):
                z[i] = x.sparse_factor * x.values[i]
                self.features[i] = x.indices[i]
            z[x.n], self.features[x.n] = x.sparse_bias, width
            self.n_sparse = x.n + 1


# ---------------------------------------------------------------- SOBA


cdef class SOBACore(CoordinateCore):
    """Second-order Banditron; a subclass keeps A."""

    cdef double* mu

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel):
        CoordinateCore.__init__(self, k, scaling, kernel)
        self.mu = self.doubles("mu", 1)

    cdef double product(self, Py_ssize_t other, Py_ssize_t y, double P) noexcept nogil:
        """z'A^-1 z"""
        return 0.0

    cdef void step(self, Py_ssize_t other, Py_ssize_t y, double P, double Wz, double zAz) noexcept nogil:
        pass

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef Py_ssize_t i, r, y = round.drawn[0], other = -1
        cdef double P = exp(round.log_propensity), Wg, Wz, zAz, mu
        if not answer.hit or round.n == 1:
            return True
        for i in range(round.n):
            r = round.eligible[i]
            if r != y and (other < 0 or s[r] > s[other]):
                other = r
        self.read_coordinates(round.x)
        Wg = (<double>s[other] - <double>s[y]) / P
        Wz = sqrt(P) * Wg
        zAz = self.product(other, y, P)
        mu = (Wz * Wz + 2.0 * Wg) / (1.0 + zAz)
        if not mu + self.mu[0] >= 0.0:
            return True
        if not squared_norm_with_bias(round.x) / P <= 1e30:
            return False
        self.mu[0] += mu
        self.step(other, y, P, Wz, zAz)
        return True


cdef class SOBADiagonalCore(SOBACore):
    """A is its diagonal."""

    cdef readonly Weights A, theta

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, double a):
        SOBACore.__init__(self, k, scaling, kernel)
        self.stages["A"] = self.A = Weights(k, scaling.d, scaling.width, a)
        self.stages["theta"] = self.theta = Weights(k, scaling.d, scaling.width)

    cdef double product(self, Py_ssize_t other, Py_ssize_t y, double P) noexcept nogil:
        return (self.quadratic(other) + self.quadratic(y)) / P

    cdef double quadratic(self, Py_ssize_t r) noexcept nogil:
        """x' A_r^-1 x for the block of label r."""
        cdef const double* z = self.z + self.n_dense
        cdef Py_ssize_t i
        cdef double total = kernels.quadratic(self.A.dense + r * self.A.stride, self.z, self.n_dense)
        for i in range(self.n_sparse):
            total += kernels.quadratic(self.A.sparse + self.features[i] * self.k + r, z + i, 1)
        return total

    cdef void step(self, Py_ssize_t other, Py_ssize_t y, double P, double Wz, double zAz) noexcept nogil:
        self.step_label(other, 1.0 / P, P)
        self.step_label(y, -1.0 / P, P)

    cdef void step_label(self, Py_ssize_t r, double scale, double P) noexcept nogil:
        """A += z z', theta -= g, W = theta / A on the weights of label r, where g = scale x."""
        cdef const double* z = self.z + self.n_dense
        cdef Py_ssize_t i, at = r * self.A.stride
        kernels.soba_step(
            self.weights.dense + at, self.A.dense + at, self.theta.dense + at, self.z, scale, P, self.n_dense
        )
        for i in range(self.n_sparse):
            at = self.features[i] * self.k + r
            kernels.soba_step(
                self.weights.sparse + at, self.A.sparse + at, self.theta.sparse + at, z + i, scale, P, 1
            )


cdef class SOBAFullCore(SOBACore):
    """A^-1 is kept whole."""

    # size x size: label by label in the dense part, then feature by feature in the sparse part
    cdef double* inverse
    cdef double* u
    cdef Py_ssize_t label_size  # dense weights of a label, its constant included
    cdef Py_ssize_t size

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, double a):
        SOBACore.__init__(self, k, scaling, kernel)
        self.label_size = scaling.d + 1 if scaling.d > 0 else 0
        self.size = k * (self.label_size + (scaling.width + 1 if scaling.width > 0 else 0))
        self.inverse = self.doubles("inverse", (self.size, self.size))
        self.u = self.scratch_doubles("u", self.size)
        cdef Py_ssize_t i
        for i in range(self.size):
            self.inverse[i * self.size + i] = 1.0 / a

    cdef inline Py_ssize_t place(self, Py_ssize_t r, Py_ssize_t i) noexcept nogil:
        """Where the weight of label r for the row's i-th coordinate stands in A."""
        if i < self.n_dense:
            return r * self.label_size + i
        return self.k * self.label_size + self.features[i - self.n_dense] * self.k + r

    cdef double product(self, Py_ssize_t other, Py_ssize_t y, double P) noexcept nogil:
        cdef Py_ssize_t i, n = self.size
        cdef double v, scale = 1.0 / sqrt(P), total = 0.0
        memset(self.u, 0, n * sizeof(double))
        for i in range(self.n_dense + self.n_sparse):
            v = scale * self.z[i]
            if v != 0.0:
                kernels.add_difference(
                    self.u, v, self.inverse + self.place(other, i) * n, self.inverse + self.place(y, i) * n,
                    n
                )
        for i in range(self.n_dense + self.n_sparse):
            total += scale * self.z[i] * (self.u[self.place(other, i)] - self.u[self.place(y, i)])
        return total

    cdef void step(self, Py_ssize_t other, Py_ssize_t y, double P, double Wz, double zAz) noexcept nogil:
        cdef double* u = self.u
        cdef float* w = self.weights.dense
        cdef double q = 1.0 + zAz, scale = Wz + 1.0 / sqrt(P)
        cdef Py_ssize_t i, r, at = 0
        for r in range(self.k):
            for i in range(self.label_size):
                w[r * self.weights.stride + i] -= <float>(u[at] * scale / q)
                at += 1
        w = self.weights.sparse
        for i in range(self.size - at):
            w[i] -= <float>(u[at + i] * scale / q)
        for i in range(self.size):
            if u[i] != 0.0:
                kernels.subtract(self.inverse + i * self.size, u[i] / q, u, self.size)


# ---------------------------------------------------------------- Newtron


cdef class NewtronCore(CoordinateCore):
    """Newtron, diagonal: g = factor (e_y~ - 1/k 1) x.

    The weights are V, before they are scaled into the ball; scores are those of W.
    """

    cdef readonly Weights A, b
    cdef double* norm  # |V|^2
    cdef readonly double alpha, beta, D

    def __init__(
        self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, double alpha, double beta, double D
    ):
        CoordinateCore.__init__(self, k, scaling, kernel)
        self.alpha, self.beta, self.D = alpha, beta, D
        self.stages["A"] = self.A = Weights(k, scaling.d, scaling.width, 1.0 / D)
        self.stages["b"] = self.b = Weights(k, scaling.d, scaling.width)
        self.norm = self.doubles("squared_norm", 1)

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        cdef Py_ssize_t r
        cdef double norm = sqrt(self.norm[0])
        cdef float shrink
        self.weights.scores(x, s)
        if norm > self.D:
            shrink = <float>(self.D / norm)
            for r in range(self.k):
                s[r] *= shrink

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef const float* s = round.s
        cdef const Py_ssize_t* eligible = round.eligible
        cdef const double* z
        cdef Py_ssize_t i, at, n = round.n, drawn = round.drawn[0]
        cdef double P = exp(
            round.log_propensity
        ), p = 0.0, mean = 0.0, factor, kappa, gW, weight, slope, away, change = 0.0
        cdef double* c = self.c
        if n == 1:
            return True
        softmax(s, eligible, n, self.alpha, c)
        for i in range(n):
            mean += <double>s[eligible[i]] / n
            if eligible[i] == drawn:
                p = c[i]
        factor = -(1.0 - p) / P if answer.hit else p / P
        kappa = P if answer.hit else 1.0
        if not factor * factor * squared_norm_with_bias(round.x) <= 1e30:
            return False
        gW = factor * (<double>s[drawn] - mean)
        weight = kappa * self.beta
        slope = weight * gW - 1.0
        away = 1.0 / n
        memset(c, 0, self.k * sizeof(double))
        for i in range(n):
            c[eligible[i]] = factor * (1.0 - away if eligible[i] == drawn else -away)
        self.read_coordinates(round.x)
        if self.n_dense > 0:
            for i in range(n):
                change += self.step(
                    self.weights.dense, self.A.dense, self.b.dense, eligible[i] * self.weights.stride,
                    self.z, self.n_dense, c[eligible[i]], weight, slope,
                )
        z = self.z + self.n_dense
        for i in range(self.n_sparse):  # labels with c = 0 keep what they have: W is b / A already
            change += self.step(
                self.weights.sparse, self.A.sparse, self.b.sparse, self.features[i] * self.k, c, self.k, z[i],
                weight, slope,
            )
        self.norm[0] += change
        return True

    cdef inline double step(
        self, float* w, float* a, float* b, Py_ssize_t at, const double* z, Py_ssize_t n, double c,
        double weight, double slope,
    ) noexcept nogil:
        """On n numbers from place ``at`` on: a label's in the dense part, a feature's in the sparse part."""
        return kernels.newtron_step(w + at, a + at, b + at, z, c, weight, slope, n)
