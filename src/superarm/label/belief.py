"""What answers about one row say of its label, and how often each person is wrong.

    b_r  ∝  p_r  Π_j L_j(r)        p by a model that has not learnt from the row, L_j of the j-th answer

A person is wrong with the chance e, and then says each of the a other things that could be said alike:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

e is the one under which all of a person's answers are most probable. Of one row, with J answers,

    Pr(answers | e)  =  sum over f of  w_f e^f (1 - e)^(J - f)        w_f = sum of p_r Π 1 / a  where f are wrong
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
RATES = np.geomspace(1e-4, 0.3, 16)
STEPS = 4
MOST_WRONG = 3  # of the answers about one row: more are as good as impossible
FLOOR = 0.02  # of a model's probabilities, spread over all labels: no label is impossible


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


def are_true(answers: list[Answer], k: int) -> Array:
    """Of each answer and each of k labels, whether the answer is true if that is the right label."""
    named = [(answer.label,) if answer.label >= 0 else answer.shown for answer in answers]
    true = np.zeros((len(answers), k), bool)
    which = np.repeat(np.arange(len(answers)), [len(labels) for labels in named])
    true[which, [label for labels in named for label in labels]] = True
    denied = np.array([answer.label < 0 and not answer.hit for answer in answers], bool)
    true[denied] = ~true[denied]
    return true


def possible(answers: list[Answer], live: Array) -> Array:
    """The labels under which all answers are true."""
    left: Array = live & are_true(answers, len(live)).all(axis=0)
    return left


def likelihoods(answers: list[Answer], k: int, wrong: dict[str, float], yes_no: bool) -> Array:
    """How probable each answer is under each of k labels, of people who are wrong so often; final ones are right."""
    e = np.array([0.0 if answer.final else wrong[answer.by] for answer in answers])
    others = np.array([_alternatives(answer, yes_no) for answer in answers], float)
    return np.where(are_true(answers, k), (1.0 - e)[:, None], (e / others)[:, None])


def _alternatives(answer: Answer, yes_no: bool) -> int:
    """How many other things could have been said."""
    return 1 if yes_no else max(1, len(answer.shown))


def posterior(prior: Array, answers: list[Answer], wrong: dict[str, float], yes_no: bool) -> Array:
    """Beliefs after some answers."""
    # of two final answers that contradict each other the later one counts
    answers = [answer for answer in answers if answer.final][-1:] or answers
    belief: Array = _with_floor(prior) * likelihoods(answers, len(prior), wrong, yes_no).prod(axis=0)
    belief /= belief.sum()
    return belief


def _with_floor(prior: Array) -> Array:
    floored: Array = (1.0 - FLOOR) * prior + FLOOR * (prior > 0.0) / max(1, int(np.count_nonzero(prior)))
    return floored


class WrongAnswers:
    """How often each person is wrong.

    Args:
        n: how many rows there are.

    Attributes:
        answers: of each person, how many there were.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.answers: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._wrong: dict[str, float] = {}
        self._weights: dict[str, Array] = {}  # w_0 ... of each row
        self._answers_of_row: dict[str, Array] = {}  # J

    def count(self, by: str, answers: int) -> None:
        """So many more answers (or fewer) have come from somebody."""
        self.answers[by] = self.answers.get(by, 0) + answers

    def put(self, row: int, prior: Array, answers: list[Answer], yes_no: bool) -> None:
        """Keep what the answers about a row say of those who gave them."""
        for counts in self._answers_of_row.values():
            counts[row] = 0
        people = dict.fromkeys(answer.by for answer in answers if not answer.final)
        if not people:
            return
        k, rates = len(prior), {answer.by: self.rate(answer.by) for answer in answers}
        false, chances = ~are_true(answers, k), likelihoods(answers, k, rates, yes_no)
        others = np.array([_alternatives(answer, yes_no) for answer in answers], float)
        for by in people:
            of_person = np.array([answer.by == by and not answer.final for answer in answers])
            own = int(np.count_nonzero(of_person))
            each = np.where(of_person[:, None], np.where(false, 1.0 / others[:, None], 1.0), chances)
            weights, wrong = _with_floor(prior) * each.prod(axis=0), false[of_person].sum(axis=0)
            if by not in self._weights:
                self._weights[by] = np.zeros((self.n, MOST_WRONG + 1))
                self._answers_of_row[by] = np.zeros(self.n, np.int32)
            few = wrong <= MOST_WRONG
            if weights[few].sum() > 0.0:
                self._weights[by][row] = np.bincount(wrong[few], weights[few], MOST_WRONG + 1)
                self._answers_of_row[by][row] = own

    def fit(self) -> None:
        """Estimate everybody's rate anew."""
        for by in self._answers_of_row:
            self._rates[by], self._wrong[by] = self._estimate(by)

    def _estimate(self, by: str) -> tuple[float, float]:
        """Somebody's rate, and how many of their answers are wrong."""
        rows = np.flatnonzero(self._answers_of_row[by])
        w, n = self._weights[by][rows], self._answers_of_row[by][rows]
        chances = [_log_probability(e, w, n) for e in RATES]
        rate = float(RATES[int(np.argmax(chances))])
        for _ in range(STEPS):  # expectation-maximisation, from the best of a few
            terms = w * _powers(rate, n)
            wrong = float((terms @ np.arange(MOST_WRONG + 1) / terms.sum(axis=1)).sum())
            rate = (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + float(n.sum()))
        return rate, wrong

    def share(self, by: str) -> float:
        """The share of somebody's answers that are wrong, without the prior and by a fit of now: for people to know."""
        answers = self._answers_of_row[by].sum() if by in self._answers_of_row else 0
        return self._estimate(by)[1] / float(answers) if answers else 0.0

    def total(self) -> float:
        """How many answers the beliefs call wrong."""
        return sum(self._wrong.values())

    def rate(self, by: str) -> float:
        """The estimated chance that an answer of this person is wrong."""
        return self._rates.get(by, PRIOR_WRONG / PRIOR_ANSWERS)


def _powers(e: float, n: Array) -> Array:
    """e^f (1 - e)^(n - f) for f = 0 ..., of rows with n answers."""
    f, each = np.arange(MOST_WRONG + 1), np.arange(n.max(initial=0) + 1)
    powers: Array = e**f * (1.0 - e) ** np.maximum(each[:, None] - f, 0)
    return powers[n]


def _log_probability(e: float, w: Array, n: Array) -> float:
    """Of all answers of a person who is wrong so often, and of being so."""
    prior = PRIOR_WRONG * np.log(e) + PRIOR_ANSWERS * np.log1p(-e)
    return float(np.log((w * _powers(e, n)).sum(axis=1)).sum() + prior)
