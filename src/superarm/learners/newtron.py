"""Newtron, diagonal (Hazan & Kale 2011).

    p = softmax(alpha W x),   P = (1-gamma) p + gamma/k,   y~ ~ P
    hit:   g = (1 - p_y~) / P_y~ (1/k 1 - e_y~) x,   kappa = P_y~
    miss:  g = p_y~ / P_y~ (e_y~ - 1/k 1) x,         kappa = 1

W minimises sum <g, W> + 1/2 kappa beta <g, W - W_t>^2 + |W|^2 / 2D over |W| <= D, with the diagonal
of the quadratic term:  A = 1/D + sum kappa beta g^2,  b = sum (kappa beta <g, W_t> - 1) g,  V = b / A,
W = V scaled into the ball. E[g] = (p - e_y) x. Late feedback uses the current W for W_t and p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import (
    coordinate,
    entry,
    intercept,
    kernel,
    length,
    scores,
    softmax,
    squared_norm,
    top_positions,
    uniform,
    weights,
)


class State(NamedTuple):
    W: np.ndarray[Any, Any]  # V, before it is scaled into the ball
    bias: float
    A: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    squared_norm: np.ndarray[Any, Any]  # |V|^2
    gamma: float
    alpha: float
    beta: float
    D: float
    p: np.ndarray[Any, Any]  # scratch


@kernel
def score(state: Any, x: Any, s: Any) -> None:
    scores(state.W, x, state.bias, s[0])
    norm = np.sqrt(state.squared_norm[0])
    if norm > state.D:
        shrink = np.float32(state.D / norm)
        for r in range(s.shape[1]):
            s[0, r] *= shrink


@kernel
def choose(
    state: Any, design: Any, s: Any, eligible: Any, seed: int, round_: int, drawn: Any, top: Any, odds: Any
) -> None:
    top_positions(s[0], eligible, top)
    top[0] = eligible[top[0]]
    n = eligible.shape[0]
    softmax(s[0], eligible, state.alpha, state.p)
    point = uniform(seed, round_, 0)
    chosen, P = n - 1, 0.0
    for i in range(n):
        P = (1.0 - state.gamma) * state.p[i] + state.gamma / n
        point -= P
        if point < 0.0:
            chosen = i
            break
    drawn[0] = eligible[chosen]
    odds[0] = np.log(P)
    odds[1] = odds[0]


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
    W, A, b, n = state.W, state.A, state.b, eligible.shape[0]
    if n == 1:
        return True
    softmax(s[0], eligible, state.alpha, state.p)
    P = np.exp(odds[0])
    p, mean = 0.0, 0.0
    for i in range(n):
        mean += s[0, eligible[i]] / n
        if eligible[i] == drawn[0]:
            p = state.p[i]
    # g = factor (e_y~ - 1/k 1) x
    factor, kappa = (-(1.0 - p) / P, P) if hit else (p / P, 1.0)
    if not factor * factor * squared_norm(x, state.bias) <= 1e30:
        return False
    gW = factor * (np.float64(s[0, drawn[0]]) - mean)
    weight = kappa * state.beta
    change = 0.0
    for l in range(n):
        r = eligible[l]
        c = factor * ((r == drawn[0]) - 1.0 / n)
        for i in range(length(x) + 1):
            at = intercept(W, x, r)
            value = state.bias
            if i < length(x):
                at = coordinate(W, x, r, i)
                value = entry(x, i)
            g = c * value
            A[at] += np.float32(weight * g * g)
            b[at] += np.float32((weight * gW - 1.0) * g)
            old = np.float64(W[at])
            W[at] = b[at] / A[at]
            change += np.float64(W[at]) * np.float64(W[at]) - old * old
    state.squared_norm[0] += change
    return True


class Newtron(Learner):
    """Newtron with a diagonal matrix.

    Args:
        gamma: the share of exploration, in (0, 1].
        alpha: how sharp the softmax is.
        beta: the weight of the second-order term.
        D: the radius of the ball that W stays in.
    """

    name = "newtron"
    loop = compile_loop(name, learn, score=score, choose=choose)
    single_label = True

    def __init__(
        self, *, gamma: float = 0.1, alpha: float = 10.0, beta: float = 0.01, D: float = 1.0, **common: Any
    ) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)
        self.alpha = self._number("alpha", alpha, 0.0)
        self.beta = self._number("beta", beta, 0.0)
        self.D = self._number("D", D, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            A=weights(shape, 1.0 / self.D),
            b=weights(shape),
            squared_norm=np.zeros(1),
            gamma=self.gamma,
            alpha=self.alpha,
            beta=self.beta,
            D=self.D,
            p=np.zeros(self.n_labels),
        )
