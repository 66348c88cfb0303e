"""Softmax regression, full information: the ceiling for learners of bits.

p = softmax(W x),   W += step (e_y - p) x
"""

from __future__ import annotations

from typing import Any, Unpack

from superarm._types import Array
from superarm.data.rows import Layout
from superarm.learners.families import AnyRuleParams, LabelLearner
from superarm.losses import softmax
from superarm.native.core import Core
from superarm.native.first_order import SoftmaxCore
from superarm.parameters import check_number


class Softmax(LabelLearner):
    """Softmax regression by stochastic gradient steps.

    Args:
        step: the step size; rows of length 1 want about 1 to 10.
    """

    name = "softmax"
    scores_are_log_probabilities = True

    def __init__(self, *, step: float = 1.0, **common: Unpack[AnyRuleParams]) -> None:
        super().__init__(**common)
        self.step = check_number("step", self.owner, step, 0.0)

    def make_core(self, layout: Layout) -> Core:
        return SoftmaxCore(**self.core_args(layout), step=self.step)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every label for every row of X."""
        return softmax(self.scores(X))
