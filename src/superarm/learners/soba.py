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
from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import coordinate, entry, intercept, kernel, length, squared_norm, weights

MATRICES = ("diagonal", "full")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    diagonal: bool
    A: np.ndarray[Any, Any]  # the diagonal of A, or the whole of its inverse
    theta: np.ndarray[Any, Any]  # for the diagonal
    mu: np.ndarray[Any, Any]
    u: np.ndarray[Any, Any]  # scratch


@kernel
def _quadratic(state: Any, x: Any, r: int) -> Any:
    """x' A_r^-1 x for the diagonal block of label r."""
    A, total = state.A, 0.0
    for i in range(length(x)):
        total += entry(x, i) * entry(x, i) / A[coordinate(A, x, r, i)]
    return total + state.bias * state.bias / A[intercept(A, x, r)]


@kernel
def _diagonal_step(state: Any, x: Any, r: int, scale: float, P: float) -> None:
    """A += z z', theta -= g, W = theta / A on the row of label r, where g = scale x."""
    W, A, theta = state.W, state.A, state.theta
    for i in range(length(x) + 1):
        at = intercept(W, x, r)
        value = state.bias
        if i < length(x):
            at = coordinate(W, x, r, i)
            value = entry(x, i)
        g = scale * value
        A[at] += np.float32(P * g * g)
        theta[at] -= np.float32(g)
        W[at] = theta[at] / A[at]


@kernel
def _place(W: Any, at: Any) -> Any:
    return at[0] * W.shape[1] + at[1]


@kernel
def _full_product(state: Any, x: Any, wrong: int, right: int, scale: float) -> float:
    """u = A^-1 z for z = scale (e_wrong - e_right) x; returns z'u."""
    W, A, u = state.W, state.A, state.u
    u[:] = 0.0
    for i in range(length(x) + 1):
        a, b, value = intercept(W, x, wrong), intercept(W, x, right), state.bias
        if i < length(x):
            a, b = coordinate(W, x, wrong, i), coordinate(W, x, right, i)
            value = entry(x, i)
        v = scale * value
        if v != 0.0:
            row_a, row_b = A[_place(W, a)], A[_place(W, b)]
            for l in range(u.shape[0]):
                u[l] += v * (row_a[l] - row_b[l])
    total = 0.0
    for i in range(length(x) + 1):
        a, b, value = intercept(W, x, wrong), intercept(W, x, right), state.bias
        if i < length(x):
            a, b = coordinate(W, x, wrong, i), coordinate(W, x, right, i)
            value = entry(x, i)
        total += scale * value * (u[_place(W, a)] - u[_place(W, b)])
    return total


@kernel
def learn(
    state: Any,
    design: Any,
    x: Any,
    s: Any,
    eligible: Any,
    drawn: Any,
    top: Any,
    odds: Any,
    hit: bool,
    label: int,
) -> bool:
    if not hit or design.n == 1:
        return True
    y, P = drawn[0], np.exp(odds[0])
    other = -1
    for i in range(eligible.shape[0]):
        r = eligible[i]
        if r != y and (other < 0 or s[0, r] > s[0, other]):
            other = r
    Wg = (np.float64(s[0, other]) - np.float64(s[0, y])) / P
    Wz = np.sqrt(P) * Wg
    if state.diagonal:
        zAz = (_quadratic(state, x, other) + _quadratic(state, x, y)) / P
    else:
        zAz = _full_product(state, x, other, y, 1.0 / np.sqrt(P))
    mu = (Wz * Wz + 2.0 * Wg) / (1.0 + zAz)
    if not mu + state.mu[0] >= 0.0:
        return True
    if not squared_norm(x, state.bias) / P <= 1e30:
        return False
    state.mu[0] += mu
    if state.diagonal:
        _diagonal_step(state, x, other, 1.0 / P, P)
        _diagonal_step(state, x, y, -1.0 / P, P)
    else:
        W, A, u, q = state.W, state.A, state.u, 1.0 + zAz
        for i in range(u.shape[0]):
            W[i // W.shape[1], i % W.shape[1]] -= np.float32(u[i] * (Wz + 1.0 / np.sqrt(P)) / q)
            if u[i] != 0.0:
                v = u[i] / q
                for l in range(u.shape[0]):
                    A[i, l] -= v * u[l]
    return True


class SOBA(Learner):
    """Second-order Banditron.

    Args:
        gamma: the share of exploration, in (0, 1].
        matrix: ``"diagonal"``, or ``"full"`` for the (k d)^2 matrix.
        a: the initial value on the diagonal of A.
    """

    name = "soba-diag"
    loop = compile_loop(name, learn)
    single_label = True

    def __init__(
        self, *, gamma: float = 0.1, matrix: str = "diagonal", a: float = 1.0, **common: Any
    ) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)
        self.matrix = self._choice("matrix", matrix, MATRICES)
        self.a = self._number("a", a, 0.0)
        self.moves_ineligible = self.matrix == "full"  # A^-1 couples all labels
        size = self.n_labels * (self.n_features + 16)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if matrix == "full" and size * size * 8 > memory / 2:
            gigabytes = f"{size * size * 8 / 2**30:.0f} GB for n_labels x n_features = {size}"
            raise self._invalid("matrix", "'diagonal' where 'full' does not fit in memory", gigabytes)

    def _start(self, shape: tuple[int, int]) -> State:
        size = shape[0] * shape[1]
        diagonal = self.matrix == "diagonal"
        return State(
            W=weights(shape),
            bias=self.bias,
            diagonal=diagonal,
            A=weights(shape, self.a) if diagonal else np.eye(size) / self.a,
            theta=weights(shape if diagonal else (1, 1)),
            mu=np.zeros(1),
            u=np.zeros(1 if diagonal else size),
        )
