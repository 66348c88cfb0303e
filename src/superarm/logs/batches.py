"""Log rows as arrays: which labels were shown, were in the top set, could have been shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.learners import Learner
from superarm.logs.entry import Entry
from superarm.logs.survey import Vocabulary
from superarm.rows import SparseRow, stack

__all__ = ["Batch", "batches", "probabilities"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows with an outcome; n x k arrays say which labels belong to a set."""

    entries: list[Entry]
    hit: Array
    shown: Array
    top: Array
    eligible: Array
    propensity: Array  # NaN where the log does not say
    gamma: Array  # NaN where the log does not say how the set was drawn

    def __len__(self) -> int:
        return len(self.entries)

    def matrix(self, learner: Learner) -> Any:
        """The features, dense or sparse as the learner's weights are."""
        rows = [entry.x for entry in self.entries]
        sparse = isinstance(rows[0], SparseRow) if learner.sparse is None else learner.sparse
        return stack(rows, learner.n_features, sparse=sparse)


def batches(entries: Iterable[Entry], words: Vocabulary) -> Iterator[Batch]:
    """Entries with an outcome, in batches of at most 4096 rows."""
    size = max(1, min(4096, 20_000_000 // words.n_labels))
    pending: list[Entry] = []
    for entry in entries:
        if entry.hit is not None:
            pending.append(entry)
        if len(pending) == size:
            yield _batch(pending, words)
            pending = []
    if pending:
        yield _batch(pending, words)


def _batch(entries: list[Entry], words: Vocabulary) -> Batch:
    n, k = len(entries), words.n_labels
    shown, top, eligible = (np.zeros((n, k), bool) for _ in range(3))
    gamma = np.full(n, np.nan)
    for i, entry in enumerate(entries):
        shown[i, words.codes(entry.labels, "labels", entry.place)] = True
        if entry.eligible is None:
            eligible[i] = True
        else:
            eligible[i, words.codes(entry.eligible, "eligible", entry.place)] = True
        if entry.gamma is None:
            continue
        if entry.top is not None:
            top[i, words.codes(entry.top, "top", entry.place)] = True
        elif entry.gamma == 1.0:  # uniform: any top set gives the same draw
            top[i, np.flatnonzero(eligible[i])[: len(entry.labels)]] = True
        else:
            continue
        gamma[i] = entry.gamma
    claimed = [np.nan if entry.propensity is None else entry.propensity for entry in entries]
    hit = np.array([entry.hit for entry in entries], np.float64)
    return Batch(entries, hit, shown, top, eligible, np.array(claimed, np.float64), gamma)


def probabilities(learner: Learner, X: Any) -> Array:
    """The learner's probabilities of all labels: its own, or the softmax of its scores."""
    own = getattr(learner, "predict_proba", None)
    if own is not None:
        return np.asarray(own(X), np.float64)
    s = learner.scores(X).astype(np.float64)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
