"""Softmax regression, full information: the ceiling for learners of bits.

p = softmax(W x),   W += step (e_y - p) x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm._types import Array
from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.explore.base import Rule
from superarm.learners.full_information import AnySetLearner
from superarm.learners.predictions import probabilities
from superarm.native.core import Core
from superarm.native.full_information import SoftmaxCore
from superarm.parameters import number


class Softmax(AnySetLearner):
    """Softmax regression by stochastic gradient steps.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: how many labels to show, 1 <= m < k; 1 by default. With `superarm.explore.Cover` the most that
            are shown, and all of them by default.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        scaling: ``"unit"``, rows of length 1; ``"standard"``, each column by its own mean and spread, learnt online;
            ``None``: unit, but standard for rows with names.
        explore: the rule that chooses the sets, of `superarm.explore`; by default the best labels are shown.
        step: the step size; rows of length 1 want about 1 to 10.
    """

    name = "softmax"

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | tuple[int, int] | None = None,
        set_size: int | None = None,
        seed: int = 0,
        intercept: bool | float = True,
        scaling: str | None = None,
        explore: Rule | dict[str, Any] | None = None,
        step: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
            scaling=scaling,
            explore=explore,
        )
        self.step = number("step", self.owner, step, 0.0)

    def make_core(self, layout: Layout) -> Core:
        return SoftmaxCore(**self.core_parts(layout), step=self.step)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))
