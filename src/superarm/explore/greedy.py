"""Greedy: the top set itself, for learners that are told the label, and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from superarm.explore.base import Rule
from superarm.explore.draws import Draw, FewSets
from superarm.kernels.compiling import kernel
from superarm.kernels.loop import Odds
from superarm.kernels.ranking import top_positions
from superarm.labels import Label

__all__ = ["Greedy"]


class Nothing(NamedTuple):
    """State, or scratch space, that nobody needs."""

    none: int = 0


@kernel
def choose(
    rule: Any,
    scratch: Any,
    table: Any,
    s: Any,
    eligible: Any,
    moment: Any,
    drawn: Any,
    top: Any,
    numbers: Any,
) -> Odds:
    top_positions(s, eligible, top)
    for i in range(top.shape[0]):
        top[i] = eligible[top[i]]
        drawn[i] = top[i]
    return Odds(0.0, 0.0)


class Greedy(Rule):
    """The best m labels, always.

    Args:
        set_size: how many labels to show.
        seed: it draws nothing.
        labels: the names of the labels, if they have names.
    """

    name = "greedy"
    choose = choose

    def start(self) -> Nothing:
        return Nothing()

    def scratch(self, k: int) -> Nothing:
        return Nothing()

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        return FewSets(eligible, m, [(top, 1.0)])
