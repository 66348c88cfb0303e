"""Questions: a row and a few labels; which, what speaks for the first of them, and who has it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.errors import FeedbackError

if TYPE_CHECKING:
    from superarm.label.job import Labelling

BUSY_SECONDS = 600.0  # how long a question waits for its answer before its row may go to somebody else
MOST_WORDS = 60  # of a text that are weighed
REMEMBERED = 1_000  # questions that were answered: the same answer, sent again, is no error


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


def choose_labels(belief: Array, left: Array, most: int, yes_no: bool) -> Array:
    """Numbers of those that are believed in most; of yes or no, the set whose belief is nearest to one half.

    Args:
        belief: in each label.
        left: whether it may be shown.
        most: how many are.
        yes_no: how it is asked.
    """
    order = np.argsort(-belief, kind="stable")
    order = order[left[order]]
    if not yes_no:
        return order[:most]
    candidates = order[: min(most, len(order) - 1)]  # of all labels, a yes says nothing
    return candidates[: int(np.abs(np.cumsum(belief[candidates]) - 0.5).argmin()) + 1]


def reasons(job: Labelling, question: Question) -> dict[str, list[tuple[str, float]]]:
    """By how much each of the first words of a row's texts raises the log-probability of the best label.

    By column; found by leaving out one word after the other.
    """
    columns, names = job.rows.columns, [name for name in job.rows.texts() if name in question.row]
    if columns is None or not names or not question.labels:
        return {}
    row = job.rows.cells[question.number]
    label = job.state.numbers[question.labels[0]]
    variants, where = [row], list[tuple[str, str]]()
    for name in names:
        words = str(row[name] or "").split()
        for at, word in enumerate(words[:MOST_WORDS]):
            variants.append(row | {name: " ".join(words[:at] + words[at + 1 :])})
            where.append((name, word))
    rows = columns.rows(variants, job.rows.name)
    s = job.state.learner.scores(rows).astype(float)
    s -= s.max(axis=1, keepdims=True)
    logs = s[:, label] - np.log(np.exp(s).sum(axis=1))
    by_column: dict[str, list[tuple[str, float]]] = {}
    for (name, word), without in zip(where, logs[1:], strict=True):
        by_column.setdefault(name, []).append((word, round(float(logs[0] - without), 3)))
    return by_column


class _Open(NamedTuple):
    """A question that is not answered yet: who has it, which of the distinct rows it is about, and since when."""

    question: Question
    by: str
    row: int
    since: float


class OpenQuestions:
    """Which question each person has before them, and which were answered lately."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._answered: dict[str, tuple[Any, ...]] = {}

    def put(self, question: Question, by: str, row: int) -> None:
        """Somebody is asked."""
        self._open[question.id] = _Open(question, by, row, time.monotonic())

    def current(self, by: str) -> Question | None:
        """What somebody has not answered yet; questions that nobody has answered for long are taken back."""
        oldest = time.monotonic() - BUSY_SECONDS
        self._open = {key: entry for key, entry in self._open.items() if entry.since >= oldest}
        return next((entry.question for entry in self._open.values() if entry.by == by), None)

    def rows(self) -> set[int]:
        """Those that somebody is asked about."""
        return {entry.row for entry in self._open.values()}

    def find(self, key: str, by: str) -> Question | None:
        """An open question of this person; None if it is not open, an error if it is somebody else's."""
        entry = self._open.get(key)
        if entry is not None and entry.by != by:
            raise FeedbackError(f"question {key} is with somebody else")
        return entry and entry.question

    def check_repeated(self, key: str, answer: tuple[Any, ...]) -> None:
        """Check that a question that is not open was answered like this before."""
        if key not in self._answered:
            raise FeedbackError(f"no such question: {key}; ask again")
        if self._answered[key] != answer:
            raise FeedbackError(f"question {key} was answered before")

    def close(self, key: str, answer: tuple[Any, ...] | None = None) -> None:
        """It was answered, or skipped."""
        del self._open[key]
        if answer is not None:
            self._answered[key] = answer
            if len(self._answered) > REMEMBERED:
                del self._answered[next(iter(self._answered))]

    def drop(self, by: str, row: int) -> None:
        """Forget what somebody has, and who is asked about a row."""
        self._open = {key: entry for key, entry in self._open.items() if entry.by != by and entry.row != row}

    def clear(self) -> None:
        """Forget what is open: labels have changed."""
        self._open.clear()
