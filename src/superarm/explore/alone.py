"""A rule's kernel as an entry point of its own, for scores that come from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from superarm.kernels.compiling import borrowed, specialise
from superarm.kernels.loop import Moment
from superarm.kernels.ranking import best_first

__all__ = ["compile_chooser", "compile_many"]

choose: Any = None


def _choose(  # compiled
    rule: Any,
    scratch: Any,
    table: Any,
    s: Any,
    eligible: Any,
    seed: int,
    round_: int,
    sets: Any,
    numbers: Any,
) -> tuple[float, float]:
    odds = choose(rule, scratch, table, s, eligible, Moment(seed, round_), sets[1], sets[2], numbers)
    best_first(s, sets[1], sets[0])
    return odds.ordered, odds.set


def compile_chooser(name: str, kernel: Callable[..., Any]) -> Callable[..., tuple[float, float]]:
    return specialise(_choose, name, [kernel], choose=kernel)


def _choose_many(  # compiled
    rule: Any,
    scratch: Any,
    table: Any,
    scores: Any,
    eligible: Any,
    seed: int,
    round_: int,
    sets: Any,
    numbers: Any,
    odds: Any,
) -> None:
    """`_choose` for every row of scores."""
    rule, scratch, table, scores = borrowed((rule, scratch, table, scores))
    eligible, sets, numbers, odds = borrowed((eligible, sets, numbers, odds))
    for i in range(scores.shape[0]):
        s, moment = scores[i], Moment(seed, round_ + i)
        o = choose(rule, scratch, table, s, eligible, moment, sets[i, 1], sets[i, 2], numbers[i])
        odds[i, 0], odds[i, 1] = o.ordered, o.set
        best_first(s, sets[i, 1], sets[i, 0])


def compile_many(name: str, kernel: Callable[..., Any]) -> Callable[..., None]:
    return specialise(_choose_many, name, [kernel], choose=kernel)
