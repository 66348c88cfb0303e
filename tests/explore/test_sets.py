"""The distribution over sets, against exact enumeration and by frequency."""

from collections import Counter
from math import exp, factorial, inf, isclose, lgamma, log

import numpy as np
import pytest
from exact import GAMMAS, SIZES, log_ordered_probability, ordered_draws, set_probabilities
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from superarm.explore import Dilute
from superarm.explore.dilute_probabilities import (
    dilute_moments,
    log_comb,
    log_set_probabilities,
    overlap_probabilities,
)
from superarm.native.randomness import uniform_number as uniform
from superarm.native.stateless_rules import log_order_probability
from superarm.theory.label_estimates import inverse_order_sums, log_tau1, tau2

# Seeds are fixed, so these tests never flicker; a correct draw fails each with this probability.
SIGNIFICANCE = 1e-4


def drawing(k, m, gamma, top=None, seed=0):
    """A function round -> (drawn, log Z, log Z_set)."""
    rule = Dilute(gamma=gamma, set_size=m, seed=seed)
    s = np.zeros(max(k, 2), np.float32)
    s[list(range(m) if top is None else top)] = np.arange(m, 0, -1)
    core, s, candidates, *_ = rule._prepare(1, s, None, None if k > 1 else [0], None, None)

    def at(round_):
        cursor = core.cursor()
        cursor.round = round_
        decision = core.decide(s, None, candidates, min(m, k), cursor)
        rank = {label: i for i, label in enumerate(decision.top)}
        order = np.array([rank.get(label, len(rank)) for label in decision.drawn])
        return tuple(decision.drawn), log_order_probability(order, k, gamma), decision.log_propensity

    return at


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("k", "m"), SIZES)
def test_probabilities_by_enumeration(k, m, gamma):
    sets = set_probabilities(k, m, gamma)
    assert isclose(sum(sets.values()), 1.0)
    log_set = log_set_probabilities(k, m, gamma)
    overlap = np.zeros(m + 1)
    single, pair = np.zeros(k), np.zeros((k, k))
    for shown, p in sets.items():
        j = len(shown & set(range(m)))
        assert isclose(exp(log_set[j]), p, rel_tol=1e-10)
        overlap[j] += p
        member = np.isin(np.arange(k), list(shown))
        single += p * member
        pair += p * np.outer(member, member)
    np.testing.assert_allclose(overlap_probabilities(k, m, gamma), overlap, atol=1e-12)
    got = dilute_moments(k, m, gamma)
    np.testing.assert_allclose(single[:m], got.inclusion[0], atol=1e-12)
    np.testing.assert_allclose(single[m:], got.inclusion[1], atol=1e-12)
    np.testing.assert_allclose(got.pairs[0, 1], pair[0, m], atol=1e-12)
    assert isclose(got.pairs[0, 0], pair[0, 1] if m > 1 else 0.0, abs_tol=1e-12)
    assert isclose(got.pairs[1, 1], pair[m, m + 1] if m + 1 < k else 0.0, abs_tol=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("k", "m"), SIZES)
def test_ordered_probabilities_and_their_inverse_sums(k, m, gamma):
    draws = ordered_draws(k, m, gamma)
    sums = np.zeros(m + 1)
    sets = Counter()
    for order, z in draws.items():
        assert isclose(exp(log_ordered_probability(k, m, gamma, [r < m for r in order])), z, rel_tol=1e-10)
        j = sum(r < m for r in order)
        sums[j] += 1 / z
        sets[j] += 1 / factorial(m)
    seen = np.array([sets[j] for j in range(m + 1)])
    expected = np.divide(sums, seen, out=np.zeros(m + 1), where=seen > 0)
    np.testing.assert_allclose(inverse_order_sums(k, m, gamma), expected, rtol=1e-9)


@pytest.mark.parametrize(("k", "m"), SIZES)
def test_constants(k, m):
    assert isclose(exp(log_tau1(k, m)), m * factorial(k - 2) / factorial(k - m - 1), rel_tol=1e-10)
    assert tau2(k, m) == (m - 1) / (k - m)
    assert isclose(log_comb(k, m), lgamma(k + 1) - lgamma(m + 1) - lgamma(k - m + 1))


@pytest.mark.parametrize(
    ("k", "m", "gamma", "top"),
    [
        (2, 1, 0.3, [1]),
        (5, 1, 0.5, [3]),
        (5, 2, 0.3, [4, 1]),
        (5, 4, 0.6, [2, 0, 4, 1]),
        (4, 2, 1.0, [3, 0]),
        (6, 3, 0.8, [5, 0, 2]),
    ],
)
def test_draw_frequencies(k, m, gamma, top):
    """Each ordered draw comes as often as its Z says."""
    n = 20_000
    at = drawing(k, m, gamma, top, seed=11)
    seen = Counter(at(t)[0] for t in range(n))
    # enumeration has the top set {0..m-1}: rename its labels
    rest = [r for r in range(k) if r not in top]
    names = [*top, *rest]
    expected = {tuple(names[r] for r in order): z for order, z in ordered_draws(k, m, gamma).items()}
    assert set(seen) <= set(expected)
    frequent = [order for order, z in expected.items() if z * n >= 5]
    counts = [seen[order] for order in frequent]
    wanted = [expected[order] * n for order in frequent]
    if len(frequent) < len(expected):
        counts.append(n - sum(counts))
        wanted.append(n - sum(wanted))
    assert chisquare(counts, wanted).pvalue > SIGNIFICANCE


@given(st.data())
def test_draw_reports_its_own_probability(data):
    k = data.draw(st.integers(2, 30))
    m = data.draw(st.integers(1, k - 1))
    gamma = data.draw(st.sampled_from([0.01, 0.3, 1.0]))
    top = data.draw(st.permutations(range(k)))[:m]
    at = drawing(k, m, gamma, top, seed=data.draw(st.integers(0, 2**40)))
    drawn, log_z, log_set = at(data.draw(st.integers(0, 2**40)))
    assert len(set(drawn)) == m
    assert all(0 <= r < k for r in drawn)
    flags = [r in top for r in drawn]
    assert isclose(log_z, log_ordered_probability(k, m, gamma, flags), rel_tol=1e-9, abs_tol=1e-9)
    assert log_set == log_set_probabilities(k, m, gamma)[sum(flags)]
    assert log_z <= log_set + 1e-9


@given(st.integers(2, 12), st.integers(1, 11), st.floats(0.001, 1.0))
def test_probabilities_sum_to_one(k, m, gamma):
    m = min(m, k - 1)
    overlap = overlap_probabilities(k, m, gamma)
    assert isclose(overlap.sum(), 1.0, rel_tol=1e-9)
    inside, outside = dilute_moments(k, m, gamma).inclusion
    assert isclose(m * inside + (k - m) * outside, m, rel_tol=1e-9)
    assert inside >= outside - 1e-12


def test_many_labels_without_underflow():
    """k = 10^5, m = 60, gamma = 0.01: the plain product is 0 in floating point, logs are not."""
    k, m, gamma = 100_000, 60, 0.01
    by_overlap = log_set_probabilities(k, m, gamma)
    assert np.isfinite(by_overlap).all()
    assert exp(by_overlap[0]) == 0.0
    assert isclose(overlap_probabilities(k, m, gamma).sum(), 1.0, rel_tol=1e-6)
    at = drawing(k, m, gamma)
    for t in range(50):
        drawn, log_z, log_set = at(t)
        assert len(set(drawn)) == m
        flags = [r < m for r in drawn]
        assert isclose(log_z, log_ordered_probability(k, m, gamma, flags), rel_tol=1e-9)
        assert -inf < log_z <= log_set <= 0.0


def test_full_exploration_is_uniform():
    """gamma = 1: every set has the same probability."""
    for k, m in SIZES:
        js = range(max(0, 2 * m - k), m + 1)
        np.testing.assert_allclose(
            log_set_probabilities(k, m, 1.0)[list(js)], -log_comb(k, m), rtol=1e-10, atol=1e-12
        )


def test_everything_is_shown_where_nothing_is_left():
    for n, m in ((1, 1), (2, 5), (3, 3)):
        at = drawing(n, min(n, m), 0.3)
        drawn, log_z, log_set = at(0)
        assert (sorted(drawn), log_set) == (list(range(n)), 0.0)
        assert log_set_probabilities(n, m, 0.3).tolist() == [0.0] * (n + 1)
        assert isclose(log_z, -log(factorial(n)), abs_tol=1e-12)


def test_the_draw_is_a_function_of_seed_and_round():
    one, same, other = (drawing(9, 3, 1.0, seed=s) for s in (4, 4, 5))
    first = [one(t) for t in range(50)]
    assert first == [same(t) for t in reversed(range(50))][::-1]
    assert first != [other(t) for t in range(50)]
    assert uniform(4, 0, 0) != uniform(4, 0, 1)


def test_top_set_is_dropped_more_often_than_gamma_says():
    """docs/mathematics.md 5.6d."""
    assert round(1 - dilute_moments(10, 2, 0.1).inclusion[0], 3) == 0.111
    assert round((1 - dilute_moments(1000, 7, 0.01).inclusion[0]) / 0.01, 1) == 2.4
    assert round(1 - overlap_probabilities(10, 4, 0.1)[4], 2) == 0.39
