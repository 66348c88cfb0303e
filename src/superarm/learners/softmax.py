"""Softmax regression, full information: the ceiling for learners of bits.

p = softmax(W x),   W += step (e_y - p) x
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import LabelLearner, probabilities
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, softmax, weights


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    step: float
    c: np.ndarray[Any, Any]  # scratch


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
    c, n = state.c, eligible.shape[0]
    softmax(s[0], eligible, 1.0, c)
    for i in range(n):
        c[i] = state.step * ((eligible[i] == label) - c[i])
    return add_outer(state.W, eligible, c, n, x, state.bias)


class Softmax(LabelLearner):
    """Softmax regression by stochastic gradient steps.

    Args:
        step: the step size; rows of length 1 want about 1 to 10.
    """

    name = "softmax"
    loop = compile_loop(name, learn, sees_label=True)

    def __init__(self, *, step: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.step = self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.bias, self.step, np.zeros(self.n_labels))

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))
