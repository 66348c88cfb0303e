"""Greedy: the top set itself, for learners that are told the label, and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm.data.labels import Label
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.rule import Rule
from superarm.native.rule import RuleKernel


class Greedy(Rule):
    """The best m labels, always; it draws nothing."""

    name = "greedy"

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return RuleKernel(k, seed)

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        return Mixture(eligible, m, [(top, 1.0)])
