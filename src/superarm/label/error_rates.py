"""How often each person is wrong.

A person's error rate e is the one under which all of their answers are most probable. Of one item, with J answers,

    Pr(answers | e)  =  sum over f of  w_f e^f (1 - e)^(J - f)        w_f = sum of p_r Π 1 / a  where f are wrong

with p and a as in answers.py.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.label.answers import AnswerTable, floored

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
RATES = np.geomspace(1e-4, 0.3, 16)  # where the search for the most probable rate begins
EM_STEPS = 4
UPPER_RATES = np.geomspace(1e-4, 0.4, 48)  # among which upper limits are sought
UPPER_SHARE = 0.975  # the level of upper limits
MAX_WRONG = 3  # of the answers about one item: more are as good as impossible


class AnnotatorErrorRates:
    """The error rates of all people.

    Args:
        n: how many items there are.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._rates: dict[str, float] = {}
        self._upper_rates: dict[str, float] = {}
        self._weights: dict[str, Array] = {}  # w_0 ... of each item
        self._n_answers: dict[str, Array] = {}  # J of each item

    def rate(self, by: str) -> float:
        """Return the estimated probability that an answer of a person is wrong."""
        return self._rates.get(by, PRIOR_WRONG / PRIOR_ANSWERS)

    def rates(self, table: AnswerTable) -> Array:
        """Return the error rate of whoever gave each answer."""
        return np.array([self.rate(answer.by) for answer in table.answers], float)

    def remove_answers(self, item: int) -> None:
        """Forget what people said about an item."""
        for counts in self._n_answers.values():
            counts[item] = 0

    def set_answers(self, item: int, prior: Array, table: AnswerTable, none_share: float = 0.0) -> None:
        """Set the answers about an item that count; ``none_share``: of rows that no label fits, if all were denied."""
        self.remove_answers(item)
        is_wrong, likelihoods = ~table.is_true, table.likelihoods(self.rates(table))
        without_rate = np.where(is_wrong, 1.0 / table.n_others[:, None], 1.0)
        for by in dict.fromkeys(answer.by for answer in table.answers if not answer.final):
            own = np.array([answer.by == by and not answer.final for answer in table.answers])
            each = np.where(own[:, None], without_rate, likelihoods)
            weights, n_wrong = floored(prior) * each.prod(axis=0), is_wrong[own].sum(axis=0)
            if by not in self._weights:
                self._weights[by] = np.zeros((self.n, MAX_WRONG + 1))
                self._n_answers[by] = np.zeros(self.n, np.int32)
            if none_share:
                weights, n_wrong = np.append((1.0 - none_share) * weights, none_share), np.append(n_wrong, 0)
            few = n_wrong <= MAX_WRONG
            if weights[few].sum() > 0.0:
                self._weights[by][item] = np.bincount(n_wrong[few], weights[few], MAX_WRONG + 1)
                self._n_answers[by][item] = np.count_nonzero(own)

    def fit(self) -> None:
        """Estimate the rates of all people."""
        for by in self._n_answers:
            self._rates[by] = self._estimate(by)[0]
            self._upper_rates[by] = self._upper_rate(by)

    def _weights_and_counts(self, by: str) -> tuple[Array, Array]:
        """Return w and J of the items that a person has answered about."""
        items = np.flatnonzero(self._n_answers[by])
        return self._weights[by][items], self._n_answers[by][items]

    def _estimate(self, by: str) -> tuple[float, float]:
        """Return a person's error rate, and how many of their answers are expected to be wrong."""
        w, n = self._weights_and_counts(by)
        log_priors = PRIOR_WRONG * np.log(RATES) + PRIOR_ANSWERS * np.log1p(-RATES)
        rate = float(RATES[int(np.argmax(_log_likelihoods(RATES, w, n) + log_priors))])
        for _ in range(EM_STEPS):  # expectation-maximisation, from the best of a few
            terms = w * _powers(rate, n)
            wrong = float((terms @ np.arange(MAX_WRONG + 1) / terms.sum(axis=1)).sum())
            rate = (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + float(n.sum()))
        return rate, wrong

    def _upper_rate(self, by: str) -> float:
        """Return what a person's error rate is below with a probability of 97.5 %, by the answers alone.

        They say little while the model does: until then the limit is high. The prior is that of Jeffreys.
        """
        log_likelihoods = _log_likelihoods(UPPER_RATES, *self._weights_and_counts(by))
        below = np.cumsum(np.exp(log_likelihoods - log_likelihoods.max()) * UPPER_RATES**0.5)
        return float(np.interp(UPPER_SHARE * below[-1], below, UPPER_RATES))

    def upper_rates(self) -> Array:
        """Return for each item the upper limit of the error rates of people who answered; 0 if there are none."""
        rates = np.zeros(self.n)
        for by, counts in self._n_answers.items():
            rates = np.maximum(rates, np.where(counts > 0, self._upper_rates.get(by, UPPER_RATES[-1]), 0.0))
        return rates

    def wrong_share(self, by: str) -> float:
        """Return the share of a person's answers that is wrong, estimated now and without the prior."""
        n_answers = self._n_answers[by].sum() if by in self._n_answers else 0
        return self._estimate(by)[1] / float(n_answers) if n_answers else 0.0


def _powers(e: float, n: Array) -> Array:
    """Return e^f (1 - e)^(n - f) for f = 0 ..., of items with n answers."""
    f, each = np.arange(MAX_WRONG + 1), np.arange(n.max(initial=0) + 1)
    powers: Array = e**f * (1.0 - e) ** np.maximum(each[:, None] - f, 0)
    return powers[n]


def _log_likelihoods(rates: Array, w: Array, n: Array) -> Array:
    """Return the log-probability of all answers of a person under each of some error rates."""
    return np.array([np.log((w * _powers(e, n)).sum(axis=1)).sum() for e in rates], float)
