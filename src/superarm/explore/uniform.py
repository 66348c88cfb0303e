"""Uniform: every set alike, whatever the scores; the log that can answer any later question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm.data.labels import Label
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.rule import Rule
from superarm.native.rule import RuleKernel
from superarm.native.stateless_rules import UniformKernel


class Uniform(Rule):
    """Each set of m labels with the same probability."""

    name = "uniform"

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return UniformKernel(k, seed)

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        return Mixture(eligible, m, dilute_share=1.0)
