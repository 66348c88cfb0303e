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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels import Answer, Kernels, Round, Unit, add_outer, kernel, squared_norm, weights
from superarm.labels import Label
from superarm.learners.base import LabelLearner, Nothing
from superarm.parameters import choice, number

VARIANTS = ("PA", "PA-I", "PA-II")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    C: float
    variant: int


class Scratch(NamedTuple):
    scaling: Nothing
    rule: Any
    losses: np.ndarray[Any, Any]
    c: np.ndarray[Any, Any]


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
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    s, eligible, label, X = round.s, round.eligible, answer.label, squared_norm(round.x)
    losses, c, n = scratch.losses, scratch.c, eligible.shape[0]
    positive = 0
    for i in range(n):
        loss = 1.0 - s[label] + s[eligible[i]]
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
        loss = 1.0 - s[label] + s[eligible[i]]
        c[i] = Lambda if eligible[i] == label else -max(loss - bound, 0.0) / X
    return add_outer(state.W, eligible, c, n, round.x)


class PA(LabelLearner):
    """Exact multiclass passive-aggressive.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        variant: ``"PA"``, ``"PA-I"`` (one shared slack, linear) or ``"PA-II"`` (squared).
        C: the price of the slack.
    """

    name = "pa"
    kernels = Kernels(learn, sees_label=True)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        variant: str = "PA-I",
        C: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.variant = choice("variant", self.of, variant, VARIANTS)
        self.C = number("C", self.of, C, 0.0)

    def start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.unit, self.rule.start(), self.C, VARIANTS.index(self.variant))

    def scratch(self) -> Scratch:
        k = self.n_labels
        return Scratch(Nothing(), self.rule.scratch(k), np.zeros(k), np.zeros(k))
