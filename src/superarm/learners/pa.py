"""PA, PA-I, PA-II: exact multiclass passive-aggressive, full information (Matsushima et al. 2010).

    min 1/2 |W' - W|^2   s.t.   w'_y.x - w'_r.x >= 1 - xi  for all r != y
    PA: xi = 0     PA-I: + C xi     PA-II: + C xi^2

W'_y = W_y + Lambda x, W'_r = W_r - lambda_r x, Lambda = sum lambda. The support (lambda_r > 0) is a
prefix of the labels sorted by their loss l_r = 1 - s_y + s_r. With n of them, L = sum of their
losses and X = |x|^2:

    PA     Lambda = L / ((n+1) X)                  lambda_r = l_r / X - Lambda
    PA-I   the same if that Lambda <= C, else Lambda = C and
           lambda_r = (l_r - xi) / X - C,  xi = (L - (n+1) C X) / n
    PA-II  Lambda = L / ((n+1) X + n / 2C)         lambda_r = l_r / X - Lambda (1 + 1 / (2 C X))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import LabelLearner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, squared_norm, weights

VARIANTS = ("PA", "PA-I", "PA-II")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    C: float
    variant: int
    losses: np.ndarray[Any, Any]  # scratch
    c: np.ndarray[Any, Any]  # scratch


@kernel
def threshold(losses: Any, X: float, C: float, variant: int) -> tuple[float, float]:
    """(Lambda, the loss above which a label is in the support), for losses in descending order."""
    total, n = 0.0, 0
    bound, Lambda = 0.0, 0.0
    for l in losses:  # plain PA, or PA-II with its extra diagonal
        extra = 1.0 / (2.0 * C) if variant == 2 else 0.0
        new = (total + l) / ((n + 2) * X + (n + 1) * extra)
        if l <= new * (X + extra):
            break
        total, n, Lambda = total + l, n + 1, new
        bound = Lambda * (X + extra)
    if variant == 1 and Lambda > C:
        Lambda, total, n, bound = C, 0.0, 0, -np.inf
        for l in losses:
            new = (total + l - C * X) / (n + 1)
            if l <= new:
                break
            total, n, bound = total + l, n + 1, new
    return Lambda, bound


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
    X = squared_norm(x, state.bias)
    losses, c, n = state.losses, state.c, eligible.shape[0]
    positive = 0
    for i in range(n):
        loss = 1.0 - s[0, label] + s[0, eligible[i]]
        if eligible[i] != label and loss > 0.0:
            losses[positive] = -loss
            positive += 1
    if positive == 0 or X == 0.0:
        return True
    losses[:positive].sort()
    for i in range(positive):
        losses[i] = -losses[i]
    Lambda, bound = threshold(losses[:positive], X, state.C, state.variant)
    for i in range(n):
        loss = 1.0 - s[0, label] + s[0, eligible[i]]
        c[i] = Lambda if eligible[i] == label else -max(loss - bound, 0.0) / X
    return add_outer(state.W, eligible, c, n, x, state.bias)


class PA(LabelLearner):
    """Exact multiclass passive-aggressive.

    Args:
        variant: ``"PA"``, ``"PA-I"`` (one shared slack, linear) or ``"PA-II"`` (squared).
        C: the price of the slack.
    """

    name = "pa"
    loop = compile_loop(name, learn, sees_label=True)

    def __init__(self, *, variant: str = "PA-I", C: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.variant = self._choice("variant", variant, VARIANTS)
        self.C = self._number("C", C, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            C=self.C,
            variant=VARIANTS.index(self.variant),
            losses=np.zeros(self.n_labels),
            c=np.zeros(self.n_labels),
        )
