"""Questions: a row and a few labels; which, what speaks for the first of them, and who has it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from superarm._types import Array, Cell
from superarm.errors import FeedbackError

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

BUSY_SECONDS = 600.0  # how long a question waits for its answer before its row may go to somebody else
MOST_WORDS = 60  # of a text that are weighed


@dataclass(frozen=True, slots=True)
class Question:
    """A row, and a few labels.

    Attributes:
        id: of this question.
        row: its number in the table, from 0.
        values: what people see of it, by column.
        labels: those that are believed in most, best first.
        beliefs: in each of them.
        yes_no: whether to say if it is one of these, instead of which.
        audit: whether it would have been accepted unasked. (People should not know: they would look more closely.)
    """

    id: str
    row: int
    values: dict[str, Cell]
    labels: list[str]
    beliefs: list[float]
    yes_no: bool
    audit: bool


def choose_labels(belief: Array, showable: Array, most: int, yes_no: bool) -> Array:
    """Numbers of those that are believed in most; of yes or no, the set whose belief is nearest to one half.

    Args:
        belief: in each label.
        showable: whether it may be shown.
        most: how many are.
        yes_no: how it is asked.
    """
    order = np.argsort(-belief, kind="stable")
    order = order[showable[order]]
    if not yes_no:
        return order[:most]
    candidates = order[: min(most, len(order) - 1)]  # of all labels, a yes says nothing
    return candidates[: int(np.abs(np.cumsum(belief[candidates]) - 0.5).argmin()) + 1]


def word_weights(job: Labelling, question: Question) -> dict[str, list[tuple[str, float]]]:
    """By how much each of the first words of a row's texts raises the log-probability of the best label.

    By column; found by leaving out one word after the other.
    """
    columns = job.rows.columns
    if columns is None or not question.labels:
        return {}
    cells = job.rows.cells[question.row]
    variants, left_out = [cells], list[tuple[str, str]]()
    for name, kind in columns.kinds.items():
        if kind != "text" or name not in question.values:
            continue
        words = str(cells[name] or "").split()
        for i, word in enumerate(words[:MOST_WORDS]):
            variants.append(cells | {name: " ".join(words[:i] + words[i + 1 :])})
            left_out.append((name, word))
    if not left_out:
        return {}
    s = job.state.model.learner.scores(columns.rows(variants, job.rows.name)).astype(float)
    s -= s.max(axis=1, keepdims=True)
    label = job.state.label_set.numbers[question.labels[0]]
    log_p = s[:, label] - np.log(np.exp(s).sum(axis=1))
    weights: dict[str, list[tuple[str, float]]] = {}
    for (name, word), without in zip(left_out, log_p[1:], strict=True):
        weights.setdefault(name, []).append((word, round(float(log_p[0] - without), 3)))
    return weights


class _OpenQuestion(NamedTuple):
    question: Question
    by: str
    item: int
    since: float


class OpenQuestions:
    """Which question each person has before them."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenQuestion] = {}

    def add(self, question: Question, by: str, item: int) -> None:
        """Somebody is asked about an item."""
        self._open[question.id] = _OpenQuestion(question, by, item, time.monotonic())

    def question_of(self, by: str) -> Question | None:
        """What somebody has not answered yet; questions that nobody has answered for long are taken back."""
        oldest = time.monotonic() - BUSY_SECONDS
        self._open = {id_: entry for id_, entry in self._open.items() if entry.since >= oldest}
        return next((entry.question for entry in self._open.values() if entry.by == by), None)

    def items(self) -> set[int]:
        """Those that somebody is asked about."""
        return {entry.item for entry in self._open.values()}

    def get(self, question: Question | str, by: str) -> Question:
        """An open question of this person, by itself or its id."""
        id_ = question if isinstance(question, str) else question.id
        entry = self._open.get(id_)
        if entry is None:
            raise FeedbackError(f"no such question is open: {id_}; it was answered before, or taken back")
        if entry.by != by:
            raise FeedbackError(f"question {id_} is with somebody else")
        return entry.question

    def remove(self, question: Question) -> None:
        """It was answered, or skipped."""
        del self._open[question.id]

    def drop(self, by: str, item: int) -> None:
        """Forget what somebody has, and who is asked about an item."""
        self._open = {
            id_: entry for id_, entry in self._open.items() if entry.by != by and entry.item != item
        }

    def clear(self) -> None:
        """Forget what is open: labels have changed."""
        self._open.clear()
