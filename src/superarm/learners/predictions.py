"""What a learner would say: scores, ranks and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.data.rows import Rows, stack
from superarm.learners import feedback

if TYPE_CHECKING:
    from superarm.data.labels import Label
    from superarm.learners.learner import Learner

__all__ = ["best", "probabilities", "rank", "scores"]

Array = np.ndarray[Any, Any]


def scores(learner: Learner, rows: Rows) -> Array:
    """The scores of all labels for every row."""
    out = np.zeros((len(rows), learner.n_labels), np.float32)
    learner._core().scores(rows, out)
    if not np.isfinite(out).all():
        at = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
        raise feedback.not_finite(learner, rows.row(at))
    return out


def best(learner: Learner, X: Any) -> Array:
    """The numbers of the labels that can be shown, best first, for every row of X."""
    return ordered(learner, learner.scores(X))


def ordered(learner: Learner, s: Array) -> Array:
    can_show = learner.inputs.can_show
    return can_show[np.argsort(-s[:, can_show], axis=1, kind="stable")]


def rank(learner: Learner, x: Any) -> list[Label]:
    """All labels that can be shown for one row, best first."""
    row = stack([learner.inputs.row(x, grow=False)], learner.inputs.layout)
    return learner.known.public(ordered(learner, learner.scores(row))[0])


def probabilities(s: Array) -> Array:
    """The softmax of each row of scores."""
    p = np.exp(s.astype(np.float64) - s.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
