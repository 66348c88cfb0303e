"""A game: a person answers questions about sets of digits, and three learners learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from superarm._types import JsonObject
from superarm.decisions.decision import Decision
from superarm.errors import FeedbackError
from superarm.learners import MCDBF, Learner, SetLogit
from superarm.streams import open_data

SET_SIZE = 3
# The paper's MC-DBF at its best: with less exploration it learns more slowly here (0.1: hardly at all).
GAMMA = 0.7
MAX_COUNT = 1_000  # answers of the computer to one request
N_TEST = 500  # pictures
LEARNERS = ("set-logit", "mc-dbf", "labels")  # these learn from a bit, from a bit, from every label


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer that SetLogit learnt from."""

    shown: list[int]
    hit: bool
    label: int  # the true one, which it did not get


class Game:
    """Digits in a random order, passed to three learners; their errors on test pictures.

    Each picture goes to all three. SetLogit learns whether the digit was in the set that it showed, from
    whoever plays. MC-DBF can learn only from sets that it drew itself: it gets the same bit about its own
    set, from the data. The third is SetLogit again, with every label.

    Args:
        seed: for the order of the pictures and for the sets.
    """

    def __init__(self, seed: int = 0) -> None:
        digits: Any = open_data("digits")
        self.X, self.y = digits.rows.dense, digits.y
        random = np.random.default_rng(seed)
        order = random.permutation(len(self.y))
        self.test, self.training = order[:N_TEST], order[N_TEST:]
        common: JsonObject = {"n_labels": 10, "n_features": self.X.shape[1], "set_size": SET_SIZE}
        self.learners: dict[str, Learner] = {
            "set-logit": SetLogit(**common, seed=seed),
            "mc-dbf": MCDBF(**common, gamma=GAMMA, seed=seed),
            "labels": SetLogit(**common, seed=seed),
        }
        self._pictures = self._endless_pictures(random)
        self.answers = self.by_person = 0
        self.last_answer: LastAnswer | None = None
        self.curve: list[tuple[float, ...]] = []  # answers, and the error of each learner
        self._next()

    def _endless_pictures(self, random: np.random.Generator) -> Iterator[int]:
        while True:
            yield from random.permutation(self.training).tolist()

    def _next(self) -> None:
        self.picture = next(self._pictures)
        self.x, self.label = self.X[self.picture], int(self.y[self.picture])
        self.decision: Decision = self.learners["set-logit"].decide(self.x)

    @property
    def shown(self) -> list[int]:
        """The set that SetLogit shows for the picture, best first."""
        return [int(label) for label in self.decision.labels]

    def probabilities(self) -> list[float]:
        """Return SetLogit's probability of each digit, for the picture."""
        learner = self.learners["set-logit"]
        assert isinstance(learner, SetLogit)
        return [float(p) for p in learner.predict_proba(self.x[None])[0]]

    def errors(self) -> tuple[float, ...]:
        """Return the share of test pictures whose top label is wrong, for each learner."""
        X, y = self.X[self.test], self.y[self.test]
        return tuple(float(np.mean(learner.predict(X) != y)) for learner in self.learners.values())

    def answer(self, question: int, hit: bool) -> None:
        """Take a person's answer to the set on show; ``question`` counts the answers before it."""
        if question != self.answers:
            raise FeedbackError.must("question", "play", f"{self.answers}, the one on show", question)
        self._learn(hit, by_person=True)
        self._measure()

    def answer_by_computer(self, count: int) -> None:
        """Give ``count`` answers from the data."""
        if not 1 <= count <= MAX_COUNT:
            raise FeedbackError.must("count", "play", f"from 1 to {MAX_COUNT:,}", count)
        for _ in range(count):
            self._learn(self.label in self.shown, by_person=False)
            if _is_checkpoint(self.answers):
                self._measure()
        self._measure()

    def _learn(self, hit: bool, *, by_person: bool) -> None:
        label, set_logit, mc_dbf, labels = self.label, *self.learners.values()
        set_logit.update(self.decision, hit=hit)
        decision = mc_dbf.decide(self.x)
        mc_dbf.update(decision, hit=label in decision.labels)
        labels.update(labels.decide(self.x), label=label)
        self.last_answer = LastAnswer(self.shown, hit, label)
        self.answers += 1
        self.by_person += by_person
        self._next()

    def _measure(self) -> None:
        if not self.curve or self.curve[-1][0] < self.answers:
            self.curve.append((self.answers, *self.errors()))


def _is_checkpoint(answers: int) -> bool:
    """Return whether to measure: after each of the first hundred, then 45 times in each power of ten.

    >>> [n for n in range(1, 1000) if _is_checkpoint(n)][95:103]
    [96, 97, 98, 99, 100, 120, 140, 160]
    """
    return answers < 100 or answers % (2 * 10 ** (floor(log10(answers)) - 1)) == 0
