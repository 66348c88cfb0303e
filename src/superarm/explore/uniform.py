"""Uniform: every set alike, whatever the scores; the log that can answer any later question."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma
from typing import Any

from superarm.explore.base import Rule
from superarm.explore.draws import Draw, FewSets
from superarm.explore.greedy import Nothing
from superarm.kernels.compiling import kernel
from superarm.kernels.loop import Odds
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import contains, top_positions
from superarm.labels import Label

__all__ = ["Uniform", "draw_uniform", "log_uniform"]


@kernel
def draw_uniform(n: int, moment: Any, first: int, drawn: Any) -> None:
    """Floyd's way to m out of n positions, with the uniforms from number ``first`` on."""
    m = drawn.shape[0]
    for i in range(m):
        at = int(uniform(moment.seed, moment.round, first + i) * (n - m + i + 1))
        drawn[i] = at if not contains(drawn[:i], at) else n - m + i


@kernel
def log_uniform(n: int, m: int) -> float:
    """log of the probability of each set."""
    return lgamma(m + 1.0) + lgamma(n - m + 1.0) - lgamma(n + 1.0)


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
    n, m = eligible.shape[0], top.shape[0]
    top_positions(s, eligible, top)
    draw_uniform(n, moment, 0, drawn)
    for i in range(m):
        top[i] = eligible[top[i]]
        drawn[i] = eligible[drawn[i]]
    odds = log_uniform(n, m)
    return Odds(odds - lgamma(m + 1.0), odds)


class Uniform(Rule):
    """Each set of m labels with the same probability.

    Args:
        set_size: how many labels to show.
        seed: every draw is a pure function of (seed, round, position).
        labels: the names of the labels, if they have names.
    """

    name = "uniform"
    choose = choose

    def start(self) -> Nothing:
        return Nothing()

    def scratch(self, k: int) -> Nothing:
        return Nothing()

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        return FewSets(eligible, m, [], uniform=1.0)
