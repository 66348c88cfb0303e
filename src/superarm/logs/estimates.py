"""Estimate: a policy's hit rate by one estimator; and what data it would take where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Literal

import numpy as np

SET_ESTIMATORS, LINEAR_ESTIMATORS = ("ips", "snips", "dr"), ("pi", "pi-dr")
ESTIMATORS = SET_ESTIMATORS + LINEAR_ESTIMATORS


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimate of a policy's hit rate.

    Attributes:
        name: one of `ESTIMATORS`; or "nested", made of those of smaller and larger sets.
        value, low, high: the estimate and its interval, within 0 and 1; NaN where there is a problem.
        rows: rows it could use.
        n_eff: how many rows of equal weight would know as much.
        max_weight: the largest weight.
        overlap: of these, the share with a weight other than 0.
        mean_weight: its expectation is 1; else sets are missing, or probabilities are wrong.
        unsupported: the share of rows that are left out, as they have no weight or too heavy a one; the interval allows
            for any outcome in them.
        problem: why it cannot be trusted; empty if it can.
        width: the width of the interval as it would be uncut: cutting it to [0, 1] does not make it sharper.
    """

    name: str
    value: float
    low: float
    high: float
    rows: int
    n_eff: float
    max_weight: float
    overlap: float
    mean_weight: float
    unsupported: float = 0.0
    problem: str = ""
    width: float = field(init=False)

    def __post_init__(self) -> None:
        value, low, high = (nan,) * 3 if self.problem else (self.value, self.low, self.high)
        object.__setattr__(self, "width", 2.0 * max(value - low, high - value))
        for name, number in {"value": value, "low": low, "high": high}.items():
            object.__setattr__(self, name, float(np.clip(number, 0.0, 1.0)))  # NaN stays NaN


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the sound estimate with the narrowest interval before cutting to [0, 1]; ``None`` if there is none."""
    sound = [estimate for estimate in estimates if not estimate.problem]
    return min(sound, key=lambda estimate: estimate.width, default=None)


@dataclass(frozen=True, slots=True)
class RequiredData:
    """What it takes to estimate a policy's hit rate.

    Attributes:
        rows: so many rows like these; ``None`` if no number of them is enough.
        uniform: or this share of uniform sets in as many rows; ``None`` if there is no such share.
        propensities: ``"missing"`` where too many rows have none; ``"wrong"`` or ``"doubtful"`` where weights do not
            average 1: ``"doubtful"`` if sets that were never possible would explain it, too; else empty.
        fewer_labels: whether an answer for fewer labels of the same ranking would tell the least hit rate.
    """

    rows: int | None
    uniform: float | None
    propensities: Literal["", "missing", "doubtful", "wrong"] = ""
    fewer_labels: bool = False
