"""Banditron (Kakade, Shalev-Shwartz & Tewari 2008): one label shown, one bit.

P = (1-gamma) e_y^ + gamma/k,   y~ ~ P,   W += (1[y~ = y] / P(y~) e_y~ - e_y^) x
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, weights


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    touched: np.ndarray[Any, Any]  # scratch
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
    if design.n == 1:
        return True
    touched, c = state.touched, state.c
    touched[0], c[0] = top[0], -1.0
    touched[1], c[1] = drawn[0], np.exp(-odds[0]) if hit else 0.0
    n = 2
    if top[0] == drawn[0]:
        c[0] += c[1]
        n = 1
    return add_outer(state.W, touched, c, n, x, state.bias)


class Banditron(Learner):
    """Banditron: the perceptron of bandit feedback.

    Args:
        gamma: the share of exploration, in (0, 1].
    """

    name = "banditron"
    loop = compile_loop(name, learn)
    single_label = True

    def __init__(self, *, gamma: float = 0.1, **common: Any) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.bias, np.zeros(2, np.int64), np.zeros(2))
