"""Boltzmann: one label, drawn from a softmax that is mixed with uniform (Newtron's draw).

p = softmax(alpha s),   P = (1-gamma) p + gamma/n,   y~ ~ P
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.rule import Rule, RuleParams
from superarm.explore.scores import label_order_entry
from superarm.native.rule import RuleKernel
from superarm.native.stateless_rules import BoltzmannKernel
from superarm.parameters import check_number


class Boltzmann(Rule):
    """One label, by the softmax of the scores.

    Args:
        gamma: the share of exploration, in (0, 1].
        alpha: how sharp the softmax is.
        set_size: 1.
    """

    name = "boltzmann"
    shows_one_label = True
    label_keys = ("order",)

    def __init__(self, *, gamma: float = 0.1, alpha: float = 10.0, **common: Unpack[RuleParams]) -> None:
        super().__init__(**common)
        self.gamma = check_number("gamma", self.owner, gamma, 0.0, 1.0)
        self.alpha = check_number("alpha", self.owner, alpha, 0.0)

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return BoltzmannKernel(k, seed, self.gamma, self.alpha)

    def record(self, draw_log: Array, labels: LabelVocabulary) -> dict[str, Any]:
        return {**self.to_dict(), "probabilities": draw_log.tolist(), **label_order_entry(labels)}

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.zeros(0)  # nothing moves the rule

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        order = record.get("order", eligible)
        return Mixture(eligible, m, [([r], p) for r, p in zip(order, record["probabilities"], strict=True)])
