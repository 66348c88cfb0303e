"""Learners of one bit about one label, which they draw around their best one."""

from __future__ import annotations

from typing import Unpack

from superarm.explore.dilute import Dilute
from superarm.explore.rule import Rule
from superarm.learners.algorithm import CommonParams
from superarm.learners.learner import Learner
from superarm.parameters import check_number


class BanditParams(CommonParams, total=False):
    """What such a learner passes on to `BanditLearner`."""

    gamma: float


class BanditLearner(Learner):
    """A learner that shows one label: its best one, or with a share of exploration any other.

    Args:
        set_size: 1.
        gamma: the share of exploration, in (0, 1].
    """

    single_label = True

    def __init__(self, *, gamma: float = 0.1, **common: Unpack[CommonParams]) -> None:
        super().__init__(**common)
        self.gamma = check_number("gamma", self.owner, gamma, 0.0, 1.0)

    def make_rule(self) -> Rule:
        return Dilute(gamma=self.gamma)
