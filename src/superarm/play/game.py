"""A game: somebody answers for sets of digits, and three learners learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from superarm.decisions.decision import Decision
from superarm.errors import FeedbackError
from superarm.learners import MCDBF, Learner, SetLogit
from superarm.streams import open_data

SET_SIZE = 3
# The paper's MC-DBF at its best: with less exploration it learns more slowly here (0.1: hardly at all).
GAMMA = 0.7
AT_ONCE = 1_000  # answers of the computer
HELD_OUT = 500  # pictures that only measure
LEARNERS = ("set-logit", "mc-dbf", "labels")  # told a bit; told a bit; told every label


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer that SetLogit learnt from."""

    shown: list[int]
    hit: bool
    label: int  # the truth, which it was not told
    by_person: bool


class Game:
    """Digits in a random order, passed to three learners; their errors on pictures that teach nobody.

    Each picture goes to all three. SetLogit is told whether the digit was in the set that it showed, by
    whoever plays. MC-DBF can learn only from sets that it drew itself: it is told the same about its own
    set, out of the data. The third is SetLogit again, told every label.

    Args:
        seed: for the order of the pictures and for the sets.
    """

    def __init__(self, seed: int = 0) -> None:
        digits: Any = open_data("digits")
        self.X, self.y = digits.rows.dense, digits.y
        random = np.random.default_rng(seed)
        order = random.permutation(len(self.y))
        self._exam, self._lessons = order[:HELD_OUT], order[HELD_OUT:]
        common: dict[str, Any] = {"n_labels": 10, "n_features": self.X.shape[1], "set_size": SET_SIZE}
        self.learners: dict[str, Learner] = {
            "set-logit": SetLogit(**common, seed=seed),
            "mc-dbf": MCDBF(**common, gamma=GAMMA, seed=seed),
            "labels": SetLogit(**common, seed=seed),
        }
        self._pictures = self._visit(random)
        self.answers = self.by_person = 0
        self.last_answer: LastAnswer | None = None
        self.curve: list[tuple[float, ...]] = []  # answers, and the error of each learner
        self._next()

    def _visit(self, random: np.random.Generator) -> Iterator[int]:
        while True:
            yield from random.permutation(self._lessons).tolist()

    def _next(self) -> None:
        self.picture = next(self._pictures)
        self.x, self.label = self.X[self.picture], int(self.y[self.picture])
        self.decision: Decision = self.learners["set-logit"].decide(self.x)

    @property
    def lessons(self) -> int:
        """How many pictures there are to learn from."""
        return len(self._lessons)

    @property
    def shown(self) -> list[int]:
        """The set that SetLogit shows for the picture, best first."""
        return [int(label) for label in self.decision.labels]

    def beliefs(self) -> list[float]:
        """How probable SetLogit thinks each digit is, for the picture."""
        learner = self.learners["set-logit"]
        assert isinstance(learner, SetLogit)
        return [float(p) for p in learner.predict_proba(self.x[None])[0]]

    def errors(self) -> tuple[float, ...]:
        """The share of held-out pictures whose top label is wrong, for each learner."""
        X, y = self.X[self._exam], self.y[self._exam]
        return tuple(float(np.mean(learner.predict(X) != y)) for learner in self.learners.values())

    def answer(self, question: int, hit: bool) -> None:
        """A person's answer to the set on show; ``question`` counts the answers before it."""
        if question != self.answers:
            raise FeedbackError.must("question", "play", f"{self.answers}, the one on show", question)
        self._teach(hit, by_person=True)
        self._measure()

    def answer_itself(self, count: int) -> None:
        """Give ``count`` answers out of the data."""
        if not 1 <= count <= AT_ONCE:
            raise FeedbackError.must("count", "play", f"from 1 to {AT_ONCE:,}", count)
        for _ in range(count):
            self._teach(self.label in self.shown, by_person=False)
            if _is_mark(self.answers):
                self._measure()
        self._measure()

    def _teach(self, hit: bool, *, by_person: bool) -> None:
        label, own = self.label, self.learners["mc-dbf"].decide(self.x)
        self.learners["set-logit"].update(self.decision, hit=hit)
        self.learners["mc-dbf"].update(own, hit=label in own.labels)
        self.learners["labels"].update(self.learners["labels"].decide(self.x), label=label)
        self.last_answer = LastAnswer(self.shown, hit, label, by_person)
        self.answers += 1
        self.by_person += by_person
        self._next()

    def _measure(self) -> None:
        if not self.curve or self.curve[-1][0] < self.answers:
            self.curve.append((self.answers, *self.errors()))


def _is_mark(answers: int) -> bool:
    """Whether to measure: after each of the first hundred, then 45 times in each power of ten.

    >>> [n for n in range(1, 1000) if _is_mark(n)][95:103]
    [96, 97, 98, 99, 100, 120, 140, 160]
    """
    return answers < 100 or answers % (2 * 10 ** (floor(log10(answers)) - 1)) == 0
