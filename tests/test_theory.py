"""The lemmas and Theorem 6 of the paper, and every erratum of docs/errata.md, by exact enumeration."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp, factorial, inf, perm, sqrt

import numpy as np
import pytest
from exact import GAMMAS, SIZES, group, ordered_draws, set_probabilities

import superarm as sa
from superarm import theory
from superarm.errors import InvalidInput
from superarm.explore import dilute_probabilities as dilute
from superarm.report.theory_charts import bound_floor
from superarm.theory import label_estimates as estimates
from superarm.theory.bounds import least_complexity

SMALL = [(k, m) for k, m in SIZES if k < 7]


def update(k: int, m: int, order: tuple[int, ...], y: int, Z: float) -> np.ndarray:
    """The paper's U~ for |x| = 1, with Z as given."""
    tau1, tau2 = m * perm(k - 2, m - 1), (m - 1) / (k - m)
    u = np.full(k, -tau2)
    u[:m] -= 1 / m
    if y in order:
        u[list(order)] += 1 / (Z * tau1)
    return u


def target(k: int, m: int, y: int) -> np.ndarray:
    """U of MC-SLP, which U~ is to estimate."""
    u = np.zeros(k)
    u[:m] -= 1 / m
    u[y] += 1
    return u


def loss(scores: np.ndarray, y: int, m: int) -> float:
    return max(0.0, 1 - scores[y] + np.sort(scores)[-m:].mean())


# ------------------------------------------------------------ lemmas


def test_lemma_2_and_3() -> None:
    random = np.random.default_rng(0)
    for _ in range(2000):
        k = int(random.integers(2, 8))
        m = int(random.integers(1, k))
        s, y = random.normal(size=k) * 3, int(random.integers(k))
        top = np.argsort(-s)[:m]
        missed = float(y not in top)
        inner = s[y] - s[top].mean()  # <W, U>
        assert loss(s, y, m) >= missed
        assert loss(s, y, m) >= missed - inner - 1e-12


@pytest.mark.parametrize(("k", "m"), SMALL)
def test_lemma_5_and_the_exact_second_moment(k: int, m: int) -> None:
    for gamma in GAMMAS:
        Z = ordered_draws(k, m, gamma)
        for y in (0, k - 1):
            exact = sum(z * float(update(k, m, o, y, z) @ update(k, m, o, y, z)) for o, z in Z.items())
            assert theory.second_moment(k, m, gamma, in_top=y < m) == pytest.approx(exact, rel=1e-9)
            assert exact <= theory.lemma5_bound(k, m, gamma, in_top=y < m) * (1 + 1e-12)


@pytest.mark.parametrize(("k", "m"), SMALL)
@pytest.mark.parametrize("estimate", ["set", "minimum-variance"])
def test_second_moment_of_the_other_estimates(k: int, m: int, estimate: str) -> None:
    gamma = 0.3
    table = estimates.estimate_table(k, m, gamma, estimate).values
    values = table[np.argmin(np.abs(estimates.RHO_GRID - 0.9))] if len(table) > 1 else table[0]
    for y in (0, k - 1):
        exact = 0.0
        for order, z in ordered_draws(k, m, gamma).items():
            j = sum(r < m for r in order)
            groups = [group(r, order, m) for r in range(k)]
            u = values[j, int(y in order), groups] - np.array([(r < m) / m for r in range(k)])
            exact += z * float(u @ u)
        assert theory.second_moment(k, m, gamma, estimate, in_top=y < m) == pytest.approx(exact)


def test_better_estimates_have_smaller_second_moments() -> None:
    def weighted(estimate: str) -> float:
        inside = theory.second_moment(10, 4, 0.1, estimate, in_top=True)
        return 0.9 * inside + 0.1 * theory.second_moment(10, 4, 0.1, estimate, in_top=False)

    assert weighted("ordered") > weighted("set") > 100 * weighted("minimum-variance")


def test_theorem_6_bound_is_the_paper_s_formula() -> None:
    k, m, gamma, T, D, R = 6, 2, 0.25, 10_000, 3.0, 40.0
    tau1, tau2 = m * perm(k - 2, m - 1), (m - 1) / (k - m)
    lambda1 = 2 / tau1
    lambda2 = (
        m * k**m * perm(k, m) / (gamma**m * tau1**2)
        - 2 * m * tau2 / tau1
        - 2 / tau1
        + k * (tau2**2 + 1 / (k * m) + 2 * tau2 / k)
    )
    expected = R + sqrt(lambda1 * D * R / 2)
    expected += 3 * max(lambda1 * D / 2, sqrt((lambda2 + 1) * D * T / 2)) + gamma * T
    assert theory.theorem6_bound(k, m, gamma, T, complexity=D, loss=R) == pytest.approx(expected)


def test_theory_refuses_nonsense() -> None:
    with pytest.raises(InvalidInput, match="set_size of theory must be"):
        theory.summary(5, 5, 0.1, 10)
    with pytest.raises(InvalidInput, match="gamma of theory must be"):
        theory.summary(5, 2, 0.0, 10)


def test_large_problems_do_not_underflow() -> None:
    found = theory.summary(100_000, 60, 0.01, 10**6)
    assert 0.0 < found.shown_outside < found.shown_inside < 1.0
    assert np.isfinite(found.best_gamma)


# ------------------------------------------------------------ errata, in the order of docs/errata.md


def test_erratum_1_z_is_over_ordered_draws() -> None:
    k, m, gamma, y = 5, 3, 0.3, 1
    Z = ordered_draws(k, m, gamma)
    of_set = set_probabilities(k, m, gamma)
    right = sum(z * update(k, m, o, y, z) for o, z in Z.items())
    wrong = sum(z * update(k, m, o, y, of_set[frozenset(o)]) for o, z in Z.items())
    np.testing.assert_allclose(right, target(k, m, y), atol=1e-12)
    # with the probability of the set, the part that should count e_y is m! too small
    tau2 = (m - 1) / (k - m)
    part = target(k, m, y) + tau2 + np.array([1 / m] * m + [0.0] * (k - m))
    expected = part / factorial(m) - tau2 - np.array([1 / m] * m + [0.0] * (k - m))
    np.testing.assert_allclose(wrong, expected, atol=1e-12)


def test_erratum_2_the_hinge_is_dropped() -> None:
    s, m = np.array([9.0, 1.0, 0.0, -1.0]), 2
    assert loss(s, 0, m) == 0.0  # its gradient is 0, and the paper's step is not
    learner = sa.MCSLP(n_labels=4, n_features=1, set_size=m, intercept=False)
    gated = sa.MCSLP(n_labels=4, n_features=1, set_size=m, intercept=False, gate=True)
    for one in (learner, gated):
        decision = sa.Decision.from_dict(one.decide([1.0]).to_dict())
        one.core.weights.state()["dense"][:, 0] = s
        one.update(decision, label=0)
    assert not np.array_equal(learner.core.weights.state()["dense"][:, 0], s)
    assert np.array_equal(gated.core.weights.state()["dense"][:, 0], s)


def test_erratum_3_the_last_step_needs_the_shown_set() -> None:
    """M counts misses of the top set on both sides of "E[M] + γT >= E[M^]": only S makes sense of it."""
    inside = dilute.dilute_moments(10, 3, 0.1).inclusion[0]
    top_misses, shown_misses = 0.0, 1.0 - inside  # y always in the top set
    assert shown_misses > top_misses


def test_erratum_4_the_stated_bound_on_z_is_false() -> None:
    k, m, gamma = 6, 3, 0.05
    least = min(ordered_draws(k, m, gamma).values())
    stated = gamma / k * (2 / m) ** (m - 1) * exp(-(m - 1))
    assert (gamma / k) ** m <= least < stated


def test_erratum_5_the_cross_term_counts_the_overlap() -> None:
    k, m, gamma, y = 5, 2, 0.3, 0
    tau1, tau2 = m * perm(k - 2, m - 1), (m - 1) / (k - m)
    for order, z in ordered_draws(k, m, gamma).items():
        if y not in order:
            continue
        u = update(k, m, order, y, z)
        overlap = sum(r < m for r in order)
        w = 1 / (z * tau1)
        constant = m * (tau2 + 1 / m) ** 2 + (k - m) * tau2**2
        right = m * w**2 - 2 * m * tau2 * w + constant - 2 * w * overlap / m
        assert float(u @ u) == pytest.approx(right)


def test_erratum_5b_the_conditional_moment_lacks_a_factor() -> None:
    def bounds(k: int, m: int, gamma: float, y: int) -> tuple[float, float, float]:
        """E[|U~|^2 given y in S]: exact, with 1 / Pr(y in S), and as the paper bounds it."""
        tau1, tau2 = m * perm(k - 2, m - 1), (m - 1) / (k - m)
        draws = {order: z for order, z in ordered_draws(k, m, gamma).items() if y in order}
        shown = sum(draws.values())
        squares = {o: float(update(k, m, o, y, z) @ update(k, m, o, y, z)) for o, z in draws.items()}
        rest = m * (tau2 + 1 / m) ** 2 + (k - m) * tau2**2 - 2 * m * tau2 / tau1 - 2 / tau1 * (y < m)
        repaired = m / tau1**2 * sum(1 / z for z in draws.values()) / shown + rest
        stated = m * (k / gamma) ** m * perm(k, m) / tau1**2 + rest
        return sum(z * squares[o] for o, z in draws.items()) / shown, repaired, stated

    for k, m in SMALL:
        for y in (0, k - 1):
            exact, repaired, _ = bounds(k, m, 0.3, y)
            assert exact <= repaired * (1 + 1e-12)
    exact, _, stated = bounds(6, 2, 0.1, 5)
    assert [round(exact), round(stated)] == [14444, 3376]


def test_erratum_6a_the_inner_product_is_not_below_one() -> None:
    learner = sa.MCSLP(n_labels=9, n_features=400, set_size=4)
    gated = sa.MCSLP(n_labels=9, n_features=400, set_size=4, gate=True)
    above = {False: 0, True: 0}
    chunk = next(sa.streams.synsep().chunks(0))
    for x, y in zip(chunk.rows.dense[:2000], chunk.y[:2000], strict=True):
        for one in (learner, gated):
            decision = one.decide(x)
            s = one.scores(x[None])[0]
            inner = s[y] - s[decision.top].mean()
            taken = not one.gate or 1 - inner > 0
            above[one.gate] += bool(taken and inner > 1)
            one.update(decision, label=int(y))
    assert above[False] > 1000  # most rounds
    assert above[True] == 0


def test_erratum_6b_the_factor_two_is_lost() -> None:
    W, U = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    grown = float((W + U) @ (W + U))
    assert grown == pytest.approx(W @ W + 2 * (W @ U) + U @ U)
    assert grown != pytest.approx(W @ W + W @ U + U @ U)


def test_erratum_6c_lemma_3_holds_for_another_w_with_the_u_of_this_one() -> None:
    """<W*, U^t> uses the top set of W^t; the mean over W*'s own top set is larger, so it still holds."""
    random = np.random.default_rng(1)
    for _ in range(1000):
        s, other, y, m = random.normal(size=6), random.normal(size=6), int(random.integers(6)), 3
        top = np.argsort(-s)[:m]
        missed = float(y not in np.argsort(-other)[:m])
        assert loss(other, y, m) >= missed - (other[y] - np.sort(other)[-m:].mean()) - 1e-12
        assert other[top].mean() <= np.sort(other)[-m:].mean() + 1e-12


def test_erratum_6d_exploration_costs_more_than_gamma() -> None:
    assert 1 - dilute.dilute_moments(10, 2, 0.1).inclusion[0] == pytest.approx(0.111, abs=5e-4)
    assert (1 - dilute.dilute_moments(1000, 7, 0.01).inclusion[0]) / 0.01 == pytest.approx(2.4, abs=0.05)
    assert 1 - dilute.overlap_probabilities(10, 4, 0.1)[4] == pytest.approx(0.39, abs=5e-3)


def test_erratum_7_separable_does_not_mean_no_loss() -> None:
    m = 3
    s = np.array([1.0, 0.0, 0.0, 0.0, 0.0])  # a margin of 1
    assert loss(s, 0, m) == pytest.approx(1 / m)
    assert loss(s * m / (m - 1), 0, m) == pytest.approx(0.0)
    assert loss(s * 100, 0, 1) == 1.0  # m = 1: never below 1


@pytest.mark.parametrize(("k", "m"), [(4, 2), (9, 2), (9, 4), (10, 9)])
def test_the_least_scores_without_loss(k: int, m: int) -> None:
    """Of the row's scores that lose nothing, those of `least_complexity` are the shortest."""
    least = least_complexity(k, m) / 2
    s = np.full(k, -1.0 / k)
    s[0] += 1.0
    s *= m / (m - 1)
    assert loss(s, 0, m) == pytest.approx(0.0, abs=1e-12)
    assert s @ s == pytest.approx(least)
    random = np.random.default_rng(0)
    for _ in range(2000):
        s = random.normal(size=k) * random.choice([0.1, 1.0])
        s[0] += random.uniform(0, 4)
        lost = loss(s, 0, m)
        assert lost >= 1 - sqrt(s @ s / least) - 1e-12
        if s[0] - np.sort(s)[-m:].mean() > 0:
            s /= s[0] - np.sort(s)[-m:].mean()  # a loss of exactly 0
            assert s @ s >= least - 1e-12
    assert least_complexity(k, 1) == inf


@pytest.mark.parametrize("rounds", [10**3, 10**6, 10**9])
@pytest.mark.parametrize(("k", "m"), [(9, 1), (9, 2), (9, 4), (100, 2)])
def test_no_comparison_makes_the_bound_less_than_its_floor(k: int, m: int, rounds: int) -> None:
    gamma, longest = 0.1, least_complexity(k, m) if m > 1 else 1e4
    floor = bound_floor(k, m, gamma, rounds)
    for length in np.linspace(0.001, 1.2, 300):
        lost = rounds * (max(0.0, 1.0 - length) if m > 1 else 1.0)
        bound = theory.theorem6_bound(k, m, gamma, rounds, complexity=longest * length**2, loss=lost)
        assert bound >= floor * (1 - 1e-12)


def test_erratum_8_gamma_has_tau1_squared() -> None:
    k, m, T, D = 10, 3, 10**9, 2.0
    best = theory.best_gamma(k, m, T, complexity=D)
    tau1 = m * perm(k - 2, m - 1)
    assert best == pytest.approx((9 * m**3 * k**m * perm(k, m) * D / (8 * tau1**2 * T)) ** (1 / (m + 2)))

    def main_terms(gamma: float) -> float:
        return 3 * sqrt(m * k**m * perm(k, m) * D * T / (2 * gamma**m * tau1**2)) + gamma * T

    printed = (9 * m**3 * k**m * perm(k, m) * D / (8 * tau1 * T)) ** (1 / (m + 2))
    grid = np.geomspace(1e-4, 1, 2000)
    assert best == pytest.approx(grid[np.argmin([main_terms(g) for g in grid])], rel=0.01)
    assert main_terms(best) < main_terms(printed)


def test_estimates_agree_on_what_a_set_is() -> None:
    """C(k-2, m-1) sets in place of tau1 orders: the two normalisations differ by m! and the m of tau1."""
    k, m = 8, 3
    assert exp(estimates.log_tau1(k, m)) == pytest.approx(m * perm(k - 2, m - 1))
    assert comb(k - 2, m - 1) * factorial(m) == pytest.approx(exp(estimates.log_tau1(k, m)))
    assert len(list(combinations(range(k), m))) == comb(k, m)


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidInput, match="estimate of theory must be 'ordered' or 'set'"):
        theory.second_moment(10, 4, 0.1, "foo", in_top=True)
    with pytest.raises(InvalidInput, match="rounds of theory must be a whole number of at least 1, got 0"):
        theory.best_gamma(10, 4, 0)
    with pytest.raises(InvalidInput, match="complexity of theory must be a number above 0"):
        theory.best_gamma(10, 4, 5, complexity=0.0)
    with pytest.raises(InvalidInput, match="complexity of theory must be a number above 0, got -1"):
        theory.theorem6_bound(10, 4, 0.1, 5, complexity=-1.0)
