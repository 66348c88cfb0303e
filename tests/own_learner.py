"""A learner as a user would write one: what was shown goes up after a yes, and down after a no."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm import Learner
from superarm.explore import Dilute
from superarm.kernels import Kernels, Unit, add_outer, kernel, weights
from superarm.parameters import number


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    rate: float


class Scratch(NamedTuple):
    scaling: int
    rule: Any
    c: np.ndarray[Any, Any]


@kernel
def learn(state, scratch, round, answer):
    m = round.drawn.shape[0]
    for i in range(m):
        scratch.c[i] = state.rate / m if answer.hit else -state.rate / m
    return add_outer(state.W, round.drawn, scratch.c, m, round.x)


class UpAndDown(Learner):
    name = "up-and-down"
    kernels = Kernels(learn)

    def __init__(self, *, gamma: float = 0.1, rate: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.gamma = number("gamma", self.of, gamma, 0.0, 1.0)
        self.rate = number("rate", self.of, rate, 0.0)

    @property
    def rule(self) -> Dilute:
        return Dilute(gamma=self.gamma)

    def start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.unit, self.rule.start(), self.rate)

    def scratch(self) -> Scratch:
        return Scratch(0, self.rule.scratch(self.n_labels), np.zeros(self.n_labels))


class NoLearner:
    """Not a Learner: to be refused."""
