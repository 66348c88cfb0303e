"""How often each person is wrong.

A person's error rate e is the one under which all of their answers are most probable. Of one item, with J answers,

    Pr(answers | e)  =  sum over f of  w_f e^f (1 - e)^(J - f)        w_f = sum of p_r Π 1 / a  where f are wrong

with a as in answers.py, and p_r the prior there of each label and, one more r, of none.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.label.answers import AnswerTable

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
PRIOR_RATE = PRIOR_WRONG / PRIOR_ANSWERS
START_RATES = np.geomspace(1e-4, 0.3, 16)  # where the search for the most probable rate begins
EM_STEPS = 4
UPPER_RATES = np.geomspace(1e-4, 0.4, 48)  # among which upper limits are sought
UPPER_SHARE = 0.975  # the level of upper limits
MAX_WRONG = 3  # of the answers about one item: more are as good as impossible


class _PersonAnswers:
    """The answers of one person, and the error rate that follows from them.

    Args:
        n_items: how many items there are.

    Attributes:
        rate: the estimated probability that an answer is wrong.
        upper_rate: what that is below with a probability of 97.5 %, by the answers alone.
        weights: w_0 ... of each item.
        n_answers: J of each item.
    """

    def __init__(self, n_items: int) -> None:
        self.rate, self.upper_rate = PRIOR_RATE, float(UPPER_RATES[-1])
        self.weights = np.zeros((n_items, MAX_WRONG + 1))
        self.n_answers = np.zeros(n_items, np.int32)

    def fit(self) -> None:
        """Estimate the error rate and its upper limit, which Jeffreys' prior keeps high while the model says little."""
        self.rate, _ = self.estimate()
        log_likelihoods = _log_likelihoods(UPPER_RATES, *self._weights_and_counts())
        below = np.cumsum(np.exp(log_likelihoods - log_likelihoods.max()) * UPPER_RATES**0.5)
        self.upper_rate = float(np.interp(UPPER_SHARE * below[-1], below, UPPER_RATES))

    def _weights_and_counts(self) -> tuple[Array, Array]:
        """Return w and J of the items that the person has answered about."""
        items = np.flatnonzero(self.n_answers)
        return self.weights[items], self.n_answers[items]

    def estimate(self) -> tuple[float, float]:
        """Return the error rate, and how many of the answers are expected to be wrong."""
        w, n = self._weights_and_counts()
        log_priors = PRIOR_WRONG * np.log(START_RATES) + PRIOR_ANSWERS * np.log1p(-START_RATES)
        rate = float(START_RATES[int(np.argmax(_log_likelihoods(START_RATES, w, n) + log_priors))])
        for _ in range(EM_STEPS):  # expectation-maximisation, from the best of a few
            terms = w * _powers(rate, n)
            wrong = float((terms @ np.arange(MAX_WRONG + 1) / terms.sum(axis=1)).sum())
            rate = (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + float(n.sum()))
        return rate, wrong


class PersonErrorRates:
    """The error rate of each person.

    Args:
        n_items: how many items there are.
    """

    def __init__(self, n_items: int) -> None:
        self._n_items = n_items
        self._people: dict[str, _PersonAnswers] = {}

    def rate(self, by: str) -> float:
        """Return the estimated probability that an answer of a person is wrong."""
        return self._people[by].rate if by in self._people else PRIOR_RATE

    def rates(self, table: AnswerTable) -> Array:
        """Return the error rate of whoever gave each answer."""
        return np.array([self.rate(answer.by) for answer in table.answers], float)

    def upper_rates(self) -> Array:
        """Return for each item the upper limit of the error rates of people who answered; 0 if there are none."""
        rates = np.zeros(self._n_items)
        for person in self._people.values():
            rates = np.maximum(rates, np.where(person.n_answers > 0, person.upper_rate, 0.0))
        return rates

    def wrong_share(self, by: str) -> float:
        """Return the share of a person's answers that is wrong, estimated now and without the prior."""
        person = self._people.get(by)
        if person is None or not person.n_answers.any():
            return 0.0
        _, n_wrong = person.estimate()
        return n_wrong / float(person.n_answers.sum())

    def fit(self) -> None:
        """Estimate the rates of all people."""
        for person in self._people.values():
            person.fit()

    def remove_answers(self, item: int) -> None:
        """Forget what people said about an item."""
        for person in self._people.values():
            person.n_answers[item] = 0

    def set_answers(self, item: int, prior: Array, table: AnswerTable) -> None:
        """Set the answers about an item that count; ``prior``: of each hypothesis."""
        self.remove_answers(item)
        people = dict.fromkeys(answer.by for answer in table.answers if not answer.final)
        if table.is_none_contested and len(people) == 2:
            return  # one against the other: who is wrong is not known before there is a third, or a last word
        is_wrong = ~table.is_true
        likelihoods = table.likelihoods(self.rates(table))
        without_rate = np.where(is_wrong, 1.0 / table.n_others[:, None], 1.0)
        for by in people:
            own = np.array([answer.by == by and not answer.final for answer in table.answers])
            each = np.where(own[:, None], without_rate, likelihoods)
            weights = prior * each.prod(axis=0)
            n_wrong = is_wrong[own].sum(axis=0)
            if by not in self._people:
                self._people[by] = _PersonAnswers(self._n_items)
            person = self._people[by]
            is_possible = n_wrong <= MAX_WRONG
            if weights[is_possible].sum() > 0.0:
                counts = n_wrong[is_possible]
                person.weights[item] = np.bincount(counts, weights[is_possible], MAX_WRONG + 1)
                person.n_answers[item] = np.count_nonzero(own)


def _powers(e: float, n: Array) -> Array:
    """Return e^f (1 - e)^(n - f) for f = 0 ..., of items with n answers."""
    f, each = np.arange(MAX_WRONG + 1), np.arange(n.max(initial=0) + 1)
    powers: Array = e**f * (1.0 - e) ** np.maximum(each[:, None] - f, 0)
    return powers[n]


def _log_likelihoods(rates: Array, w: Array, n: Array) -> Array:
    """Return the log-probability of all answers of a person under each of some error rates."""
    return np.array([np.log((w * _powers(e, n)).sum(axis=1)).sum() for e in rates], float)
