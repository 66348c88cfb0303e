"""Telling rounding from damage: a decision, or a model, that did not come out as it was kept.

Another kind of CPU may round the last bit of a sum otherwise. That is no damage, but a
set that differs, or odds that do by more than a rounding, may be.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from superarm.decisions import Decision
from superarm.journal.events import DecisionBody

__all__ = ["BITS", "ODDS", "SAME", "SETS", "compare", "nearly_same_model"]

SAME, BITS, ODDS, SETS = "same", "last bits only", "odds differ", "set differs"
ROUNDING = 1e-5
UNKEPT = {"format", "learner"}
NUMBERS = {"log_propensity", "log_ordered_propensity", "belief", "rule"}  # may differ by roundings


def compare(again: Decision, kept: DecisionBody) -> str:
    """How a decision came out, beside the one that was kept."""
    made = again.to_dict(row=False)
    odd = [name for name, value in made.items() if name not in UNKEPT and getattr(kept, name) != value]
    if not odd:
        return SAME
    if not set(odd) <= NUMBERS:
        return SETS
    return BITS if all(_near(made[name], getattr(kept, name)) for name in odd) else ODDS


def _near(a: Any, b: Any) -> bool:
    """Whether two values are equal but for roundings."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_near(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= ROUNDING * max(1.0, abs(a), abs(b))
    return bool(a == b)


def nearly_same_model(a: bytes, b: bytes) -> bool:
    """Whether two model files differ by roundings alone: by at most 1e-3 of each array's largest."""
    with np.load(io.BytesIO(a)) as left, np.load(io.BytesIO(b)) as right:
        if left.files != right.files:
            return False
        for name in left.files:
            one, two = left[name], right[name]
            if one.shape != two.shape or one.dtype != two.dtype:
                return False
            if one.dtype.kind != "f":
                if not np.array_equal(one, two):
                    return False
            elif one.size and np.abs(one - two).max() > 1e-3 * max(np.abs(one).max(), 1e-30):
                return False
    return True
