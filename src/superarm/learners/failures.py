"""Why compiled code has stopped: errors of scores and of updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array
from superarm.data.rows import Row
from superarm.errors import SuperarmError, WeightsOverflow
from superarm.native.core import SCORE_FAILED

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


def _values(row: Any) -> Array:
    return np.concatenate([row.dense, row.values]) if isinstance(row, Row) else row


def score_error(learner: Learner, row: Any) -> SuperarmError:
    """Return why scores are not finite: the row, or the weights."""
    values = _values(row)
    if not np.isfinite(values).all():
        return learner.invalid("x", "finite", values[~np.isfinite(values)][0].item())
    return WeightsOverflow(
        f"scores of {learner.owner} must be finite, got an overflow at round {learner.round}"
    )


def update_error(learner: Learner, status: int, row: Any, round_: int | None) -> SuperarmError:
    """Return why an update was not made."""
    if status == SCORE_FAILED or not np.isfinite(_values(row)).all():
        return score_error(learner, row)
    return WeightsOverflow(
        f"weights of {learner.owner} must stay finite; the update of round {round_} would overflow, "
        "so it was not made; nothing has changed"
    )
