"""How SetLogit and Scores choose their sets: by a word or a number, by a promised coverage, or by any rule."""

from __future__ import annotations

from typing import Any

from superarm.explore.cover import Cover, checked_coverage
from superarm.explore.registry import rule_from
from superarm.explore.rule import Rule
from superarm.explore.runner_up import RunnerUp, strength
from superarm.learners.learner import Learner
from superarm.parameters import check_share


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
            strength(self.explore, self.owner)
        elif uniform:
            raise self.invalid("uniform", "left to the rule that explore names", uniform)
        self._use_rule(self.rule, set_size)

    def make_rule(self) -> Rule:
        if isinstance(self.explore, Rule):
            return self.explore
        if self._coverage is None:
            return RunnerUp(explore=self.explore, uniform=self.uniform, forget=self.forget)
        return Cover(
            coverage=checked_coverage(self._coverage, self.owner),
            uniform=self.uniform,
            false_no=self.false_no,
            false_yes=self.false_yes,
        )
