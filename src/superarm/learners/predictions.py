"""Predictions: they change nothing, not even what is known of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label
from superarm.data.rows import stack
from superarm.explore.cover import check_coverage
from superarm.learners import failures
from superarm.learners.cores import rollback_inputs
from superarm.learners.locking import takes_turns
from superarm.losses import softmax

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


@takes_turns
def scores(learner: Learner, X: Any) -> Array:
    """Return the scores of all labels for every row of X."""
    with rollback_inputs(learner, keep_on_success=False):
        rows = learner.inputs.encode_rows(X, grow=False)
        out = np.zeros((len(rows), learner.n_labels), np.float32)
        learner.ensure_core().scores(rows, out)
        fine = np.isfinite(out).all(axis=1)
        if not fine.all():
            raise failures.score_error(learner, rows.row(int(np.flatnonzero(~fine)[0])))
    return out


@takes_turns
def rank(learner: Learner, x: Any) -> list[Label]:
    """Return all labels that can be shown for one row, best first."""
    with rollback_inputs(learner, keep_on_success=False):
        row = learner.inputs.encode_row(x, grow=False)
        return learner.vocabulary.decode(_ranked(learner, stack([row], learner.inputs.layout))[0])


@takes_turns
def predict(learner: Learner, X: Any) -> Array:
    """Return the best label for every row of X."""
    showable = learner.inputs.showable
    return learner.vocabulary.decode_array(showable[learner.scores(X)[:, showable].argmax(axis=1)])


@takes_turns
def predict_set(
    learner: Learner, X: Any, set_size: int | None, coverage: float | None
) -> Array | list[Array]:
    """Return the best labels for every row of X: ``set_size`` of them, or as many as a coverage needs."""
    promises, showable = learner.rule.promises_coverage, learner.inputs.showable
    size = learner.set_size if set_size is None else learner.inputs.check_set_size(set_size)
    if coverage is None and (set_size is not None or not promises):
        return learner.vocabulary.decode_array(_ranked(learner, X)[:, :size])
    p = softmax(learner.scores(X)[:, showable])
    order = np.argsort(-p, axis=1, kind="stable")
    if promises or not hasattr(learner, "predict_proba"):
        sizes = (p >= learner.coverage_at(coverage).edge).sum(axis=1)
    else:
        sums = np.take_along_axis(p, order, axis=1).cumsum(axis=1)
        sizes = 1 + (sums < check_coverage(coverage, learner.owner)).sum(axis=1)
        size = len(showable) if set_size is None else size
    sizes = sizes.clip(1, size)
    decode = learner.vocabulary.decode_array
    return [decode(showable[row[:n]]) for row, n in zip(order, sizes, strict=True)]


def _ranked(learner: Learner, X: Any) -> Array:
    """Return the indices of the labels that can be shown, best first, for every row of X."""
    showable = learner.inputs.showable
    return showable[np.argsort(-learner.scores(X)[:, showable], axis=1, kind="stable")]
