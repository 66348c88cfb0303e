"""SlotsDistribution: one label for each slot, each slot by its own chances, independently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from superarm.data.labels import Label
from superarm.explore import FewSets, SetDistribution


def slots_distribution(record: dict[str, Any], eligible: Sequence[Label]) -> SetDistribution:
    """The distribution that the rule "slots" describes."""
    slots = [dict(zip(slot["labels"], slot["chances"], strict=True)) for slot in record["slots"]]
    if len(slots) == 1:
        return FewSets(eligible, 1, [([label], chance) for label, chance in slots[0].items()])
    return SlotsDistribution(eligible, slots)


class SlotsDistribution(SetDistribution):
    """One label for each slot, drawn independently; no label belongs to two slots."""

    def __init__(self, eligible: Sequence[Label], slots: list[dict[Label, float]]) -> None:
        super().__init__(eligible, len(slots))
        self.slots = slots

    def probability(self, labels: Iterable[Label]) -> float:
        shown = list(labels)
        here = [[slot[label] for label in shown if label in slot] for slot in self.slots]
        if len(shown) != self.m or any(len(chances) != 1 for chances in here):
            return 0.0
        return prod(chances[0] for chances in here)

    def inclusion(self) -> np.ndarray[Any, Any]:
        return np.diagonal(self.pairs()).copy()

    def pairs(self) -> np.ndarray[Any, Any]:
        each = np.zeros((self.m, len(self.eligible)))
        for i, slot in enumerate(self.slots):
            for label, chance in slot.items():
                each[i, self.position[label]] = chance
        total = each.sum(axis=0)
        both = np.outer(total, total) - each.T @ each  # two labels of one slot are never shown together
        np.fill_diagonal(both, total)
        return np.asarray(both)
