"""Banditron (Kakade, Shalev-Shwartz & Tewari 2008): one label shown, one bit.

P = (1-gamma) e_y^ + gamma/k,   y~ ~ P,   W += (1[y~ = y] / P(y~) e_y~ - e_y^) x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from superarm.kernels import Answer, Kernels, Round, add_outer, kernel, reads_none
from superarm.labels import Label
from superarm.learners.linear import DrawingLearner
from superarm.parameters import number


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    if round.eligible.shape[0] == 1:
        return True
    touched, c, drawn, top = scratch.touched, scratch.c, round.drawn[0], round.top[0]
    touched[0], c[0] = top, -1.0
    touched[1], c[1] = drawn, np.exp(-round.odds.ordered) if answer.hit else 0.0
    n = 2
    if top == drawn:
        c[0] += c[1]
        n = 1
    return add_outer(state.W, touched, c, n, round.x)


class Banditron(DrawingLearner):
    """Banditron: the perceptron of bandit feedback.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gamma: the share of exploration, in (0, 1].
    """

    name = "banditron"
    kernels = Kernels(learn, reads_scores=reads_none)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        gamma: float = 0.1,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.gamma = number("gamma", self.of, gamma, 0.0, 1.0)
