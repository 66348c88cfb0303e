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
    item: int
    since: float


Reply = tuple[str | None, bool, bool | None] | None  # label, none and yes; None: skipped


class OpenQuestions:
    """The question that each person has before them, and the one that they answered last."""

    def __init__(self) -> None:
        self._by_person: dict[str, _OpenQuestion] = {}
        self._last_reply: dict[str, tuple[str, Reply]] = {}  # of each person, with the question's id

    def add(self, by: str, question: Question, item: int) -> None:
        """Somebody is asked about an item."""
        self._by_person[by] = _OpenQuestion(question, item, time.monotonic())

    def get(self, by: str) -> Question | None:
        """What somebody has not answered yet; questions that nobody has answered for long are taken back."""
        oldest = time.monotonic() - BUSY_SECONDS
        self._by_person = {who: entry for who, entry in self._by_person.items() if entry.since >= oldest}
        entry = self._by_person.get(by)
        return entry and entry.question

    def find(self, by: str, question: Question | str, reply: Reply) -> Question | None:
        """The question that somebody replies to (or its id); an error if it is not the one that they have.

        None if it is their last reply, sent again: a client does so when the response was lost.
        """
        id_ = question if isinstance(question, str) else question.id
        entry = self._by_person.get(by)
        if entry is not None and entry.question.id == id_:
            return entry.question
        if self._last_reply.get(by) == (id_, reply):
            return None
        fault = "it was answered before, taken back, or is somebody else's"
        raise FeedbackError(f"question {id_} is not open here: {fault}; ask again")

    def items(self) -> set[int]:
        """Those that somebody is asked about."""
        return {entry.item for entry in self._by_person.values()}

    def close(self, by: str, reply: Reply) -> None:
        """Somebody has answered, or skipped."""
        self._last_reply[by] = self._by_person.pop(by).question.id, reply

    def take_back(self, by: str, item: int) -> None:
        """Somebody's reply does not hold; nobody else need answer about the item any more."""
        self._last_reply.pop(by, None)
        self._by_person = {who: entry for who, entry in self._by_person.items() if entry.item != item}

    def clear(self) -> None:
        """Forget what is open: labels have changed."""
        self._by_person.clear()
