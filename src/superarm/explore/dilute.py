"""Dilute: the paper's draw around the top set (Batra & Manwani 2021, eq. 5).

With the top set Y^ (the m best of n labels), P(r) = (1-gamma)/m 1[r in Y^] + gamma/n, and labels are
drawn one after another without replacement. Only two weights occur,

    a = (1-gamma)/m + gamma/n   inside Y^,        b = gamma/n   outside,

so a set's probability depends on j = |S n Y^| alone, and drawing costs O(m) whatever n is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.rule import Rule, RuleParams
from superarm.native.rule import RuleKernel
from superarm.native.stateless_rules import DiluteKernel
from superarm.parameters import check_number


class Dilute(Rule):
    """The paper's draw around the top set.

    Args:
        gamma: the share of exploration, in (0, 1].
    """

    name = "dilute"

    def __init__(self, *, gamma: float = 0.1, **common: Unpack[RuleParams]) -> None:
        super().__init__(**common)
        self.gamma = check_number("gamma", self.owner, gamma, 0.0, 1.0)

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return DiluteKernel(k, seed, self.gamma)

    def record(self, draw_log: Array, labels: LabelVocabulary) -> dict[str, Any]:
        return {"name": self.name, "gamma": float(draw_log[0])}

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.array([record["gamma"]])

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        return Mixture(eligible, m, dilute_share=1.0, top=top, gamma=record["gamma"])
