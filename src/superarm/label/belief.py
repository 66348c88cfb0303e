"""What answers about one item say of its label, and how often each person is wrong.

    b_r  ∝  p_r  Π_j L_j(r)        p by a model that has not learnt from the item, L_j of the j-th answer

A person is wrong with the chance e, and then says each of the a other things that could be said alike:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

e is the one under which all of a person's answers are most probable. Of one item, with J answers,

    Pr(answers | e)  =  sum over f of  w_f e^f (1 - e)^(J - f)        w_f = sum of p_r Π 1 / a  where f are wrong
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
RATES = np.geomspace(1e-4, 0.3, 16)
STEPS = 4
MOST_WRONG = 3  # of the answers about one item: more are as good as impossible
FLOOR = 0.02  # of a model's probabilities, spread over all labels: no label is impossible


class Answer(NamedTuple):
    """What a person said about an item, in numbers of labels.

    Attributes:
        seq: of its event.
        by: who said it.
        shown: the labels of the question.
        hit: whether the right one is among them; None if the question was skipped.
        label: the right one, where it was named; else -1.
        audit: whether the item would have been accepted unasked.
        final: whether nothing more is to be said: a label of the table, or a disagreement settled.
    """

    seq: int
    by: str
    shown: tuple[int, ...]
    hit: bool | None
    label: int = -1
    audit: bool = False
    final: bool = False


def truth_table(answers: list[Answer], k: int) -> Array:
    """Of each answer and each of k labels, whether the answer is true if that is the right label."""
    true = np.zeros((len(answers), k), bool)
    for row, answer in zip(true, answers, strict=True):
        if answer.label >= 0:
            row[answer.label] = True
        else:
            row[list(answer.shown)] = True
            row ^= not answer.hit
    return true


def possible_labels(answers: list[Answer], live: Array) -> Array:
    """The labels under which all answers are true."""
    possible: Array = live & truth_table(answers, len(live)).all(axis=0)
    return possible


def likelihoods(answers: list[Answer], k: int, wrong: dict[str, float], yes_no: bool) -> Array:
    """How probable each answer is under each of k labels, of people who are wrong so often; final ones are right."""
    e = np.array([0.0 if answer.final else wrong[answer.by] for answer in answers])
    others = np.array([_alternatives(answer, yes_no) for answer in answers], float)
    return np.where(truth_table(answers, k), (1.0 - e)[:, None], (e / others)[:, None])


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
        n: how many items there are.
        yes_no: whether answers are only yes or no.

    Attributes:
        answers: of each person, how many there were.
    """

    def __init__(self, n: int, yes_no: bool) -> None:
        self.n, self.yes_no = n, yes_no
        self.answers: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._wrong: dict[str, float] = {}
        self._weights: dict[str, Array] = {}  # w_0 ... of each item
        self._n_answers: dict[str, Array] = {}  # J

    def count(self, by: str, answers: int) -> None:
        """So many more answers (or fewer) have come from somebody."""
        self.answers[by] = self.answers.get(by, 0) + answers

    def set_answers(self, item: int, prior: Array, answers: list[Answer]) -> None:
        """All valid answers about an item, which tell something of those who gave them."""
        for counts in self._n_answers.values():
            counts[item] = 0
        people = dict.fromkeys(answer.by for answer in answers if not answer.final)
        if not people:
            return
        k, rates = len(prior), {answer.by: self.rate(answer.by) for answer in answers}
        false, chances = ~truth_table(answers, k), likelihoods(answers, k, rates, self.yes_no)
        others = np.array([_alternatives(answer, self.yes_no) for answer in answers], float)
        for by in people:
            own = np.array([answer.by == by and not answer.final for answer in answers])
            each = np.where(own[:, None], np.where(false, 1.0 / others[:, None], 1.0), chances)
            weights, wrong = _with_floor(prior) * each.prod(axis=0), false[own].sum(axis=0)
            if by not in self._weights:
                self._weights[by] = np.zeros((self.n, MOST_WRONG + 1))
                self._n_answers[by] = np.zeros(self.n, np.int32)
            few = wrong <= MOST_WRONG
            if weights[few].sum() > 0.0:
                self._weights[by][item] = np.bincount(wrong[few], weights[few], MOST_WRONG + 1)
                self._n_answers[by][item] = np.count_nonzero(own)

    def fit(self) -> None:
        """Estimate everybody's rate anew."""
        for by in self._n_answers:
            self._rates[by], self._wrong[by] = self._estimate(by)

    def _estimate(self, by: str) -> tuple[float, float]:
        """Somebody's rate, and how many of their answers are wrong."""
        items = np.flatnonzero(self._n_answers[by])
        w, n = self._weights[by][items], self._n_answers[by][items]
        chances = [_log_probability(e, w, n) for e in RATES]
        rate = float(RATES[int(np.argmax(chances))])
        for _ in range(STEPS):  # expectation-maximisation, from the best of a few
            terms = w * _powers(rate, n)
            wrong = float((terms @ np.arange(MOST_WRONG + 1) / terms.sum(axis=1)).sum())
            rate = (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + float(n.sum()))
        return rate, wrong

    def wrong_share(self, by: str) -> float:
        """The share of somebody's answers that are wrong, without the prior and by a fit of now: for people to know."""
        answers = self._n_answers[by].sum() if by in self._n_answers else 0
        return self._estimate(by)[1] / float(answers) if answers else 0.0

    def n_wrong(self) -> float:
        """How many answers the beliefs call wrong."""
        return sum(self._wrong.values())

    def rate(self, by: str) -> float:
        """The estimated chance that an answer of this person is wrong."""
        return self._rates.get(by, PRIOR_WRONG / PRIOR_ANSWERS)


def _powers(e: float, n: Array) -> Array:
    """e^f (1 - e)^(n - f) for f = 0 ..., of items with n answers."""
    f, each = np.arange(MOST_WRONG + 1), np.arange(n.max(initial=0) + 1)
    powers: Array = e**f * (1.0 - e) ** np.maximum(each[:, None] - f, 0)
    return powers[n]


def _log_probability(e: float, w: Array, n: Array) -> float:
    """Of all answers of a person who is wrong so often, and of being so."""
    prior = PRIOR_WRONG * np.log(e) + PRIOR_ANSWERS * np.log1p(-e)
    return float(np.log((w * _powers(e, n)).sum(axis=1)).sum() + prior)
