"""Checks of bad input: it is refused, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.checks.kit import (
    LAYOUTS,
    D,
    Make,
    answer,
    bits,
    data,
    ensure,
    learner_for,
    play,
    refused,
    row_as,
)
from superarm.errors import InvalidInput, WeightsOverflow

# in the order in which they run
__all__ = [
    "bad_row_stops_a_run",
    "bad_rows_are_refused",
    "overflow_leaves_the_last_good_state",
]


def bad_rows_are_refused(make: Make) -> None:
    """NaN, inf, wrong lengths and broken sparse rows: refused, and nothing changes."""
    good = np.ones(D, np.float32)
    bad: list[Any] = [np.ones(D - 1), np.ones(D + 1), np.ones((2, D)), "row", [None] * D, []]
    bad += [np.full(D, "x"), np.full(D, 1e39)]
    bad += [np.where(np.arange(D) == 2, value, good) for value in (np.nan, np.inf, -np.inf)]
    bad += [([0, D], [1.0, 1.0]), ([-1, 2], [1.0, 1.0]), ([3, 1], [1.0, 1.0]), ([1, 1], [1.0, 1.0])]
    bad += [([0, 1], [1.0]), ([0, 1], [1.0, np.nan]), ([0, 1], [np.inf, 1.0])]
    for kind in ("dense", "sparse"):
        learner, twin = make(), make()
        for each in (learner, twin):
            play(each, *data(3, 30), kind)
        for x in bad:
            with refused(InvalidInput, f"the row {x!r}"):
                learner.decide(x)
            with refused(InvalidInput, f"rank of the row {x!r}"):
                learner.rank(x)
        ensure(bits(learner) == bits(twin), "a refused row changed the learner")
        for each in (learner, twin):
            play(each, *data(4, 20), kind)
        ensure(bits(learner) == bits(twin), "a refused row changed what came after it")
    fresh = make()
    with refused(InvalidInput, "NaN as the first row"):
        fresh.decide(np.full(D, np.nan))
    ensure(fresh.round == 0, "a refused first row was counted")


def bad_row_stops_a_run(make: Make) -> None:
    """A run stops before a bad row, with all rounds before it learnt."""
    X, y = data()
    broken = X.copy()
    broken[70, 1] = np.nan
    learner, short = make(), make()
    with refused(InvalidInput, "NaN in a run"):
        learner.run(broken, y)
    short.run(X[:70], y[:70])
    ensure(bits(learner) == bits(short), "the run did not stop before the bad row")


def overflow_leaves_the_last_good_state(make: Make) -> None:
    """However large the rows: an update is refused, or leaves all weights finite."""
    X, y = data(rounds=40)
    for power in (5, 10, 15, 19, 25, 30, 37, 38):
        for kind in LAYOUTS:
            learner = learner_for(make, kind)
            play(learner, X[:10], y[:10], kind)
            for x, label in zip(X, y, strict=True):
                row = np.clip(x, -3, 3) * np.float32(10.0**power)
                before = bits(learner)
                try:
                    decision = learner.decide(row_as(row, kind))
                    before = bits(learner)
                    answer(learner, decision, label)
                except WeightsOverflow as error:
                    ensure("round" in str(error), f"the message names no round: {error}")
                    ensure(bits(learner) == before, "a refused update changed the learner")
                    break
            finite = all(np.isfinite(array).all() for array in learner.core.state().values())
            ensure(finite, f"rows of size 1e{power} left weights that are not finite")
