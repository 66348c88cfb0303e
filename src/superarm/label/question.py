"""Questions: which labels they show, which words count for the first of them, and which are open."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from superarm._types import Array, Cell
from superarm.errors import FeedbackError
from superarm.label.names import OWNER
from superarm.learners.locking import takes_turns

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

# seconds that a question waits for its answer before another person may be asked about its row
QUESTION_TIMEOUT = 600.0
MAX_WORDS = 60  # of a text that are weighed


@dataclass(frozen=True, slots=True)
class Question:
    """A row, and a few labels.

    Attributes:
        id: of this question.
        row: its number in the table, from 0.
        values: what people see of it, by column.
        labels: the most probable ones, best first.
        beliefs: the probability of each of them.
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


def choose_labels(belief: Array, showable: Array, max_labels: int, yes_no: bool) -> Array:
    """Return the indices of the labels to show: the most probable; of yes or no, the set nearest to one half.

    Args:
        belief: in each label.
        showable: whether each label may be shown.
        max_labels: how many are shown at most.
        yes_no: whether the question is answered with yes or no.
    """
    order = np.argsort(-belief, kind="stable")
    order = order[showable[order]]
    if not yes_no:
        return order[:max_labels]
    candidates = order[: min(max_labels, max(1, len(order) - 1))]  # of all labels, a yes says little
    return candidates[: int(np.abs(np.cumsum(belief[candidates]) - 0.5).argmin()) + 1]


@takes_turns
def word_weights(job: Labelling, question: Question) -> dict[str, list[tuple[str, float]]]:
    """Return by how much each of the first words of a row's texts raises the log-probability of the best label.

    By column; it is found by leaving out one word after the other.
    """
    columns = job.rows.columns
    if columns is None or not question.labels:
        return {}
    cells = job.rows.cells[question.row]
    variants = [cells]
    left_out = list[tuple[str, str]]()
    for name, kind in columns.kinds.items():
        if kind != "text" or name not in question.values:
            continue
        words = str(cells[name] or "").split()
        for i, word in enumerate(words[:MAX_WORDS]):
            variants.append(cells | {name: " ".join(words[:i] + words[i + 1 :])})
            left_out.append((name, word))
    if not left_out:
        return {}
    s = job.state.model.learner.scores(columns.encode_table(variants, job.rows.name)).astype(float)
    s -= s.max(axis=1, keepdims=True)
    label = job.state.label_set.index_of[question.labels[0]]
    log_p = s[:, label] - np.log(np.exp(s).sum(axis=1))
    weights: dict[str, list[tuple[str, float]]] = {}
    for (name, word), without in zip(left_out, log_p[1:], strict=True):
        weights.setdefault(name, []).append((word, round(float(log_p[0] - without), 3)))
    return weights


class Reply(NamedTuple):
    """A reply to a question: the arguments of `Labelling.answer`; without any of them, it was skipped."""

    label: str | None = None
    none: bool = False
    yes: bool | None = None


class OpenQuestions:
    """The question that each person has before them, and the last one that they replied to."""

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}  # by person, as the others
        self._asked_at: dict[str, float] = {}
        self._timed_out: dict[str, str] = {}  # the ids of questions that were given to others
        self._last_reply: dict[str, tuple[str, Reply]] = {}  # with the id of the question
        self._asked_ids: set[str] = set()  # of all that were ever asked here

    def add(self, by: str, question: Question) -> None:
        """Add the question that a person is asked; who was asked about its row too long ago is not any more."""
        for who, other in list(self._questions.items()):
            if other.row == question.row and who != by:
                self._timed_out[who] = self._questions.pop(who).id
        self._questions[by], self._asked_at[by] = question, time.monotonic()
        self._asked_ids.add(question.id)

    def get(self, by: str) -> Question | None:
        """Return the open question of a person, which waits anew."""
        self._asked_at[by] = time.monotonic()
        return self._questions.get(by)

    def find(self, by: str, question: object, reply: Reply) -> Question | None:
        """Return the question (or the one with this id) that a person replies to; an error if it is not open for them.

        None if it is their last reply, sent again: a client does so when the response was lost.
        """
        if not isinstance(question, str | Question):
            wanted = "what ask() returned, or its id (None: there is nothing to ask)"
            raise FeedbackError.must("question", OWNER, wanted, question)
        id_ = question if isinstance(question, str) else question.id
        opened = self._questions.get(by)
        if opened is not None and opened.id == id_:
            return opened
        if self._last_reply.get(by) == (id_, reply):
            return None
        asked = next((who for who, other in self._questions.items() if other.id == id_), None)
        if asked is not None:
            whose = f"of {asked}" if asked else "without a name"
            problem = f"the question is somebody else's, asked {whose}; ask again, by ask(by={by!r})"
        elif self._timed_out.get(by) == id_:
            minutes = f"{QUESTION_TIMEOUT / 60:g} minutes"
            problem = f"the question timed out after {minutes}, and somebody else was asked; ask again"
        elif id_ in self._asked_ids:
            problem = "the question was answered before, taken back, or is somebody else's; ask again"
        else:
            problem = "its question was not asked since superarm was started; its row, if not answered, is asked anew"
        raise FeedbackError(f"this reply did not count: {problem}")

    def rows(self) -> list[int]:
        """Return the rows that somebody was asked about, but for those that may be given to others by now."""
        oldest = time.monotonic() - QUESTION_TIMEOUT
        return [question.row for who, question in self._questions.items() if self._asked_at[who] >= oldest]

    def close(self, by: str, reply: Reply) -> None:
        """Close the question of a person who has answered, or skipped it."""
        self._last_reply[by] = self._questions.pop(by).id, reply

    def take_back(self, by: str, row: int) -> None:
        """Forget the last reply of a person, and close all questions about its row."""
        self._last_reply.pop(by, None)
        self._questions = {who: q for who, q in self._questions.items() if q.row != row}

    def clear(self) -> None:
        """Close all questions: labels have changed."""
        self._questions.clear()
