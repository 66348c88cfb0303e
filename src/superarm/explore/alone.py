"""A rule's kernel as an entry point of its own, for scores that come from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from superarm.kernels.compiling import specialise
from superarm.kernels.loop import Moment
from superarm.kernels.ranking import best_first

__all__ = ["compile_chooser"]

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
