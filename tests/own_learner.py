"""A learner as a user would write one: what was shown goes up after a yes, and down after a no."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, weights


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    rate: float
    c: np.ndarray[Any, Any]


@kernel
def learn(state, design, x, s, eligible, drawn, top, odds, hit, label):
    m = drawn.shape[0]
    for i in range(m):
        state.c[i] = state.rate / m if hit else -state.rate / m
    return add_outer(state.W, drawn, state.c, m, x, state.bias)


class UpAndDown(Learner):
    name = "up-and-down"
    loop = compile_loop(name, learn)

    def __init__(self, *, gamma: float = 0.1, rate: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.gamma = self._number("gamma", gamma, 0.0, 1.0)
        self.rate = self._number("rate", rate, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.bias, self.rate, np.zeros(self.n_labels))


class NoLearner:
    """Not a Learner: to be refused."""
