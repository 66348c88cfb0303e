"""The families of learners, by what they are told and by how their sets are chosen.

AnyRuleLearner    its sets by a word or a number, by a promised coverage, or by any rule of superarm.explore
LabelLearner        the same, and it is told the label of every row
BanditLearner       bits about labels that are drawn around its best ones; about one label, but for MC-DBF
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from superarm.data.labels import Label
from superarm.explore.cover import Cover, check_coverage
from superarm.explore.dilute import Dilute
from superarm.explore.greedy import Greedy
from superarm.explore.registry import rule_from
from superarm.explore.rule import Rule
from superarm.explore.runner_up import RunnerUp, check_explore
from superarm.learners.learner import Learner
from superarm.parameters import check_number, check_share

Explore = str | float | Rule | dict[str, Any] | None


class CommonParams(TypedDict, total=False):
    """The parameters that every learner passes on to `Learner`; its docstring explains them."""

    n_labels: int | None
    labels: Sequence[Label] | None
    n_features: int | tuple[int, int] | None
    set_size: int | None
    seed: int
    intercept: bool | float
    scaling: str | None


class CoverageParams(CommonParams, total=False):
    """The parameters that a learner passes on to `LabelLearner`, beside ``explore``."""

    coverage: float | None
    uniform: float


class AnyRuleParams(CoverageParams, total=False):
    """The parameters that a learner passes on to `AnyRuleLearner`."""

    explore: Explore


class AnyRuleLearner(Learner):
    """A learner whose update does not depend on which rule chose the set.

    Args:
        set_size: how many labels to show, 1 <= m < k; 1 by default. With ``coverage`` the most that are shown, and
            all of them by default.
        coverage: show as few labels as needed so that the right one is among them so often, 0.95 say (after
            a warm-up; docs/coverage.md). ``learner.coverage`` tells what was kept.
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; a number from 0 (show) to 1 (rank);
            any rule of `superarm.explore`; or ``None``, the best labels are shown.
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
    """

    answer_noise: tuple[float, float] = (0.0, 0.0)  # false_no and false_yes, where the learner has them

    def __init__(
        self,
        *,
        coverage: float | None = None,
        explore: Explore = "balanced",
        uniform: float = 0.0,
        **common: Unpack[CommonParams],
    ) -> None:
        set_size = common.pop("set_size", None)
        super().__init__(**common)
        self.explore = rule_from(explore, self.owner) if isinstance(explore, dict) else explore
        self._coverage = None if coverage is None else check_coverage(coverage, self.owner)
        self.uniform = check_share("uniform", self.owner, uniform)
        if coverage is not None and explore not in (None, "balanced"):
            raise self.invalid("explore", "left out with coverage, which has a way of its own", explore)
        if self.explore is not None and not isinstance(self.explore, Rule):
            check_explore(self.explore, self.owner)
        elif uniform and coverage is None:
            raise self.invalid("uniform", "left to the rule that explore names", uniform)
        self.inputs.sizes_vary = self.rule.sizes_vary
        self.inputs.shows_one_label |= self.rule.shows_one_label
        self._set_size = self.inputs.check_set_size(set_size)

    def parameter_value(self, name: str) -> Any:
        """Return a parameter as it was given: the property ``coverage`` is the observed coverage."""
        return self._coverage if name == "coverage" else super().parameter_value(name)

    def make_rule(self) -> Rule:
        if self._coverage is not None:
            false_no, false_yes = self.answer_noise
            return Cover(
                coverage=self._coverage, uniform=self.uniform, false_no=false_no, false_yes=false_yes
            )
        if self.explore is None:
            return Greedy()
        if isinstance(self.explore, Rule):
            return self.explore
        return RunnerUp(explore=self.explore, uniform=self.uniform, forget=self.scaling_forget)


class LabelLearner(AnyRuleLearner):
    """A learner with full information: it is told the label of every row.

    Args:
        coverage: show as few labels as needed so that the right one is among them so often, 0.95 say
            (docs/coverage.md). ``learner.coverage`` tells what was kept.
        explore: by default the best labels are shown; else as `SetLogit` has it: a word, a number, or a rule.
    """

    feedback = ("label",)

    def __init__(self, *, explore: Explore = None, **common: Unpack[CoverageParams]) -> None:
        super().__init__(explore=explore, **common)


class BanditParams(CommonParams, total=False):
    """The parameters that a learner passes on to `BanditLearner`."""

    gamma: float


class BanditLearner(Learner):
    """A learner of bits about one label (MC-DBF: several): its best one, or with a share of exploration any other.

    Args:
        set_size: 1.
        gamma: the share of exploration, in (0, 1].
    """

    shows_one_label = True

    def __init__(self, *, gamma: float = 0.1, **common: Unpack[CommonParams]) -> None:
        super().__init__(**common)
        self.gamma = check_number("gamma", self.owner, gamma, 0.0, 1.0)

    def make_rule(self) -> Rule:
        return Dilute(gamma=self.gamma)
