"""Learners with full information: they are told the label of every row."""

from __future__ import annotations

from typing import Any, Unpack

from superarm.explore.greedy import Greedy
from superarm.explore.rule import Rule
from superarm.learners.algorithm import CommonParams
from superarm.learners.learner import Learner


class LabelLearner(Learner):
    """A learner with full information: it shows its top set, and is told the label."""

    feedback = ("label",)

    def make_rule(self) -> Rule:
        return Greedy()


class AnySetParams(CommonParams, total=False):
    """What a learner passes on to `AnySetLearner`."""

    explore: Rule | dict[str, Any] | None


class AnySetLearner(LabelLearner):
    """A learner with full information whose update does not ask which set was shown: any rule may choose it.

    Args:
        set_size: how many labels to show, 1 <= m < k; 1 by default. With `superarm.explore.Cover` the most that
            are shown, and all of them by default.
        explore: the rule that chooses the sets, of `superarm.explore`; by default the best labels are shown.
    """

    def __init__(
        self, *, explore: Rule | dict[str, Any] | None = None, **common: Unpack[CommonParams]
    ) -> None:
        set_size = common.pop("set_size", None)
        super().__init__(**common)
        self.choose_rule(explore, set_size)

    def choose_rule(self, explore: Rule | dict[str, Any] | None, set_size: int | None) -> None:
        """Take the rule ``explore``, or show the best ``set_size`` labels."""
        rule = self._use_rule(Greedy() if explore is None else explore, set_size)
        self.explore = None if explore is None else rule

    def make_rule(self) -> Rule:
        return Greedy() if self.explore is None else self.explore
