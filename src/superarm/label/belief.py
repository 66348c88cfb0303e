"""What answers about one item say of its label, and how often each person is wrong.

    b_r  ∝  p_r  Π_j L_j(r)        p by a model that has not learnt from the item, L_j of the j-th answer

A person is wrong with probability e, and then gives each of the a other possible answers with the same probability:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

e is the one under which all of a person's answers are most probable. Of one item, with J answers,

    Pr(answers | e)  =  sum over f of  w_f e^f (1 - e)^(J - f)        w_f = sum of p_r Π 1 / a  where f are wrong

Where every label was denied, either a share pi of rows, which no label fits, has one more, or a denial was wrong:

    Pr(none fits)  =  pi Π (1 - e_j)  /  (pi Π (1 - e_j) + (1 - pi) sum of p_r Π_j L_j(r))
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.label.answers import Answer

PRIOR_WRONG, PRIOR_ANSWERS = 0.1, 100.0
RATES = np.geomspace(1e-4, 0.3, 16)
EM_STEPS = 4
UPPER_RATES, UPPER_SHARE = np.geomspace(1e-4, 0.4, 48), 0.975  # upper limits of rates: a grid, their level
MAX_WRONG = 3  # of the answers about one item: more are as good as impossible
FLOOR = 0.02  # the share of a model's probabilities that is spread over all labels: no label is impossible


def truth_table(answers: list[Answer], k: int) -> Array:
    """Return for each answer and each of k labels whether the answer is true if that is the right label."""
    true = np.zeros((len(answers), k), bool)
    for row, answer in zip(true, answers, strict=True):
        if answer.label >= 0:
            row[answer.label] = True
        else:
            row[list(answer.shown)] = True
            row ^= not answer.hit
    return true


def possible_labels(answers: list[Answer], live: Array) -> Array:
    """Return for each label whether it is live, and all answers are true if it is the right one."""
    possible: Array = live & truth_table(answers, len(live)).all(axis=0)
    return possible


def likelihoods(answers: list[Answer], k: int, error_rates: dict[str, float], yes_no: bool) -> Array:
    """Return the probability of each answer under each of k labels, by people's error rates; final ones are right."""
    e = np.array([0.0 if answer.final else error_rates[answer.by] for answer in answers])
    others = np.array([_alternatives(answer, yes_no) for answer in answers], float)
    return np.where(truth_table(answers, k), (1.0 - e)[:, None], (e / others)[:, None])


def _alternatives(answer: Answer, yes_no: bool) -> int:
    """Return how many other answers were possible."""
    return 1 if yes_no else max(1, len(answer.shown))


def posterior(prior: Array, answers: list[Answer], error_rates: dict[str, float], yes_no: bool) -> Array:
    """Return the belief in each label after some answers."""
    # of two final answers that contradict each other the later one counts
    answers = [answer for answer in answers if answer.final][-1:] or answers
    belief: Array = _with_floor(prior) * likelihoods(answers, len(prior), error_rates, yes_no).prod(axis=0)
    belief /= belief.sum()
    return belief


def none_fits_probability(
    prior: Array, answers: list[Answer], error_rates: dict[str, float], yes_no: bool, share: float
) -> float:
    """Return the probability that no label fits, after answers that deny every label; ``share``: of all rows."""
    none_fits = share * float(np.prod([1.0 - error_rates[answer.by] for answer in answers]))
    a_slip = _with_floor(prior) @ likelihoods(answers, len(prior), error_rates, yes_no).prod(axis=0)
    return none_fits / (none_fits + (1.0 - share) * float(a_slip))


def _with_floor(prior: Array) -> Array:
    floored: Array = (1.0 - FLOOR) * prior + FLOOR * (prior > 0.0) / max(1, int(np.count_nonzero(prior)))
    return floored


class AnnotatorErrorRates:
    """How often each person is wrong.

    Args:
        n: how many items there are.
        yes_no: whether answers are only yes or no.
    """

    def __init__(self, n: int, yes_no: bool) -> None:
        self.n, self.yes_no = n, yes_no
        self._rates: dict[str, float] = {}
        self._upper_rates: dict[str, float] = {}
        self._weights: dict[str, Array] = {}  # w_0 ... of each item
        self._n_answers: dict[str, Array] = {}  # J of each item

    def set_answers(self, item: int, prior: Array, answers: list[Answer], none_share: float = 0.0) -> None:
        """Set the answers about an item that count; ``none_share``: of rows that no label fits, if all were denied."""
        for counts in self._n_answers.values():
            counts[item] = 0
        people = dict.fromkeys(answer.by for answer in answers if not answer.final)
        if not people:
            return
        k, rates = len(prior), {answer.by: self.rate(answer.by) for answer in answers}
        false = ~truth_table(answers, k)
        probabilities = likelihoods(answers, k, rates, self.yes_no)
        others = np.array([_alternatives(answer, self.yes_no) for answer in answers], float)
        for by in people:
            own = np.array([answer.by == by and not answer.final for answer in answers])
            each = np.where(own[:, None], np.where(false, 1.0 / others[:, None], 1.0), probabilities)
            weights, wrong = _with_floor(prior) * each.prod(axis=0), false[own].sum(axis=0)
            if by not in self._weights:
                self._weights[by] = np.zeros((self.n, MAX_WRONG + 1))
                self._n_answers[by] = np.zeros(self.n, np.int32)
            if none_share:
                weights, wrong = np.append((1.0 - none_share) * weights, none_share), np.append(wrong, 0)
            few = wrong <= MAX_WRONG
            if weights[few].sum() > 0.0:
                self._weights[by][item] = np.bincount(wrong[few], weights[few], MAX_WRONG + 1)
                self._n_answers[by][item] = np.count_nonzero(own)

    def fit(self) -> None:
        """Estimate the rates of all people."""
        for by in self._n_answers:
            self._rates[by] = self._estimate(by)[0]
            self._upper_rates[by] = self._upper_rate(by)

    def _estimate(self, by: str) -> tuple[float, float]:
        """Return a person's error rate, and how many of their answers are expected to be wrong."""
        items = np.flatnonzero(self._n_answers[by])
        w, n = self._weights[by][items], self._n_answers[by][items]
        rate = float(RATES[int(np.argmax([_log_probability(e, w, n) for e in RATES]))])
        for _ in range(EM_STEPS):  # expectation-maximisation, from the best of a few
            terms = w * _powers(rate, n)
            wrong = float((terms @ np.arange(MAX_WRONG + 1) / terms.sum(axis=1)).sum())
            rate = (PRIOR_WRONG + wrong) / (PRIOR_ANSWERS + float(n.sum()))
        return rate, wrong

    def _upper_rate(self, by: str) -> float:
        """Return what a person's error rate is below with a probability of 97.5 %, by the answers alone.

        They say little while the model does: until then the limit is high. The prior is that of Jeffreys.
        """
        items = np.flatnonzero(self._n_answers[by])
        w, n = self._weights[by][items], self._n_answers[by][items]
        log_likelihoods = np.array([_log_likelihood(e, w, n) for e in UPPER_RATES])
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

    def rate(self, by: str) -> float:
        """Return the estimated probability that an answer of a person is wrong."""
        return self._rates.get(by, PRIOR_WRONG / PRIOR_ANSWERS)


def _powers(e: float, n: Array) -> Array:
    """Return e^f (1 - e)^(n - f) for f = 0 ..., of items with n answers."""
    f, each = np.arange(MAX_WRONG + 1), np.arange(n.max(initial=0) + 1)
    powers: Array = e**f * (1.0 - e) ** np.maximum(each[:, None] - f, 0)
    return powers[n]


def _log_probability(e: float, w: Array, n: Array) -> float:
    """Return the log-probability of all answers of a person with the error rate e, and of that rate."""
    return _log_likelihood(e, w, n) + float(PRIOR_WRONG * np.log(e) + PRIOR_ANSWERS * np.log1p(-e))


def _log_likelihood(e: float, w: Array, n: Array) -> float:
    """Return the log-probability of all answers of a person with the error rate e."""
    return float(np.log((w * _powers(e, n)).sum(axis=1)).sum())
