"""Scores of any model, as rules take them (finite float32 numbers, or logarithms of probabilities), and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.labels import LabelVocabulary
from superarm.data.rows import FLOAT32_MAX
from superarm.errors import InvalidInput, Unquoted

SUM_TOLERANCE = 0.01  # probabilities may be off by so much in sum: files have few digits


def parse_scores(owner: str, scores: Any, probabilities: Any, ndim: int) -> Array:
    """Return scores as float32 numbers, from ``scores`` or from ``probabilities``, with ``ndim`` dimensions: 1 or 2."""
    if (scores is None) == (probabilities is None):
        raise InvalidInput.must("scores", owner, "given, or probabilities in their place", scores)
    what, values = ("scores", scores) if probabilities is None else ("probabilities", probabilities)
    try:
        s = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must(what, owner, "numbers, one for each label", values) from error
    if {s.ndim, ndim} == {1, 2}:
        row, matrix = "one row of numbers (decide_many takes a matrix)", "a matrix (decide takes one row)"
        wanted = row if ndim == 1 else matrix
        raise InvalidInput.must(what, owner, wanted, Unquoted(f"shape {s.shape}"))
    if s.ndim != ndim or s.shape[-1] < 2 or not (np.abs(s) <= FLOAT32_MAX).all():
        raise InvalidInput.must(what, owner, "finite, one for each of at least two labels", s)
    return (s if probabilities is None else log_scores(s, owner)).astype(np.float32, order="C")


def log_scores(p: Array, owner: str) -> Array:
    """Return scores whose softmax is p, which must be probabilities; ``owner`` is for messages."""
    total = p.sum(axis=-1, keepdims=True)
    if (p < 0.0).any():
        raise InvalidInput.must("probabilities", owner, "at least 0", float(p.min()))
    deviation = np.abs(total - 1.0)
    if deviation.max(initial=0.0) > SUM_TOLERANCE:
        worst = float(total.flat[int(deviation.argmax())])
        wanted = "1 in sum for each row (for any other numbers there is scores=)"
        raise InvalidInput.must("probabilities", owner, wanted, round(worst, 6))
    return np.asarray(np.log(np.maximum(p / total, 1e-30)))


def label_order_entry(labels: LabelVocabulary) -> dict[str, Any]:
    """Return the order of the labels, for records with a number for each: logs do not keep the order of names."""
    return {} if labels.names is None else {"order": labels.all()}
