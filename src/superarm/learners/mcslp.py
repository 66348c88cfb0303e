"""MC-SLP (Batra & Manwani 2021): what MC-DBF estimates, with every label told.

    W_r += x (1[r = y] - 1[r in Y^] / m)

The paper calls this a gradient step on L_avg = [M - s_y + mean_{Y^} s]_+ with M = 1, but drops the
hinge: it updates on every round. ``gate`` puts the hinge back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import LabelLearner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, weights


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    gate: bool
    margin: float
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
    m = top.shape[0]
    if state.gate:
        loss = state.margin - s[0, label]
        for i in range(m):
            loss += s[0, top[i]] / m
        if not loss > 0.0:
            return True
    touched, c = state.touched, state.c
    touched[0], c[0] = label, 1.0
    for i in range(m):
        touched[i + 1], c[i + 1] = top[i], -1.0 / m
    return add_outer(state.W, touched, c, m + 1, x, state.bias)


class MCSLP(LabelLearner):
    """MC-SLP, the full-information twin of MC-DBF.

    Args:
        gate: update only where the hinge loss with ``margin`` is positive (the paper: always).
        margin: the margin M of the gate.
    """

    name = "mc-slp"
    loop = compile_loop(name, learn, sees_label=True)

    def __init__(self, *, gate: bool = False, margin: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.gate = bool(gate)
        self.margin = self._number("margin", margin, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            gate=self.gate,
            margin=self.margin,
            touched=np.zeros(self.n_labels + 1, np.int64),
            c=np.zeros(self.n_labels + 1),
        )
