"""Why compiled code has stopped: errors of scores and of updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array
from superarm.data.rows import Row
from superarm.errors import WeightsOverflow
from superarm.native.core import SCORE_FAILED

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


def _values(row: Any) -> Array:
    return np.concatenate([row.dense, row.values]) if isinstance(row, Row) else row


def pending_error(learner: Learner) -> BaseException | None:
    """Take the exception that a learner or a rule in plain Python raised while compiled code ran, or None."""
    provisional = learner.provisional_core
    cores = (learner.core, None if provisional is None else provisional.core)
    errors = (core.take_error() for core in cores if core is not None)
    return next((error for error in errors if error is not None), None)


def score_error(learner: Learner, row: Any) -> BaseException:
    """Return why scores are not finite: the row, the weights, or what a learner in plain Python has raised."""
    error = pending_error(learner)
    if error is not None:
        return error
    values = _values(row)
    if not np.isfinite(values).all():
        return learner.invalid("x", "finite", values[~np.isfinite(values)][0].item())
    return WeightsOverflow(
        f"scores of {learner.owner} must be finite, got an overflow at round {learner.round}"
    )


def update_error(learner: Learner, status: int, row: Any, round_: int | None) -> BaseException:
    """Return why an update was not made."""
    error = pending_error(learner)
    if error is not None:
        return error
    if status == SCORE_FAILED or not np.isfinite(_values(row)).all():
        return score_error(learner, row)
    return WeightsOverflow(
        f"weights of {learner.owner} must stay finite; the update of round {round_} would overflow, "
        "so it was not made; nothing has changed"
    )
