"""What one bit says about the label: Lemma 4 and its relatives, by enumeration."""

from math import comb, exp, factorial

import numpy as np
import pytest
from exact import SIZES, group, ordered_draws, set_probabilities

import superarm as sa
from superarm.native.mcdbf import RHO_GRID
from superarm.theory.label_estimates import estimate_table, log_tau1, minimum_variance, tau2

SMALL = [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 3)]
SCORES = np.array([0.9, 0.5, 0.25, -0.25, -1.5], np.float32)  # the top set is {0, ..., m-1}


def expectation(k, m, gamma, estimate):
    """E[e^] for every y: row y should be the indicator of y. ``estimate(S in order, Z, f)``."""
    result = np.zeros((k, k))
    for order, z in ordered_draws(k, m, gamma).items():
        for y in range(k):
            result[y] += z * estimate(order, z, int(y in order))
    return result


def from_table(k, m, table):
    def estimate(order, z, f):
        j = sum(r < m for r in order)
        return np.array([table[j, f, group(r, order, m)] for r in range(k)])

    return estimate


def ordered(k, m, table):
    """The paper's: the table holds its constant part."""
    rest = from_table(k, m, table)

    def estimate(order, z, f):
        return rest(order, z, f) + f * np.isin(np.arange(k), order) / (z * exp(log_tau1(k, m)))

    return estimate


@pytest.mark.parametrize("gamma", [0.1, 1.0])
@pytest.mark.parametrize(("k", "m"), SIZES)
def test_lemma_4_of_the_tables(k, m, gamma):
    """All three estimates are unbiased."""
    if k == 7 and m > 4:
        k, m = 6, m - 1  # 5040 orders add nothing
    got = expectation(k, m, gamma, ordered(k, m, estimate_table(k, m, gamma, "ordered").values[0]))
    np.testing.assert_allclose(got, np.eye(k), atol=1e-8)
    for name in ("set", "minimum-variance"):
        for table in estimate_table(k, m, gamma, name).values[::8]:
            got = set_expectation(k, m, gamma, from_table(k, m, table))
            np.testing.assert_allclose(got, np.eye(k), atol=1e-8)


def set_expectation(k, m, gamma, estimate):
    """E[e^] for estimates that do not look at the order."""
    result = np.zeros((k, k))
    for shown, p in set_probabilities(k, m, gamma).items():
        for y in range(k):
            result[y] += p * estimate(tuple(shown), None, int(y in shown))
    return result


@pytest.mark.parametrize("rho", RHO_GRID)
def test_minimum_variance_is_unbiased_for_every_rho(rho):
    for k, m in SMALL:
        got = set_expectation(k, m, 0.2, from_table(k, m, minimum_variance(k, m, 0.2, rho)))
        np.testing.assert_allclose(got, np.eye(k), atol=1e-9)


def test_the_set_probability_in_the_papers_formula_is_off():
    """docs/mathematics.md 5.1: Lemma 4 needs the probability of the ordered draw."""
    k, m, gamma = 5, 3, 0.2
    sets = set_probabilities(k, m, gamma)

    def mistaken(order, z, f):
        shown = np.isin(np.arange(k), order)
        return f * shown / (sets[frozenset(order)] * exp(log_tau1(k, m))) - tau2(k, m)

    got = expectation(k, m, gamma, mistaken) + tau2(k, m)
    np.testing.assert_allclose(got * factorial(m), np.eye(k) + tau2(k, m), atol=1e-9)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("k", "m"), [s for s in SIZES if s[0] <= 6])
def test_minimum_variance_is_minimal(k, m, rho):
    """Among all unbiased estimates, under its prior: the weighted least-norm solution, by lstsq."""
    gamma = 0.15
    sets = set_probabilities(k, m, gamma)
    prior = np.where(np.arange(k) < m, rho / m, (1 - rho) / (k - m))
    outcomes = [(shown, f) for shown in sets for f in (1, 0)]
    chance = np.array(
        [sets[s] * (prior[list(s)].sum() if f else 1 - prior[list(s)].sum()) for s, f in outcomes]
    )
    # unbiased: for every y, the outcomes that y brings about, weighted with P(S), give its indicator
    constraints = np.array([[sets[s] * ((y in s) == f) for s, f in outcomes] for y in range(k)])
    scale = 1 / np.sqrt(chance)
    best = scale[:, None] * np.linalg.lstsq(constraints * scale, np.eye(k), rcond=None)[0]
    table = minimum_variance(k, m, gamma, rho)
    ours = np.array([from_table(k, m, table)(tuple(s), None, f) for s, f in outcomes])
    np.testing.assert_allclose(ours, best, atol=1e-8)


def test_variance_falls_from_ordered_to_set_to_minimum():
    k, m, gamma, rho = 5, 3, 0.1, float(RHO_GRID[np.argmin(np.abs(RHO_GRID - 0.9))])
    prior = np.where(np.arange(k) < m, rho / m, (1 - rho) / (k - m))
    estimates = {
        "ordered": ordered(k, m, estimate_table(k, m, gamma, "ordered").values[0]),
        "set": from_table(k, m, estimate_table(k, m, gamma, "set").values[0]),
        "minimum-variance": from_table(k, m, minimum_variance(k, m, gamma, rho)),
    }
    second = {
        name: sum(
            z * prior[y] * (estimate(order, z, int(y in order)) ** 2).sum()
            for order, z in ordered_draws(k, m, gamma).items()
            for y in range(k)
        )
        for name, estimate in estimates.items()
    }
    assert second["ordered"] > second["set"] > second["minimum-variance"]


def test_set_estimate_averages_the_ordered_one():
    """Rao-Blackwell: E[ordered | set] = set."""
    k, m, gamma = 5, 2, 0.3
    draws, sets = ordered_draws(k, m, gamma), set_probabilities(k, m, gamma)
    one = ordered(k, m, estimate_table(k, m, gamma, "ordered").values[0])
    averaged = from_table(k, m, estimate_table(k, m, gamma, "set").values[0])
    for shown, p in sets.items():
        mean = sum(z * one(order, z, 1) for order, z in draws.items() if set(order) == shown) / p
        np.testing.assert_allclose(mean, averaged(tuple(shown), None, 1), atol=1e-9)
    assert comb(k, m) == len(sets)


# ---------------------------------------------------------------- through the compiled update


def steps(learner, k, m, gamma):
    """(order, Z, f, what the real update added to W x) for every ordered draw and both answers."""
    x = np.ones(1, np.float32)
    learner.decide(x)
    W = learner.core.weights.state()["dense"]
    for order, z in ordered_draws(k, m, gamma).items():
        for f in (0, 1):
            W[...] = 0.0
            W[:, 0] = SCORES[:k]
            decision = learner.decide(x)
            assert sorted(decision.top) == list(range(m))
            data = decision.to_dict() | {"labels": list(order), "drawn": list(order)}
            learner.update(sa.Decision.from_dict(data), hit=bool(f))
            yield order, z, f, W[:, 0].astype(float) - SCORES[:k]


def mean_step(learner, k, m, gamma):
    """E[step] for every y."""
    result = np.zeros((k, k))
    for order, z, f, step in steps(learner, k, m, gamma):
        for y in range(k):
            if int(y in order) == f:
                result[y] += z * step
    return result


def centred(steps_):
    """Without the vector common to all rows, which changes no ranking."""
    return steps_ - steps_.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("estimate", ["ordered", "set", "minimum-variance"])
@pytest.mark.parametrize(("k", "m"), SMALL)
def test_lemma_4_of_the_update(k, m, estimate):
    """E[U~] = (e_y - 1_Y^ / m) x."""
    gamma = 0.5
    wanted = np.eye(k) - (np.arange(k) < m) / m
    for rho in (0.2, 0.9, 0.97) if estimate == "minimum-variance" else (None,):
        learner = sa.MCDBF(
            n_labels=k, n_features=1, set_size=m, gamma=gamma, estimate=estimate, intercept=False, rho=rho
        )
        got = mean_step(learner, k, m, gamma)
        np.testing.assert_allclose(centred(got), centred(wanted), atol=2e-5)


@pytest.mark.parametrize("margin", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("estimate", ["ordered", "set", "minimum-variance"])
@pytest.mark.parametrize(("k", "m"), SMALL)
def test_lemma_4_of_the_gated_update(k, m, estimate, margin):
    """E[U~] = 1[M - s_y + mean_Y^ s > 0] (e_y - 1_Y^ / m) x, the subgradient of L_avg."""
    gamma = 0.5
    learner = sa.MCDBF(
        n_labels=k,
        n_features=1,
        set_size=m,
        gamma=gamma,
        estimate=estimate,
        gate=True,
        margin=margin,
        intercept=False,
        rho=0.9,
    )
    s = SCORES[:k].astype(float)
    gate = margin - s + s[:m].mean() > 0
    wanted = gate[:, None] * (np.eye(k) - (np.arange(k) < m) / m)
    np.testing.assert_allclose(mean_step(learner, k, m, gamma), wanted, atol=2e-5)


def test_the_gate_closes_for_someone():
    """The margins above are such that the gate matters."""
    s = SCORES.astype(float)
    assert not (0.1 - s + s[:2].mean() > 0).all()


@pytest.mark.parametrize("gate", [False, True])
def test_unbiased_among_eligible_labels(gate):
    """With eligible labels, k is their number, and the row-by-row shift is exact."""
    n, m, gamma, among = 4, 2, 0.5, [0, 2, 3, 5]
    learner = sa.MCDBF(
        n_labels=6, n_features=1, set_size=m, gamma=gamma, gate=gate, margin=1e6, intercept=False
    )
    x = np.ones(1, np.float32)
    learner.decide(x)
    W = learner.core.weights.state()["dense"]
    start = np.zeros(6, np.float32)
    start[among] = SCORES[:n]
    result = np.zeros((n, 6))
    for order, z in ordered_draws(n, m, gamma).items():
        for f in (0, 1):
            W[:, 0] = start
            data = learner.decide(x, eligible=among).to_dict()
            data |= {"labels": [among[r] for r in order], "drawn": [among[r] for r in order]}
            learner.update(sa.Decision.from_dict(data), hit=bool(f))
            for y in range(n):
                if int(y in order) == f:
                    result[y] += z * (W[:, 0] - start)
    wanted = np.zeros((n, 6))
    wanted[:, among] = np.eye(n) - (np.arange(n) < m) / m
    np.testing.assert_allclose(result, wanted, atol=2e-5)
