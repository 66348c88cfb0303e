"""The number that is read is near the truth on a service's own log; what is expected of a set is calibrated."""

from __future__ import annotations

import numpy as np
import pytest

import superarm as sa
from superarm.logs import Log, Policy, Writer, evaluate, summarize
from superarm.logs.calibration import ExpectationCalibrator
from superarm.logs.hit_rates import HitRateSums
from superarm.logs.weights import ImportanceWeights

K, D, M = 8, 5, 3


def service_log(path, rows, seed):
    """A service's own log in an easy world, the model that served, and fresh rows."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((K, D))

    def draw(n):
        y = random.integers(0, K, n)
        return (centres[y] + 0.4 * random.standard_normal((n, D))).astype(np.float32), y

    served = sa.SetLogit(n_labels=K, n_features=D, set_size=M, uniform=0.02, seed=seed)
    with Writer(str(path)) as log:
        for x, y in zip(*draw(rows), strict=True):
            decision = served.decide(x)
            log.add(decision, hit=bool(y in decision.labels))
            served.update(decision, hit=bool(y in decision.labels))
    return Log(str(path)), served, draw(20_000)


def test_calibration_puts_expectations_right():
    random = np.random.default_rng(0)
    q = random.uniform(0.02, 0.98, 4_000)
    right = 1 / (1 + np.exp(-(0.5 + 2.0 * np.log(q / (1 - q)))))
    hit = (random.random(len(q)) < right).astype(float)
    calibrator = ExpectationCalibrator()
    found, _ = calibrator.calibrate(q, q, hit)
    assert np.abs(found[-500:] - right[-500:]).mean() < 0.02
    assert found[:64] == pytest.approx(q[:64])  # nothing is known yet
    piecewise, columns = ExpectationCalibrator(), (q, q, hit)
    parts = [piecewise.calibrate(*(c[i : i + 77] for c in columns))[0] for i in range(0, 4_000, 77)]
    assert np.array_equal(np.concatenate(parts), found)  # batches do not matter


def test_a_calibration_survives_answers_that_are_all_alike():
    calibrator = ExpectationCalibrator()
    q = np.full(1_000, 0.97)
    found, _ = calibrator.calibrate(q, q, np.ones(1_000))
    assert 0.97 <= found[-1] < 1.0
    found, _ = calibrator.calibrate(q, q, np.zeros(1_000))
    assert 0.2 < found[-1] < 0.8
    assert calibrator.calibrate(np.ones(3), np.ones(3), np.ones(3))[0].tolist() == [1.0] * 3


@pytest.mark.slow
@pytest.mark.no_cover
def test_the_number_that_is_read_is_near_the_truth_and_larger_sets_are_no_worse(tmp_path):
    errors, held = [], []
    for seed in range(6):
        log, served, (X, y) = service_log(tmp_path / f"{seed}.parquet", 2_500, seed)
        best = np.argsort(-served.scores(X), axis=1)
        policies = [Policy(f"{m}", learner=served, set_size=m) for m in (M, M + 1, M + 2)]
        answer = evaluate(log, policies, summarize(log), holdout=None)
        estimates = [result.best for result in answer.results]
        rates = [estimate.value for estimate in estimates]
        assert rates == sorted(rates)
        for estimate, m in zip(estimates, (M, M + 1, M + 2), strict=True):
            truth = (best[:, :m] == y[:, None]).any(axis=1).mean()
            errors.append(abs(estimate.value - truth))
            held.append(estimate.low <= truth <= estimate.high)
            assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert np.mean(errors) < 0.03
    assert np.mean(held) > 0.9


def test_a_model_that_was_never_wrong_is_not_certain():
    """Expectations that always came true leave no spread; the interval still allows for one surprise."""
    n, half = 500, np.full(500, 0.5)
    sums, f = HitRateSums("set"), (np.arange(n) % 2).astype(float)
    weights = ImportanceWeights(np.arange(n) // 2 % 2 * 2.0, np.ones(n), np.full(n, 2.0), np.full(n, np.nan))
    known = np.ones(n, bool)
    sums.add(f, weights, has_propensity=known, q_policy=half, q_logged=f, predicted=half)
    found = sums.estimates()[-1]
    assert found.value == pytest.approx(0.5)
    assert 0.003 < found.high - found.low < 0.02
