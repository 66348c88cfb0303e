"""What learners with one matrix W share: its state, and scratch space for a step on some labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.explore.base import Rule
from superarm.explore.dilute import Dilute
from superarm.kernels import Unit, weights
from superarm.learners.base import LabelLearner, Learner, Nothing

__all__ = ["DrawingLearner", "Linear", "LinearLabelLearner", "LinearScratch"]

Array = np.ndarray[Any, Any]


class Linear(NamedTuple):
    """The state of a learner that needs no more than W."""

    W: Array
    scaling: Unit
    rule: Any


class LinearScratch(NamedTuple):
    """The labels of a step, and their coefficients."""

    scaling: Nothing
    rule: Any
    touched: Array
    c: Array


class LinearLearner(Learner):
    """State and scratch for learners that need no more than W."""

    def start(self, shape: tuple[int, int]) -> Any:
        return Linear(weights(shape), self.unit, self.rule.start())

    def scratch(self) -> Any:
        k = self.n_labels
        return LinearScratch(Nothing(), self.rule.scratch(k), np.zeros(k + 1, np.int64), np.zeros(k + 1))


class LinearLabelLearner(LinearLearner, LabelLearner):
    """The same, told every label."""


class DrawingLearner(LinearLearner):
    """A learner that draws one label as Banditron does, and divides by its probability."""

    single_label = True
    gamma: float

    @property
    def rule(self) -> Rule:
        return Dilute(gamma=self.gamma)
