"""SOBA: second-order Banditron (Beygelzimer, Orabona & Zhang 2017).

y~ ~ Banditron's P. Only when y~ = y, with the best other label y' = argmax_{i != y} s_i:

    g = (e_y' - e_y) x / P(y),   z = sqrt(P(y)) g
    mu = (<W,z>^2 + 2 <W,g>) / (1 + z'A^-1 z)
    if mu + (the mu of earlier updates) >= 0:   A += z z',   theta -= g,   W = A^-1 theta

A starts as a I. "diagonal" keeps A's diagonal (what the authors run at scale); "full" keeps A^-1 by
the formula of Sherman and Morrison: with u = A^-1 z and q = 1 + z'u,

    A^-1 -= u u' / q,   W -= u (<W,z> + 1 / sqrt(P)) / q
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels import (
    Answer,
    Kernels,
    Round,
    Unit,
    constant,
    coordinate,
    kernel,
    length,
    squared_norm,
    value,
    weights,
)
from superarm.labels import Label
from superarm.learners.base import Nothing
from superarm.learners.linear import DrawingLearner
from superarm.parameters import choice, number

MATRICES = ("diagonal", "full")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    diagonal: bool
    A: np.ndarray[Any, Any]  # the diagonal of A, or the whole of its inverse
    theta: np.ndarray[Any, Any]  # for the diagonal
    mu: np.ndarray[Any, Any]


class Scratch(NamedTuple):
    scaling: Nothing
    rule: Any
    u: np.ndarray[Any, Any]


@kernel
def _quadratic(state: Any, x: Any, r: int) -> Any:
    """x' A_r^-1 x for the diagonal block of label r."""
    A, total = state.A, 0.0
    for i in range(length(x)):
        total += value(x, i) * value(x, i) / A[coordinate(A, x, r, i)]
    return total + x.bias * x.bias / A[constant(A, x, r)]


@kernel
def _diagonal_step(state: Any, x: Any, r: int, scale: float, P: float) -> None:
    """A += z z', theta -= g, W = theta / A on the row of label r, where g = scale x."""
    W, A, theta = state.W, state.A, state.theta
    for i in range(length(x) + 1):
        at = constant(W, x, r)
        v = x.bias
        if i < length(x):
            at = coordinate(W, x, r, i)
            v = value(x, i)
        g = scale * v
        A[at] += np.float32(P * g * g)
        theta[at] -= np.float32(g)
        W[at] = theta[at] / A[at]


@kernel
def _flat(W: Any, at: Any) -> Any:
    return at[0] * W.shape[1] + at[1]


@kernel
def _full_product(state: Any, u: Any, x: Any, wrong: int, right: int, scale: float) -> float:
    """u = A^-1 z for z = scale (e_wrong - e_right) x; returns z'u."""
    W, A = state.W, state.A
    u[:] = 0.0
    for i in range(length(x) + 1):
        a, b, v = constant(W, x, wrong), constant(W, x, right), scale * x.bias
        if i < length(x):
            a, b = coordinate(W, x, wrong, i), coordinate(W, x, right, i)
            v = scale * value(x, i)
        if v != 0.0:
            row_a, row_b = A[_flat(W, a)], A[_flat(W, b)]
            for l in range(u.shape[0]):
                u[l] += v * (row_a[l] - row_b[l])
    total = 0.0
    for i in range(length(x) + 1):
        a, b, v = constant(W, x, wrong), constant(W, x, right), scale * x.bias
        if i < length(x):
            a, b = coordinate(W, x, wrong, i), coordinate(W, x, right, i)
            v = scale * value(x, i)
        total += v * (u[_flat(W, a)] - u[_flat(W, b)])
    return total


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    x, s, eligible, u = round.x, round.s, round.eligible, scratch.u
    if not answer.hit or eligible.shape[0] == 1:
        return True
    y, P = round.drawn[0], np.exp(round.odds.ordered)
    other = -1
    for i in range(eligible.shape[0]):
        r = eligible[i]
        if r != y and (other < 0 or s[r] > s[other]):
            other = r
    Wg = (np.float64(s[other]) - np.float64(s[y])) / P
    Wz = np.sqrt(P) * Wg
    if state.diagonal:
        zAz = (_quadratic(state, x, other) + _quadratic(state, x, y)) / P
    else:
        zAz = _full_product(state, u, x, other, y, 1.0 / np.sqrt(P))
    mu = (Wz * Wz + 2.0 * Wg) / (1.0 + zAz)
    if not mu + state.mu[0] >= 0.0:
        return True
    if not squared_norm(x) / P <= 1e30:
        return False
    state.mu[0] += mu
    if state.diagonal:
        _diagonal_step(state, x, other, 1.0 / P, P)
        _diagonal_step(state, x, y, -1.0 / P, P)
    else:
        W, A, q = state.W, state.A, 1.0 + zAz
        for i in range(u.shape[0]):
            W[i // W.shape[1], i % W.shape[1]] -= np.float32(u[i] * (Wz + 1.0 / np.sqrt(P)) / q)
            if u[i] != 0.0:
                v = u[i] / q
                for l in range(u.shape[0]):
                    A[i, l] -= v * u[l]
    return True


def _memory() -> float:
    """The machine's memory in bytes; infinity where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf


class SOBA(DrawingLearner):
    """Second-order Banditron.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gamma: the share of exploration, in (0, 1].
        matrix: ``"diagonal"``, or ``"full"`` for the (k d)^2 matrix.
        a: the initial value on the diagonal of A.
    """

    name = "soba-diag"
    kernels = Kernels(learn)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        gamma: float = 0.1,
        matrix: str = "diagonal",
        a: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.gamma = number("gamma", self.of, gamma, 0.0, 1.0)
        self.matrix = choice("matrix", self.of, matrix, MATRICES)
        self.a = number("a", self.of, a, 0.0)
        self.moves_ineligible = self.couples_labels = self.matrix == "full"  # by A^-1
        if self.n_features is not None:
            self._check_memory()

    def _check_memory(self) -> None:
        size = self.n_labels * (self.n_features + 16)
        if self.matrix == "full" and size * size * 8 > _memory() / 2:
            gigabytes = f"{size * size * 8 / 2**30:.0f} GB for n_labels x n_features = {size}"
            raise self.invalid("matrix", "'diagonal' where 'full' does not fit in memory", gigabytes)

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        return {"soba": {"matrix": "full"}, "soba-diag": {"matrix": "diagonal"}}

    def start(self, shape: tuple[int, int]) -> State:
        self._check_memory()
        size = shape[0] * shape[1]
        diagonal = self.matrix == "diagonal"
        return State(
            W=weights(shape),
            scaling=self.unit,
            rule=self.rule.start(),
            diagonal=diagonal,
            A=weights(shape, self.a) if diagonal else np.eye(size) / self.a,
            theta=weights(shape if diagonal else (1, 1)),
            mu=np.zeros(1),
        )

    def scratch(self) -> Scratch:
        size = 1 if self.matrix == "diagonal" else self.state.W.size
        return Scratch(Nothing(), self.rule.scratch(self.n_labels), np.zeros(size))
