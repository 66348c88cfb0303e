"""Greedy: the top set itself, for learners that are told the label, and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm.data.labels import Label
from superarm.explore.draws import Draw, FewSets
from superarm.explore.rule import Rule
from superarm.native.greedy import GreedyRule


class Greedy(Rule):
    """The best m labels, always; it draws nothing."""

    name = "greedy"

    def make_native(self, k: int, seed: int) -> Any:
        return GreedyRule(k, seed)

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        return FewSets(eligible, m, [(top, 1.0)])
