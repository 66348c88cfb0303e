"""MC-SLP (Batra & Manwani 2021): what MC-DBF estimates, with every label told.

    W_r += x (1[r = y] - 1[r in Y^] / m)

The paper calls this a gradient step on L_avg = [M - s_y + mean_{Y^} s]_+ with M = 1, but drops the
hinge: it updates on every round. ``gate`` puts the hinge back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels import Answer, Kernels, Round, Unit, add_outer, kernel, weights
from superarm.labels import Label
from superarm.learners.linear import LinearLabelLearner
from superarm.parameters import number


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    gate: bool
    margin: float


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    top, m = round.top, round.top.shape[0]
    if state.gate:
        loss = state.margin - round.s[answer.label]
        for i in range(m):
            loss += round.s[top[i]] / m
        if not loss > 0.0:
            return True
    touched, c = scratch.touched, scratch.c
    touched[0], c[0] = answer.label, 1.0
    for i in range(m):
        touched[i + 1], c[i + 1] = top[i], -1.0 / m
    return add_outer(state.W, touched, c, m + 1, round.x)


@kernel
def reads_scores(state: Any, round: Round) -> bool:
    return bool(state.gate)


class MCSLP(LinearLabelLearner):
    """MC-SLP, the full-information twin of MC-DBF.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gate: update only where the hinge loss with ``margin`` is positive (the paper: always).
        margin: the margin M of the gate.
    """

    name = "mc-slp"
    kernels = Kernels(learn, reads_scores=reads_scores, sees_label=True)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        gate: bool = False,
        margin: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.gate = bool(gate)
        self.margin = number("margin", self.of, margin, 0.0)

    def start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.unit, self.rule.start(), self.gate, self.margin)
