"""Compile all that a learner can be asked for, before it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.plain import PlainLearner
from superarm.rows import stack

__all__ = ["cache_folder", "warm_up"]


def warm_up(learner: Learner, *, sparse: bool = False) -> None:
    """Ask a new learner once for everything: single rounds, many at once, the fused loop, scores.

    Args:
        learner: one that has seen no row yet, and that nobody needs afterwards.
        sparse: for sparse rows in place of dense ones.
    """
    width = learner.n_features
    X: Any = np.eye(2, width, dtype=np.float32)
    X = stack(list(X), width, sparse=True) if sparse else X
    row = X.row(0) if sparse else X[0]
    first = learner.known.public([0])[0]
    learner.update(learner.decide(row), **_said(learner, True, first))
    learner.update_many(learner.decide_many(X), **_said(learner, [True, False], [first, first], many=True))
    learner.run(X, np.zeros(2, np.int64))
    learner.scores(X)


def _said(learner: Learner, hit: Any, label: Any, *, many: bool = False) -> dict[str, Any]:
    name, answer = ("hit", hit) if "hit" in learner.feedback else ("label", label)
    return {f"{name}s" if many else name: answer}


def cache_folder(learner: Learner) -> str | None:
    """Where its compiled code is kept; ``None`` if nowhere, or if there is none."""
    if isinstance(learner, PlainLearner):
        return None
    path = learner._loop.decide._cache.disk.cache_path  # type: ignore[attr-defined]
    return None if path is None else str(Path(path))
