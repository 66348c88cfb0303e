"""What answers say: beliefs, rates of wrong answers, calibration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from label_jobs import small_job

from superarm.label.answers import NO_LABEL, Answer, AnswerTable, prior_of_hypotheses
from superarm.label.error_curve import ErrorCurve
from superarm.label.error_rates import PRIOR_ANSWERS, PRIOR_WRONG, PersonErrorRates


def table(answers: list[Answer], k: int, yes_no: bool = False) -> AnswerTable:
    return AnswerTable(answers, np.ones(k, bool), yes_no)


@pytest.mark.parametrize("yes_no", [False, True])
def test_beliefs_are_those_of_enumeration(yes_no: bool) -> None:
    """Against a world of people who say something else with probability e, each other thing alike."""
    k, e, prior, none_share = 4, 0.1, np.array([0.4, 0.3, 0.2, 0.1]), 0.05
    shown = (0, 2)
    says = [True, False] if yes_no else [0, 2, None]

    def right(y: int) -> Any:
        return (y in shown) if yes_no else (y if y in shown else None)

    for first, second in itertools.product(says, repeat=2):
        weights = np.zeros(k + 1)
        for y in (*range(k), NO_LABEL):
            chances = [1 - e if answer == right(y) else e / (len(says) - 1) for answer in (first, second)]
            share = none_share if y == NO_LABEL else (1 - none_share) * (0.98 * prior[y] + 0.02 / k)
            weights[y] = share * np.prod(chances)
        answers = [
            Answer(1, "a", shown, bool(answer))
            if yes_no
            else Answer(1, "a", shown, answer is not None, -1 if answer is None else answer)
            for answer in (first, second)
        ]
        belief = table(answers, k, yes_no).posterior(prior_of_hypotheses(prior, none_share), e)
        np.testing.assert_allclose(belief, weights / weights.sum())


def test_rates_of_wrong_answers_are_found() -> None:
    """Two people answer the same rows; one is wrong in a tenth of them."""
    random, k, n = np.random.default_rng(0), 5, 4000
    rates, true = PersonErrorRates(n), {"good": 0.0, "bad": 0.1}
    for _ in range(4):  # as the state does when it looks again
        random = np.random.default_rng(0)
        for row in range(n):
            y = int(random.integers(k))
            prior = np.full(k, 0.05)
            prior[y if random.random() < 0.8 else (y + 1) % k] += 0.75
            answers = []
            for by, wrong in true.items():
                answer = (y + int(random.integers(1, k))) % k if random.random() < wrong else y
                answers.append(Answer(1, by, tuple(range(k)), True, answer))
            rates.set_answers(row, prior_of_hypotheses(prior, 0.001), table(answers, k))
        rates.fit()
    assert rates.rate("good") < 0.005
    assert rates.rate("bad") == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("yes_no", [False, True])
def test_the_rate_is_the_most_probable_one(yes_no: bool) -> None:
    """Against the probability of all answers, label by label."""
    random, k, n = np.random.default_rng(1), 4, 60
    wrong, rows = PersonErrorRates(n), []
    for row in range(n):
        prior, shown = random.dirichlet(np.ones(k)), (0, 2)
        says = [bool(random.random() < 0.5) for _ in range(2)]
        answers = [Answer(1, "a", shown, answer, -1 if yes_no or not answer else 2) for answer in says]
        prior = prior_of_hypotheses(prior, 0.1)
        wrong.set_answers(row, prior, table(answers, k, yes_no))
        rows.append((prior, answers))

    def log_probability(e: float) -> float:
        total = PRIOR_WRONG * np.log(e) + PRIOR_ANSWERS * np.log1p(-e)
        for p, answers in rows:
            total += np.log((p * table(answers, k, yes_no).likelihoods(e).prod(axis=0)).sum())
        return float(total)

    for _ in range(20):
        wrong.fit()
    grid = np.linspace(0.002, 0.6, 300)
    best = grid[np.argmax([log_probability(e) for e in grid])]
    assert wrong.rate("a") == pytest.approx(best, abs=0.02)


def test_answers_that_contradict_each_other_often_give_a_rate() -> None:
    wrong = PersonErrorRates(1)
    answers = [Answer(1, "", (0, 1), True, label) for label in (0, 1) * 4]
    wrong.set_answers(0, prior_of_hypotheses(np.full(3, 1 / 3), 0.001), table(answers, 3))
    wrong.fit()
    assert 0.0 < wrong.rate("") < 1.0


def test_none_of_all_labels_is_no_wrong_answer() -> None:
    job = small_job(max_labels=9)
    for _ in range(30):
        question = job.ask()
        job.answer(question, none=True)
    job.state.error_rates.fit()
    assert job.state.error_rates.rate("") < 0.01
    assert job.disagreements() == []


def test_the_curve_of_errors_is_found_with_its_floor() -> None:
    random = np.random.default_rng(0)
    z = random.normal(-4.0, 3.0, 2_000)
    for floor, a, b in ((0.0, 0.3, 0.6), (0.05, 0.3, 1.2)):
        true = floor + (1.0 - floor) / (1.0 + np.exp(-a - b * z))
        e = (random.random(len(z)) < true).astype(float)
        curve = ErrorCurve(z, e, np.ones(len(z)))
        assert curve.floor == pytest.approx(floor, abs=0.02)
        assert curve.slope == pytest.approx(b, abs=0.2)
        assert curve.error_probabilities(z).sum() == pytest.approx(true.sum(), rel=0.1)
        low, high = (curve.quantile(z, np.ones(len(z)), share) for share in (0.025, 0.975))
        assert low < true.sum() < high < 1.4 * low


def test_without_checks_the_curve_is_its_prior() -> None:
    curve = ErrorCurve(*np.zeros((3, 0)))
    assert curve.slope == pytest.approx(1.0, abs=0.1)
    assert 0.02 < curve.floor < 0.08
    assert np.all(np.diff(curve.error_probabilities(np.linspace(-10.0, 10.0))) > 0.0)


@pytest.mark.parametrize(("n_audits", "n_wrong"), [(73, 0), (100, 0), (100, 2), (400, 8), (1_500, 15)])
def test_the_bounds_are_not_tighter_than_audits_alone_allow(n_audits: int, n_wrong: int) -> None:
    """Of rows that the model is sure of, against the interval of Clopper and Pearson."""
    stats = pytest.importorskip("scipy.stats")
    e = (np.arange(n_audits) < n_wrong).astype(float)
    curve = ErrorCurve(np.full(n_audits, -9.0), e, np.ones(n_audits))
    low, high, upper_80 = (
        curve.quantile(np.full(1, -9.0), np.ones(1), share) for share in (0.025, 0.975, 0.8)
    )
    assert high >= 0.85 * stats.beta.ppf(0.975, n_wrong + 1, n_audits - n_wrong)
    assert upper_80 >= 0.85 * stats.beta.ppf(0.8, n_wrong + 1, n_audits - n_wrong)
    assert low <= 1.15 * (stats.beta.ppf(0.025, n_wrong, n_audits - n_wrong + 1) if n_wrong else 1e-3)
