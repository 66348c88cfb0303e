"""Newtron, diagonal (Hazan & Kale 2011).

    p = softmax(alpha W x),   P = (1-gamma) p + gamma/k,   y~ ~ P
    hit:   g = (1 - p_y~) / P_y~ (1/k 1 - e_y~) x,   kappa = P_y~
    miss:  g = p_y~ / P_y~ (e_y~ - 1/k 1) x,         kappa = 1

W minimises sum <g, W> + 1/2 kappa beta <g, W - W_t>^2 + |W|^2 / 2D over |W| <= D, with the diagonal
of the quadratic term:  A = 1/D + sum kappa beta g^2,  b = sum (kappa beta <g, W_t> - 1) g,  V = b / A,
W = V scaled into the ball. E[g] = (p - e_y) x. Late feedback uses the current W for W_t and p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.explore.base import Rule
from superarm.explore.boltzmann import Boltzmann
from superarm.kernels import (
    Answer,
    Features,
    Kernels,
    Round,
    Unit,
    constant,
    coordinate,
    kernel,
    length,
    scores,
    softmax,
    squared_norm,
    value,
    weights,
)
from superarm.labels import Label
from superarm.learners.base import Learner, Nothing
from superarm.parameters import number


class State(NamedTuple):
    W: np.ndarray[Any, Any]  # V, before it is scaled into the ball
    scaling: Unit
    rule: Any
    A: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    squared_norm: np.ndarray[Any, Any]  # |V|^2
    alpha: float
    beta: float
    D: float


class Scratch(NamedTuple):
    scaling: Nothing
    rule: Any
    p: np.ndarray[Any, Any]


@kernel
def score(state: Any, scratch: Any, features: Features, s: Any) -> None:
    scores(state.W, features, s)
    norm = np.sqrt(state.squared_norm[0])
    if norm > state.D:
        shrink = np.float32(state.D / norm)
        for r in range(s.shape[0]):
            s[r] *= shrink


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    W, A, b, x, s = state.W, state.A, state.b, round.x, round.s
    eligible, drawn, n = round.eligible, round.drawn[0], round.eligible.shape[0]
    if n == 1:
        return True
    softmax(s, eligible, state.alpha, scratch.p)
    P = np.exp(round.odds.ordered)
    p, mean = 0.0, 0.0
    for i in range(n):
        mean += s[eligible[i]] / n
        if eligible[i] == drawn:
            p = scratch.p[i]
    # g = factor (e_y~ - 1/k 1) x
    factor, kappa = (-(1.0 - p) / P, P) if answer.hit else (p / P, 1.0)
    if not factor * factor * squared_norm(x) <= 1e30:
        return False
    gW = factor * (np.float64(s[drawn]) - mean)
    weight = kappa * state.beta
    change = 0.0
    for l in range(n):
        r = eligible[l]
        c = factor * ((r == drawn) - 1.0 / n)
        for i in range(length(x) + 1):
            at = constant(W, x, r)
            v = x.bias
            if i < length(x):
                at = coordinate(W, x, r, i)
                v = value(x, i)
            g = c * v
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
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gamma: the share of exploration, in (0, 1].
        alpha: how sharp the softmax is.
        beta: the weight of the second-order term.
        D: the radius of the ball that W stays in.
    """

    name = "newtron"
    kernels = Kernels(learn, score=score)
    single_label = True

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
        alpha: float = 10.0,
        beta: float = 0.01,
        D: float = 1.0,
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
        self.alpha = number("alpha", self.of, alpha, 0.0)
        self.beta = number("beta", self.of, beta, 0.0)
        self.D = number("D", self.of, D, 0.0)

    def start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            scaling=self.unit,
            rule=self.rule.start(),
            A=weights(shape, 1.0 / self.D),
            b=weights(shape),
            squared_norm=np.zeros(1),
            alpha=self.alpha,
            beta=self.beta,
            D=self.D,
        )

    def scratch(self) -> Scratch:
        k = self.n_labels
        return Scratch(Nothing(), self.rule.scratch(k), np.zeros(k))

    @property
    def rule(self) -> Rule:
        return Boltzmann(gamma=self.gamma, alpha=self.alpha)
