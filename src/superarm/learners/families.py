"""The families of learners, by what they are told and by how their sets are chosen.

AnyRuleLearner      any rule of superarm.explore may choose its sets
LabelLearner        the same, and it is told the label of every row
BanditLearner       one bit about one label, drawn around its best one
ExploringLearner    its sets by a word or a number, by a promised coverage, or by any rule
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from superarm.explore.cover import Cover, check_coverage
from superarm.explore.dilute import Dilute
from superarm.explore.greedy import Greedy
from superarm.explore.registry import rule_from
from superarm.explore.rule import Rule
from superarm.explore.runner_up import RunnerUp, check_explore
from superarm.learners.base import CommonParams
from superarm.learners.learner import Learner
from superarm.parameters import check_number, check_share


class AnyRuleParams(CommonParams, total=False):
    """The parameters that a learner passes on to `AnyRuleLearner`."""

    explore: Rule | dict[str, Any] | None


class AnyRuleLearner(Learner):
    """A learner whose update does not depend on which rule chose the set.

    Args:
        set_size: how many labels to show, 1 <= m < k; 1 by default. With `superarm.explore.Cover` the most that
            are shown, and all of them by default.
        explore: the rule that chooses the sets, of `superarm.explore`; by default the best labels are shown.
    """

    default_rule: ClassVar[type[Rule]] = Greedy

    def __init__(
        self, *, explore: Rule | dict[str, Any] | None = None, **common: Unpack[CommonParams]
    ) -> None:
        set_size = common.pop("set_size", None)
        super().__init__(**common)
        rule = self._use_rule(self.default_rule() if explore is None else explore, set_size)
        self.explore = None if explore is None else rule

    def make_rule(self) -> Rule:
        return self.default_rule() if self.explore is None else self.explore


class LabelLearner(AnyRuleLearner):
    """A learner with full information: it is told the label of every row."""

    feedback = ("label",)


class BanditParams(CommonParams, total=False):
    """The parameters that a learner passes on to `BanditLearner`."""

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


class ExploringLearner(Learner):
    """A learner with the parameters ``explore``, ``coverage`` and ``uniform``; `set_exploration` takes them."""

    explore: str | float | Rule
    uniform: float
    forget: float = 0.0
    false_no: float = 0.0
    false_yes: float = 0.0

    def set_exploration(
        self,
        explore: str | float | Rule | dict[str, Any],
        coverage: float | None,
        uniform: float,
        set_size: int | None,
    ) -> None:
        """Check and keep how sets are chosen; ``forget``, ``false_no`` and ``false_yes`` have been set before."""
        self.explore = rule_from(explore, self.owner) if isinstance(explore, dict) else explore
        self._coverage = coverage
        self.uniform = check_share("uniform", self.owner, uniform)
        if coverage is not None and explore != "balanced":
            raise self.invalid("explore", "left out with coverage, which has a way of its own", explore)
        if not isinstance(self.explore, Rule):
            check_explore(self.explore, self.owner)
        elif uniform:
            raise self.invalid("uniform", "left to the rule that explore names", uniform)
        self._use_rule(self.rule, set_size)

    def make_rule(self) -> Rule:
        if isinstance(self.explore, Rule):
            return self.explore
        if self._coverage is None:
            return RunnerUp(explore=self.explore, uniform=self.uniform, forget=self.forget)
        return Cover(
            coverage=check_coverage(self._coverage, self.owner),
            uniform=self.uniform,
            false_no=self.false_no,
            false_yes=self.false_yes,
        )
