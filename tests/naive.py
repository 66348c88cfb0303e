"""Every learner once more: plain NumPy in float64, slow and obviously right (docs/mathematics.md 2-4 and 6).

They draw from the same uniforms as the fast ones, so they must make the same decisions.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb, factorial
from typing import NamedTuple

import numpy as np
import qp

from superarm.native.randomness import uniform_number as uniform


class Shown(NamedTuple):
    x: np.ndarray
    E: list  # the eligible labels
    top: list
    drawn: list
    Z: float  # the probability of the ordered draw


class Naive:
    def __init__(self, k, d, *, m=1, seed=0, bias=0.1, gamma=0.1):
        self.k, self.m, self.seed, self.bias, self.gamma = k, m, seed, bias, gamma
        self.W = np.zeros((k, d + 1))
        self.round = 0

    def scores(self, x):
        return (self.W * x).sum(axis=1)

    def decide(self, x, eligible=None):
        x = np.asarray(x, float)
        length = np.sqrt(x @ x)
        x = np.append(x / length if length else x, self.bias)
        E = list(range(self.k)) if eligible is None else sorted(eligible)
        s = self.scores(x)
        # labels with equal histories tie, and the first wins, whatever a solver's last digits say
        top = sorted(E, key=lambda r: -round(s[r], 8))[: self.m]
        drawn, Z = self.draw(s, E, top)
        self.round += 1
        return Shown(x, E, top, drawn, Z)

    def draw(self, s, E, top):
        """One label after another, with the weights of eq. 5 among those that are left."""
        n, m = len(E), len(top)
        inside, outside = list(top), [r for r in E if r not in top]
        P = {r: (1 - self.gamma) / m * (r in top) + self.gamma / n for r in E}
        drawn, Z = [], 1.0
        for i in range(m):
            left = inside + outside
            total = sum(P[r] for r in left)
            point = uniform(self.seed, self.round, i) * total
            chosen = left[-1]
            for r in left:
                point -= P[r]
                if point < 0:
                    chosen = r
                    break
            Z *= P[chosen] / total
            drawn.append(chosen)
            if chosen in inside:  # the last one takes the place of the one that left
                inside[inside.index(chosen)] = inside[-1]
                inside.pop()
            else:
                outside.remove(chosen)
        return drawn, Z

    def add(self, coefficients, x):
        self.W += np.outer(coefficients, x)

    def one(self, *labels):
        return np.isin(np.arange(self.k), labels).astype(float)


class LabelNaive(Naive):
    def draw(self, s, E, top):
        return list(top), 1.0


def softmax(s):
    e = np.exp(s - s.max())
    return e / e.sum()


class Perceptron(LabelNaive):
    def learn(self, shown, y):
        if shown.top[0] != y:
            self.add(self.one(y) - self.one(shown.top[0]), shown.x)


class Softmax(LabelNaive):
    def __init__(self, *args, step=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = step

    def learn(self, shown, y):
        p = np.zeros(self.k)
        p[shown.E] = softmax(self.scores(shown.x)[shown.E])
        self.add(self.step * (self.one(y) - p), shown.x)


class PA(LabelNaive):
    def __init__(self, *args, variant="PA-I", C=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.variant, self.C = variant, C

    def learn(self, shown, y):
        s, c = self.scores(shown.x)[shown.E], np.zeros(self.k)
        at = shown.E.index(y)
        if (1 - s[at] + np.delete(s, at) > 0).any():
            c[shown.E] = qp.pa(s, at, shown.x @ shown.x, self.C, self.variant)
            self.add(c, shown.x)


class MCSLP(LabelNaive):
    def __init__(self, *args, gate=False, margin=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.gate, self.margin = gate, margin

    def learn(self, shown, y):
        s = self.scores(shown.x)
        if not self.gate or self.margin - s[y] + s[shown.top].mean() > 0:
            self.add(self.one(y) - self.one(*shown.top) / len(shown.top), shown.x)


class Banditron(Naive):
    def learn(self, shown, y):
        if len(shown.E) > 1:
            (label,) = shown.drawn
            self.add((label == y) / shown.Z * self.one(label) - self.one(*shown.top), shown.x)


class MCDBF(Naive):
    def __init__(self, *args, estimate="ordered", gate=False, margin=None, rho=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.estimate, self.gate, self.margin, self.squares = estimate, gate, margin, 0.0
        self.fixed, self.rho = rho is not None, 0.9 if rho is None else rho
        self.least_squares = [18.0, 20.0]

    def nearest_rho(self):
        grid = 1 / (1 + np.exp(-np.linspace(-3, 5, 33)))
        rho = min(max(self.rho, 1e-9), 1 - 1e-9)
        logit = np.log(rho / (1 - rho))
        return grid[np.argmin(abs(np.linspace(-3, 5, 33) - logit))]

    def estimated(self, shown, f):
        """e^, over the eligible labels."""
        n, m, E = len(shown.E), len(shown.top), shown.E
        S = np.isin(E, shown.drawn).astype(float)
        if self.estimate == "minimum-variance":
            return self.minimum_variance(shown, f)
        if self.estimate == "ordered":
            weight = 1 / (shown.Z * m * factorial(n - 2) / factorial(n - m - 1))
        else:
            weight = 1 / (self.set_probability(n, shown.top, shown.drawn) * comb(n - 2, m - 1))
        return f * S * weight - (m - 1) / (n - m)

    def set_probability(self, n, top, drawn):
        m, total = len(top), 0.0
        for order in permutations(drawn):
            z, left = 1.0, 1.0
            for r in order:
                P = (1 - self.gamma) / m * (r in top) + self.gamma / n
                z, left = z * P / left, left - P
            total += z
        return total

    def minimum_variance(self, shown, f):
        E, m, n = shown.E, len(shown.top), len(shown.E)
        rho = self.nearest_rho()
        q = np.where(np.isin(E, shown.top), rho / m, (1 - rho) / (n - m))
        information = np.zeros((n, n))
        for S in combinations(E, m):
            one = np.isin(E, S).astype(float)
            sigma, p = q @ one, self.set_probability(n, shown.top, S)
            information += p * (np.outer(one, one) / sigma + np.outer(1 - one, 1 - one) / (1 - sigma))
        one = np.isin(E, shown.drawn).astype(float)
        told = one / (q @ one) if f else (1 - one) / (1 - q @ one)
        return np.linalg.solve(information, told)

    def learn(self, shown, y):
        f = y in shown.drawn
        if len(shown.E) > len(shown.top):
            e, s = np.zeros(self.k), self.scores(shown.x)
            e[shown.E] = self.estimated(shown, f)
            if self.gate:
                margin = self.margin or 1 + np.sqrt(self.squares) / 5
                self.squares += e @ e
                e *= margin - s + s[shown.top].mean() > 0
            total = e.sum() if self.gate else 1.0
            self.add(e - total * self.one(*shown.top) / len(shown.top), shown.x)
            if not self.fixed:  # E[f | j] = out + rho (j/m - out)
                m, n, j = len(shown.top), len(shown.E), len(set(shown.drawn) & set(shown.top))
                out = (m - j) / (n - m)
                up, down = self.least_squares
                self.least_squares = [
                    0.999 * up + (j / m - out) * (f - out),
                    0.999 * down + (j / m - out) ** 2,
                ]
                self.rho = self.least_squares[0] / self.least_squares[1]


class SOBA(Naive):
    def __init__(self, *args, matrix="diagonal", a=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.A = a * np.eye(self.W.size)
        self.theta, self.mu, self.diagonal = np.zeros(self.W.size), 0.0, matrix == "diagonal"

    def learn(self, shown, y):
        if shown.drawn != [y] or len(shown.E) == 1:
            return
        s = self.scores(shown.x)
        other = max((r for r in shown.E if r != y), key=lambda r: s[r])
        g = np.kron(self.one(other) - self.one(y), shown.x) / shown.Z
        z, w = np.sqrt(shown.Z) * g, self.W.ravel()
        mu = ((w @ z) ** 2 + 2 * w @ g) / (1 + z @ np.linalg.solve(self.A, z))
        if mu + self.mu >= 0:
            self.mu += mu
            self.A += np.diag(z * z) if self.diagonal else np.outer(z, z)
            self.theta -= g
            self.W = np.linalg.solve(self.A, self.theta).reshape(self.W.shape)


class Newtron(Naive):
    """W is kept before it is scaled into the ball."""

    def __init__(self, *args, alpha=10.0, beta=0.01, D=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha, self.beta, self.D = alpha, beta, D
        self.A, self.b = np.full_like(self.W, 1 / D), np.zeros_like(self.W)

    def inside(self):
        return self.W * min(1.0, self.D / max(np.linalg.norm(self.W), 1e-300))

    def scores(self, x):
        return (self.inside() * x).sum(axis=1)

    def draw(self, s, E, top):
        P = (1 - self.gamma) * softmax(self.alpha * s[E]) + self.gamma / len(E)
        i = int(np.searchsorted(np.cumsum(P), uniform(self.seed, self.round, 0), side="right"))
        i = min(i, len(E) - 1)
        return [E[i]], P[i]

    def learn(self, shown, y):
        (label,), n, p = shown.drawn, len(shown.E), np.zeros(self.k)
        if n == 1:
            return
        p[shown.E] = softmax(self.alpha * self.scores(shown.x)[shown.E])
        away = self.one(*shown.E) / n - self.one(label)
        if label == y:
            g, kappa = np.outer((1 - p[label]) / shown.Z * away, shown.x), shown.Z
        else:
            g, kappa = np.outer(-p[label] / shown.Z * away, shown.x), 1.0
        self.A += kappa * self.beta * g * g
        self.b += (kappa * self.beta * (g * self.inside()).sum() - 1) * g
        self.W = self.b / self.A


class EPABF(Naive):
    def __init__(self, *args, variant="EPABF-I", C=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.variant, self.C = variant, C

    def learn(self, shown, y):
        if len(shown.E) == 1:
            return
        (label,), c = shown.drawn, np.zeros(self.k)
        a = (label == y) / shown.Z
        s = self.scores(shown.x)[shown.E]
        c[shown.E] = qp.epabf(s, shown.E.index(label), a, shown.x @ shown.x, self.C, self.variant)
        self.add(c, shown.x)
