"""What answers about one row say of its label, and how often each person is wrong.

    b_r  ∝  p_r  Π_j L_j(r)        p the model's probability when the row was first asked about, L_j of the j-th answer

A person is wrong with the chance e, and then says each of the a other things that could be said alike:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

e is estimated: the answers that the beliefs call wrong, and PRIOR_WRONG more, of all answers and PRIOR_ANSWERS more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Answer", "WrongAnswers", "is_true", "likelihood", "possible", "posterior"]

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
FLOOR = 0.02  # of a model's probabilities, spread over all labels: no label is impossible

Array = np.ndarray[Any, Any]


class Answer(NamedTuple):
    """What a person said about a row, in numbers of labels.

    Attributes:
        seq: of its event.
        by: who said it.
        shown: the labels of the question.
        hit: whether the right one is among them; None if the question was skipped.
        label: the right one, where it was named; else -1.
        audit: whether the row would have been accepted unasked.
        final: whether nothing more is to be said: a label out of the file, or a disagreement settled.
    """

    seq: int
    by: str
    shown: tuple[int, ...]
    hit: bool | None
    label: int = -1
    audit: bool = False
    final: bool = False


def is_true(answer: Answer, k: int) -> Array:
    """Of each of k labels, whether the answer is true if it is the right one."""
    true = np.zeros(k, bool)
    if answer.label >= 0:
        true[answer.label] = True
        return true
    true[list(answer.shown)] = True
    return true if answer.hit else ~true


def possible(answers: list[Answer], live: Array) -> Array:
    """The labels under which all answers are true."""
    left = live.copy()
    for answer in answers:
        left &= is_true(answer, len(live))
    return left


def likelihood(answer: Answer, k: int, wrong: float, yes_no: bool) -> Array:
    """How probable the answer is under each of k labels, of a person who is wrong so often."""
    if answer.final:
        return is_true(answer, k).astype(float)
    others = 1 if yes_no else max(1, len(answer.shown))
    return np.where(is_true(answer, k), 1.0 - wrong, wrong / others)


def posterior(prior: Array, answers: list[Answer], wrong: dict[str, float], yes_no: bool) -> Array:
    """Beliefs after some answers."""
    k = len(prior)
    belief: Array = (1.0 - FLOOR) * prior + FLOOR * (prior > 0.0) / max(1, int(np.count_nonzero(prior)))
    for answer in answers:
        belief = belief * likelihood(answer, k, wrong[answer.by], yes_no)
        total = belief.sum()
        if total <= 0.0:  # settled for a label that is gone: the answers before it do not count
            return likelihood(answer, k, 0.0, yes_no)
        belief /= total
    return belief


class WrongAnswers:
    """How often each person is wrong: sums over rows, each row's share put anew whenever its beliefs change."""

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self._wrong: dict[str, float] = {}
        self._of_row: dict[int, dict[str, float]] = {}

    def count(self, by: str, answers: int) -> None:
        """So many more answers (or fewer) have come from somebody."""
        self.answers[by] = self.answers.get(by, 0) + answers

    def put(self, row: int, belief: Array, answers: list[Answer]) -> None:
        """What the beliefs about a row say of its answers."""
        for by, share in self._of_row.pop(row, {}).items():
            self._wrong[by] -= share
        shares: dict[str, float] = {}
        for answer in answers:
            if not answer.final:
                wrong = float(1.0 - belief[is_true(answer, len(belief))].sum())
                shares[answer.by] = shares.get(answer.by, 0.0) + max(0.0, wrong)
        for by, share in shares.items():
            self._wrong[by] = self._wrong.get(by, 0.0) + share
        self._of_row[row] = shares

    def total(self) -> float:
        """How many answers the beliefs call wrong."""
        return sum(max(0.0, wrong) for wrong in self._wrong.values())

    def rate(self, by: str) -> float:
        """The estimated chance that an answer of this person is wrong."""
        wrong, answers = max(0.0, self._wrong.get(by, 0.0)), self.answers.get(by, 0)
        return (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + answers)
