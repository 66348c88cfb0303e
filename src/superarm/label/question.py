"""A question: a row and a few labels; which, and what speaks for the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from superarm.label.job import Labelling

__all__ = ["Question", "choose_labels", "reasons"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A row, and a few labels.

    Attributes:
        id: of this question.
        number: of the row in the table, from 0.
        row: what people see of it, by column.
        labels: those that are believed in most, best first.
        beliefs: in each of them.
        yes_no: whether to say if it is one of these, instead of which.
        again: whether the row was asked about before.
        audit: whether it would have been accepted unasked. (People should not know: they would look more closely.)
        picture: whether `Labelling.picture` has one.
    """

    id: str
    number: int
    row: dict[str, Any]
    labels: list[str]
    beliefs: list[float]
    yes_no: bool
    again: bool
    audit: bool
    picture: bool


def choose_labels(belief: Array, live: Array, most: int, yes_no: bool) -> Array:
    """Numbers of those that are believed in most; of yes or no, the set whose belief is nearest to one half."""
    order = np.argsort(-belief, kind="stable")
    order = order[live[order]]
    if not yes_no:
        return order[:most]
    some = order[: min(most, len(order) - 1)]  # of all labels, a yes says nothing
    return some[: int(np.abs(np.cumsum(belief[some]) - 0.5).argmin()) + 1]


def reasons(job: Labelling, question: Question, most: int) -> dict[str, list[tuple[str, float]]]:
    """By how much each of the first words of a row's texts raises the log-probability of the best label."""
    columns, names = job.rows.columns, [name for name in job.rows.texts() if name in question.row]
    if columns is None or not names or not question.labels:
        return {}
    row = job.rows.cells[question.number]
    label = job.state.names.index(question.labels[0])
    variants, where = [row], list[tuple[str, str]]()
    for name in names:
        words = str(row[name] or "").split()
        for at, word in enumerate(words[:most]):
            variants.append(row | {name: " ".join(words[:at] + words[at + 1 :])})
            where.append((name, word))
    rows = columns.rows(variants, job.rows.name)
    s = job.state.learner.scores(rows).astype(float)
    s -= s.max(axis=1, keepdims=True)
    logs = s[:, label] - np.log(np.exp(s).sum(axis=1))
    found: dict[str, list[tuple[str, float]]] = {}
    for (name, word), without in zip(where, logs[1:], strict=True):
        found.setdefault(name, []).append((word, round(float(logs[0] - without), 3)))
    return found
