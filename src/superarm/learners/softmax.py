"""Softmax regression, full information: the ceiling for learners of bits.

p = softmax(W x),   W += step (e_y - p) x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels import Answer, Kernels, Round, Unit, add_outer, kernel, softmax, weights
from superarm.labels import Label
from superarm.learners.common import probabilities
from superarm.learners.linear import LinearLabelLearner
from superarm.parameters import number


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    step: float


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    c, eligible, n = scratch.c, round.eligible, round.eligible.shape[0]
    softmax(round.s, eligible, 1.0, c)
    for i in range(n):
        c[i] = state.step * ((eligible[i] == answer.label) - c[i])
    return add_outer(state.W, eligible, c, n, round.x)


class Softmax(LinearLabelLearner):
    """Softmax regression by stochastic gradient steps.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: of its draws.
        intercept: the constant feature of every row: True is 0.1.
        step: the step size; rows of length 1 want about 1 to 10.
    """

    name = "softmax"
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
        step: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.step = number("step", self.of, step, 0.0)

    def start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.unit, self.rule.start(), self.step)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))
