"""SetLogit: the likelihood of one bit.

    p = softmax(W x),   Pr(f = 1) = sum_{r in S} p_r,   W += step (post - p) x

post is p restricted to S (f = 1) or to its complement (f = 0), renormalised; e_y if y is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, contains, kernel, softmax, weights


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    step: float
    labels: np.ndarray[Any, Any]
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
    c, k = state.c, state.c.shape[0]
    softmax(s[0], state.labels, 1.0, c)
    total = 0.0
    for i in range(drawn.shape[0]):
        total += c[drawn[i]]
    if not hit:
        total = 1.0 - total
    total = max(total, 1e-12)
    for r in range(k):
        if label >= 0:
            post = 1.0 if r == label else 0.0
        else:
            post = c[r] / total if contains(drawn, r) == hit else 0.0
        c[r] = state.step * (post - c[r])
    return add_outer(state.W, state.labels, c, k, x, state.bias)


class SetLogit(Learner):
    """Maximum likelihood from bits about sets.

    Args:
        gamma: the share of exploration, in (0, 1].
        step: the step size.
    """

    name = "set-logit"
    loop = compile_loop(name, learn)
    feedback = ("hit", "label")
    learns_from_given = True
    moves_ineligible = True  # its softmax runs over all labels

    def __init__(self, *, gamma: float = 0.1, step: float = 3.0, **common: Any) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)
        self.step = self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            step=self.step,
            labels=np.arange(self.n_labels),
            c=np.zeros(self.n_labels),
        )
