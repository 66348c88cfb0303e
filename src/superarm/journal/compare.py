"""Rounding or damage: compare a decision, or a model, with the one in the journal.

Another kind of CPU may round the last bit of a sum differently. That is no damage; another set, or a propensity that
differs by more than rounding, may be.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from superarm.decisions import Decision
from superarm.journal.events import DecisionBody

__all__ = ["BITS", "PROPENSITY", "SAME", "SETS", "compare", "nearly_same_model"]

SAME, BITS, PROPENSITY, SETS = "same", "last bits only", "propensity differs", "set differs"
ROUNDING = 1e-5
NOT_IN_JOURNAL = {"format", "learner"}
NUMBERS = {"log_propensity", "log_ordered_propensity", "belief", "rule"}  # may differ by rounding


def compare(decision: Decision, body: DecisionBody) -> str:
    """How a decision that was made again differs from the one in the journal."""
    values = decision.to_dict(row=False)
    different = {
        name for name, value in values.items() if name not in NOT_IN_JOURNAL and getattr(body, name) != value
    }
    if not different:
        return SAME
    if not different <= NUMBERS:
        return SETS
    return BITS if all(_near(values[name], getattr(body, name)) for name in different) else PROPENSITY


def _near(a: Any, b: Any) -> bool:
    """Whether two values are equal but for rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_near(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= ROUNDING * max(1.0, abs(a), abs(b))
    return bool(a == b)


def nearly_same_model(a: bytes, b: bytes) -> bool:
    """Whether two model files differ by rounding alone: by at most 1e-3 of each array's largest."""
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
