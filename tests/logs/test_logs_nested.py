"""The best labels of one ranking, some or more of them: their intervals together still hold the truth."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest

from superarm._intervals import student_margin
from superarm.logs import Estimate, Policy, PolicyResult, RequiredData
from superarm.logs.nested import _same_ranking, tighten_nested

SIZES, ERROR, FREEDOM = (1, 2, 3, 4, 5), 0.02, 300.0


def estimate(value: float, level: float, problem: str = "") -> Estimate:
    margin = student_margin(ERROR, FREEDOM, level)
    low, high = max(0.0, value - margin), min(1.0, value + margin)
    return Estimate("ips", value, low, high, 400, 300.0, 2.0, 1.0, 1.0, 0.0, problem)


def together(
    values: list[float],
    problems: tuple[str, ...] = ("",) * 5,
    expected: tuple[float, ...] = (0.9,) * 5,
    propensities: Any = "",
) -> list[PolicyResult]:
    """What `tighten_nested` makes of estimates for 1 to 5 labels."""
    policies = [Policy("p", scores=["a", "b"], set_size=m) for m in SIZES]  # each with a list of its own
    results = [
        PolicyResult(
            "p", m, None, (estimate(value, 0.95, problem),), RequiredData(None, None, propensities), m, rate
        )
        for m, value, problem, rate in zip(SIZES, values, problems, expected, strict=True)
    ]
    estimators = [
        lambda level, value=value, problem=problem: [estimate(value, level, problem)]
        for value, problem in zip(values, problems, strict=True)
    ]
    return tighten_nested(results, policies, estimators)


@pytest.mark.parametrize("truth", [(0.5,) * 5, (0.5, 0.5, 0.52, 0.53, 0.53)])
def test_intervals_of_nested_sets_hold_the_truth(truth: tuple[float, ...]) -> None:
    """Equal hit rates with independent errors are the worst case; 1,200 draws have a standard error of 0.65 %."""
    random = np.random.default_rng(0)
    holds = np.zeros(5)
    for values in np.array(truth) + ERROR * random.standard_normal((1200, 5)):
        ends = [(e.low, e.high) for result in together(values.tolist()) if (e := result.best)]
        holds += [low <= t <= high for (low, high), t in zip(ends, truth, strict=True)]
    assert (holds / 1200 > 0.94 - 3 * 0.0065).all()


@pytest.mark.parametrize(
    "values", [(0.7, 0.3, 0.5, 0.6, 0.65), (0.8, 0.71, 0.8, 0.8, 0.8), (0.9, 0.2, 0.8, 0.1, 0.3)]
)
def test_a_larger_set_does_not_look_worse(values: tuple[float, ...]) -> None:
    best = [result.best for result in together(list(values)) if result.best is not None]
    rates = [e.value for e in best]
    assert len(rates) == 5
    assert rates == sorted(rates)
    assert all(e.low <= e.value <= e.high for e in best)


def test_an_interval_is_cut_by_wider_ones_of_other_sizes() -> None:
    cut, margin = together([0.8, 0.77, 0.8, 0.8, 0.8])[1].best, student_margin(ERROR, FREEDOM, 1 - 0.02 / 4)
    assert cut is not None
    assert cut.low == pytest.approx(0.8 - margin)  # that of one label
    assert cut.high == pytest.approx(0.77 + student_margin(ERROR, FREEDOM))  # its own


def test_what_the_log_cannot_answer_follows_from_fewer_labels() -> None:
    values, expected = [nan, 0.8, nan, nan, 0.9], (0.7, 0.6, 0.86, 0.84, 0.2)
    none, two, three, four, _ = (
        result.best for result in together(values, ("x", "", "x", "x", ""), expected)
    )
    assert none is None
    high = 0.9 + student_margin(ERROR, FREEDOM, 1 - 0.02 / 4)  # of five labels
    for nested in (three, four):  # of four 0.84 is expected, but they hold those three
        assert two is not None
        assert nested is not None
        assert (nested.name, nested.value) == ("nested", pytest.approx(0.86))
        assert (nested.low, nested.high) == pytest.approx((two.low, high))
    many = together([0.8, nan, nan, nan, nan], ("", "x", "x", "x", "x"))[4].best
    assert many is not None
    assert (many.name, many.value, many.high) == ("nested", 0.9, 1.0)
    assert together([0.5, nan, nan, nan, nan], ("", "x", "x", "x", "x"))[4].best is None  # too low to say


def test_only_policies_of_one_ranking_are_nested() -> None:
    policies = [
        *(Policy("p", scores=["a", "b"], set_size=m) for m in (1, 2)),
        *(Policy("q", scores=["b", "a"], set_size=m) for m in (1, 2)),
        *(Policy("r", probabilities=column, set_size=1) for column in ("a", ["a"])),
        *(Policy("f", fixed=labels) for labels in ("ab", "ac")),
        Policy("g", scores=len, set_size=1),
    ]
    assert _same_ranking(policies) == [[0, 1], [2, 3], [4, 5], [6], [7], [8]]


@pytest.mark.parametrize("propensities", ["doubtful", "wrong"])
def test_nothing_follows_from_fewer_labels_where_propensities_may_be_wrong(propensities: str) -> None:
    few, *others = together([0.8, nan, nan, nan, nan], ("", "x", "x", "x", "x"), propensities=propensities)
    assert few.best is not None
    assert [result.best for result in others] == [None] * 4
