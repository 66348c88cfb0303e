"""SetLogit with curves once more: plain NumPy in float64, slow and obviously right.

It takes the sets and answers of the fast one, and shares nothing with it but the signs of the projections.
"""

from __future__ import annotations

import numpy as np
from naive import softmax
from scipy.linalg import hadamard


class Averaged:
    def __init__(self, k, d):
        self.W, self.A = np.zeros((k, d)), np.zeros((k, d))
        self.t, self.left = 0, 1.0

    def step(self, c, x, constant=False):
        self.left *= 1 - 3 / (self.t + 4)
        self.t += 1
        take = self.t < 64 or self.t % 8 == 0
        for r in range(len(c)):
            if take or abs(c[r]) > 3e-4:
                self.W[r] += c[r] * x
            elif constant:
                self.W[r, -1] += c[r] * x[-1]
        if take:
            self.A += (1 - self.left) * (self.W - self.A)
            self.left = 1.0


class Standard:
    """Means and variances; 1/sd refreshed when the count of rows has grown by 1 %."""

    most, forget, loudness = np.inf, 0.0, 1.0

    def __init__(self, d):
        self.mean, self.var, self.inverse = np.zeros(d), np.zeros(d), np.zeros(d)
        self.n, self.rows, self.due, self.squares = 0, 0, 0, 0.0

    def bound(self, z):
        return np.clip(z, -5, 5)

    def __call__(self, x):
        z = self.bound((x - self.mean) * self.inverse)
        self.now = z @ z
        if not self.now:
            return z
        return z / np.sqrt(np.sqrt(self.now * (self.squares or self.now)))

    def absorb(self, x, count=True):
        self.rows += 1
        self.squares += (self.now - self.squares) * max(1 / self.rows, 0.001, self.forget)
        if count:
            self.count(x)
        if self.rows >= self.due:
            self.due = self.rows + 1
            if not self.renew():
                self.due += min(self.most, np.floor(self.rows * 0.01))
            inverse = np.where(self.var > 1e-30, 1 / np.sqrt(np.maximum(self.var, 1e-30)), 0.0)
            self.inverse = self.loudness * inverse

    def renew(self):
        return False

    def count(self, x):
        self.n += 1
        gap = x - self.mean
        self.mean += gap / self.n
        self.var = (1 - 1 / self.n) * (self.var + gap**2 / self.n)


class Column:
    """What scaling keeps of one column of numbers."""

    def __init__(self, forget=0.0):
        self.first, self.forget, self.outside = [], forget, 0.0
        self.mean = self.var = 0.0

    def count(self, x, row):
        if len(self.first) < 16:
            self.first.append(x)
            self.begin()
            return
        is_other = x != self.usual
        gap = x - self.mean
        c = np.clip(gap, -self.limit, self.limit)
        if is_other:
            self.outside += 0.02 * ((abs(gap) > self.limit) - self.outside)
        rate = self.forget
        if self.outside > 0.5:
            self.n, rate = min(self.n, 32), 0.1
        rate = max(rate, 1 / (self.n + 1))
        self.n += 1
        if row % 4 == 0:
            self.fast = mixed(self.fast, self.mean + c, is_other, 0.016)
        self.mean, self.var, self.other = mixed(
            (self.mean, self.var, self.other), self.mean + c, is_other, rate
        )

    def renew(self):
        """Whether the column is wider or has moved."""
        _, var, other = self.fast
        if self.n > 1000 and var > 1e-30 and 64 * var * self.other < self.var * other:
            (self.mean, self.var, self.other), self.n = self.fast, 250
        self.limit = 4 * np.sqrt(self.var / self.other) if self.var > 1e-30 else np.inf
        return self.outside > 0.5

    def begin(self):
        x = np.array(self.first)
        self.n, self.usual = len(x), np.sort(x)[len(x) // 2]
        apart = np.sort(np.abs(x - self.usual))
        apart = apart[apart > 0]
        limit = 6 * apart[len(apart) // 2] if len(apart) else 0.0
        near = np.clip(x, self.usual - limit, self.usual + limit)
        self.mean, self.var, self.other = self.fast = near.mean(), near.var(), len(apart) / len(x)


def mixed(stats, x, is_other, rate):
    """Mean, variance and the share of other values, with one more."""
    mean, var, other = stats
    gap = x - mean
    return mean + rate * gap, (1 - rate) * (var + rate * gap**2), other + rate * (is_other - other)


class Robust(Standard):
    """Rows of numbers: columns that one bad value cannot spoil."""

    most = 100

    def __init__(self, d, forget=0.0):
        super().__init__(d)
        self.columns, self.forget = [Column(forget) for _ in range(d)], forget

    def bound(self, z):
        size = np.maximum(np.abs(z), 5)
        return np.where(np.abs(z) > 5, np.sign(z) * (7.5 - 12.5 / size), z)

    def count(self, x):
        for column, value in zip(self.columns, x, strict=True):
            column.count(float(value), self.rows - 1)
        self.take()

    def renew(self):
        moving = [column.renew() for column in self.columns]
        self.take()
        return any(moving)

    def take(self):
        self.mean = np.array([column.mean for column in self.columns])
        self.var = np.array([column.var for column in self.columns])


class Curved:
    def __init__(self, k, d, sign, features=1024, step=3.0, bias=0.1**0.5):
        self.k, self.d, self.P, self.size, self.bias = k, d, features // 2, step, bias
        self.rows, self.waves = Robust(d), Standard(features)
        self.linear, self.curved = Averaged(k, d + 1), Averaged(k, features)
        self.gate, self.G, self.q, self.previous = 1.0, 0.0, 1 / 16, np.zeros(d)
        self.relevance, self.slope, self.slopes, self.renew = np.ones(d), np.zeros(d), 0, 0.0
        self.bank, self.bank_slope, self.loudness = (
            np.arange(features) // (features // 4) % 2,
            np.zeros(2),
            np.ones(2),
        )
        self.credit = np.full(k, 1 / k)
        H, copies = np.kron(hadamard(16), np.eye(16)), max(1, 64 // d)
        turn = np.zeros((256, 256))  # row i of 16 turned by i lanes
        for i in range(16):
            for j in range(16):
                turn[16 * i + j, 16 * i + (j + i) % 16] = 1
        place = np.zeros((256, d))
        for i in range(copies):
            place[i * d : (i + 1) * d] = np.eye(d)
        banks = []
        for signs_of_bank in sign[:, 0]:
            M = place
            for signs in signs_of_bank:
                M = H @ np.diag(signs) @ turn @ M
            banks.append((M * np.sqrt(256 / 16**3 / copies))[: self.P // 2])
        self.plain, self.weighted = banks

    @property
    def Omega(self):
        """Half of the projections are of z, half of z times the relevance."""
        return np.concatenate([self.plain, self.weighted * self.relevance])

    def lift(self, x):
        self.z = self.rows(x)
        self.x = np.append(np.sqrt(1 - self.bias**2) * self.z, self.bias)
        self.sharp = np.clip(5.5 * np.sqrt(self.q), 1, 4)
        u = self.sharp * self.Omega @ self.z
        self.raw = np.concatenate([np.cos(u), np.sin(u)])
        self.phi = self.waves(self.raw)

    def scores(self, x):
        self.lift(x)
        return self.linear.A @ self.x + self.gate * self.curved.A @ self.phi

    def learn(self, x, drawn, hit):
        self.lift(x)
        a1, w1 = self.linear.A @ self.x, self.linear.W @ self.x
        a2, w2 = self.curved.A @ self.phi, self.curved.W @ self.phi
        s, last = a1 + self.gate * a2, w1 + self.gate * w2
        inside = np.isin(np.arange(self.k), drawn)
        allowed = inside if hit else ~inside
        post = softmax(0.6 * s + 0.4 * last) * allowed
        post /= post.sum()
        if not hit:  # 2 % to labels without credit
            weight = allowed / (self.credit + 0.01 / self.k)
            post = 0.98 * post + 0.02 * weight / weight.sum()
        q = softmax(s)
        slope = (q * allowed) @ a2 / (q * allowed).sum() - q @ a2 if (q * allowed).sum() > 1e-6 else 0.0
        self.G += slope**2
        self.gate = np.clip(self.gate + 0.5 * slope / np.sqrt(1 + self.G), 0, 1)
        p2, p1 = softmax((a1 + a2 + w1 + w2) / 2), softmax((a1 + w1) / 2)
        c1 = self.size * (post - (1 - self.gate) * p1 - self.gate * p2)
        c2 = self.size * (post - p2)
        self.credit += 3 / (self.linear.t + 4) * (post - self.credit)
        self.curved.step(c2, self.phi)
        if self.curved.t % 8 == 0:
            self.learn_relevance(c2)
        self.linear.step(c1, self.x, constant=True)
        self.q += ((self.z @ self.previous) ** 2 - self.q) / (self.rows.rows + 17)
        self.previous = self.z
        count = self.waves.rows + 1 < 256 or (self.waves.rows + 1) % 8 == 0
        self.waves.absorb(self.raw, count)
        self.rows.absorb(x)

    def learn_relevance(self, c):
        length = 1 / np.sqrt(np.sqrt(self.waves.now * (self.waves.squares or self.waves.now)))
        v = c @ self.curved.A * self.waves.inverse * (length if self.waves.now else 1.0)
        along = v[self.P :] * self.raw[: self.P] - v[: self.P] * self.raw[self.P :]
        slope = self.sharp * (along @ self.Omega)
        slope += np.sqrt(1 - self.bias**2) * (c @ self.linear.A)[: self.d]
        self.slopes += 1
        squares = np.bincount(self.bank, (c @ self.curved.A) ** 2) / self.loudness**2
        self.bank_slope += 3 / (self.slopes + 3) * (squares - self.bank_slope)
        self.slope += 3 / (self.slopes + 3) * (slope**2 - self.slope)
        if self.slopes >= self.renew and self.slope.sum() > 0:
            self.renew = 1.1 * self.slopes + 8
            self.relevance = np.sqrt(self.slope * self.d / self.slope.sum())
            if self.bank_slope.any():
                self.loudness = np.sqrt(np.clip(2 * self.bank_slope / self.bank_slope.sum(), 0.1, 1.9))
                self.waves.loudness = self.loudness[self.bank]
