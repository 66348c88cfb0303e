"""SetLogit's mechanism: likelihood, gradient, scaling, averaging, the probability of every set."""

from __future__ import annotations

from typing import Any

import native_hooks
import numpy as np
import pytest
from naive import softmax
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.errors import InvalidInput
from superarm.learners import setlogit
from superarm.streams import Arrays


def digits() -> tuple[Any, Any]:
    stream = sa.streams.open_data("digits")
    return stream.rows.dense, stream.y


def prepared_learner(k: int = 4, d: int = 3, **parameters: Any) -> sa.SetLogit:
    """A learner whose average equals its weights, so that all its mixes of the two are one point."""
    learner = sa.SetLogit(n_labels=k, n_features=d, set_size=2, curves=0, **parameters)
    random = np.random.default_rng(0)
    X = random.normal(size=(50, d)).astype(np.float32)
    learner.run(X, random.integers(0, k, 50))
    state = learner.core.state()
    state["weights.A"][...] = state["weights.W"]
    return learner


def weights_of(learner: sa.SetLogit) -> Any:
    return learner.core.state()["weights.W"]


def z_of(learner: sa.SetLogit, x: Any) -> Any:
    """x~ by the formula at the top of native/scaling.pyx, and the constant."""
    bias, s = learner.core.scaling.bias, learner.core.scaling.state()
    z = ((x - s["mean"]) * s["inverse"]).astype(np.float64)  # none beyond 5
    z *= np.sqrt((1 - bias**2) / np.sqrt((z @ z) * s["counters"][1]))
    return np.append(z, bias)


# ------------------------------------------------------------ the update


@pytest.mark.parametrize("noise", [{}, {"false_no": 0.2, "false_yes": 0.05}])
def test_a_hit_is_a_step_along_the_gradient_of_its_likelihood(noise: dict[str, float]) -> None:
    learner = prepared_learner(**noise)
    x = np.array([0.5, -1.0, 2.0], np.float32)
    decision = learner.decide(x)
    shown = decision.labels
    z, W = z_of(learner, x), weights_of(learner)[:, :4].astype(np.float64)
    e1, e0 = noise.get("false_no", 0.0), noise.get("false_yes", 0.0)

    def log_likelihood(weights: Any) -> float:
        inside = softmax(weights @ z)[shown].sum()
        return float(np.log((1 - e1) * inside + e0 * (1 - inside)))

    gradient = np.zeros_like(W)
    for at in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        gradient[at] = (log_likelihood(up) - log_likelihood(down)) / 2e-5
    learner.update(decision, hit=True)
    moved = weights_of(learner)[:, :4] - W
    np.testing.assert_allclose(moved, setlogit.STEP_DENSE * gradient, atol=2e-5)


def test_a_named_label_is_a_step_of_softmax_regression() -> None:
    learner = prepared_learner()
    x = np.array([0.5, -1.0, 2.0], np.float32)
    decision = learner.decide(x)
    z, W = z_of(learner, x), weights_of(learner)[:, :4].astype(np.float64)
    learner.update(decision, label=3)
    expected = W + setlogit.STEP_DENSE * np.outer(np.eye(4)[3] - softmax(W @ z), z)
    np.testing.assert_allclose(weights_of(learner)[:, :4], expected, atol=1e-5)


def posterior(p: Any, shown: list[int], *, hit: bool, mean_posterior: Any = None, **parameters: Any) -> Any:
    return native_hooks.posterior(p, shown, hit=hit, mean_posterior=mean_posterior, revive=0.02, **parameters)


@pytest.mark.parametrize("hit", [True, False])
def test_posterior_is_bayes_rule(hit: bool) -> None:
    random = np.random.default_rng(0)
    for k in range(2, 7):
        p = random.dirichlet(np.ones(k))
        e1, e0 = 0.3, 0.1
        for m in range(1, k):
            shown = list(range(m))
            yes = np.array([1 - e1 if r in shown else e0 for r in range(k)])
            likelihood = yes if hit else 1 - yes
            exact = p * likelihood / (p @ likelihood)
            mean_posterior = random.dirichlet(np.ones(k))
            got = posterior(p, shown, hit=hit, mean_posterior=mean_posterior, false_no=e1, false_yes=e0)
            if not hit:  # a little goes to labels that were not shown, most to those without credit
                spread = np.array(
                    [0.0 if r in shown else 1 / (mean_posterior[r] + 0.01 / k) for r in range(k)]
                )
                out = exact[m:].sum()
                exact[m:] *= 1 - 0.02
                exact += 0.02 * out * spread / spread.sum()
            np.testing.assert_allclose(got, exact, rtol=1e-6)
            assert got.sum() == pytest.approx(1.0)


def test_an_impossible_bit_teaches_nothing() -> None:
    p = np.array([1.0, 0.0, 0.0])
    np.testing.assert_array_equal(posterior(p, [1, 2], hit=True), p)


# ------------------------------------------------------------ scaling and averaging


@pytest.mark.parametrize("sparse", [False, True])
def test_units_of_the_features_do_not_matter(sparse: bool) -> None:
    X, y = digits()
    counts = []
    for factor in (1.0, 0.01, 100.0):
        stream = Arrays(csr_matrix(X * factor) if sparse else X * factor, y)
        learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
        counts.append(sa.simulate(learner, stream, 5000).error_rate)
    assert counts[1] == pytest.approx(counts[0], abs=0.01)
    assert counts[2] == pytest.approx(counts[0], abs=0.01)


def test_one_offset_of_the_features_does_not_matter() -> None:
    X, y = digits()
    rates = [
        sa.simulate(
            sa.SetLogit(n_labels=10, n_features=64, set_size=3), Arrays(X + shift, y), 5000
        ).error_rate
        for shift in (0.0, 5.0)
    ]
    assert rates[1] == pytest.approx(rates[0], abs=0.01)


@pytest.mark.parametrize("forget", [0.0, 0.01])
def test_sparse_average_is_the_average(forget: float) -> None:
    """W - omega A against an average that is computed in full after every update."""
    random = np.random.default_rng(0)
    d, k = 12, 4
    X = (random.random((300, d)) < 0.3) * random.normal(size=(300, d))
    y = random.integers(0, k, 300)
    rows = csr_matrix(X.astype(np.float32))
    learner = sa.SetLogit(n_labels=k, n_features=d, set_size=2, forget=forget)
    average = np.zeros((d + 1, k))
    for i in range(300):
        decision = learner.decide(rows[i])
        learner.update(decision, hit=bool(y[i] in decision.labels))
        both = learner.core.state()["weights.sparse"]  # W and A of every feature, side by side
        average += max(20 / (i + 21), forget) * (both[:, 0] - average)
    omega = learner.core.state()["weights.averaging_state"]
    got = both[:, 0] - omega[1] * both[:, 1]
    np.testing.assert_allclose(got, average, atol=2e-4)


def test_dense_average_is_the_average() -> None:
    X, y = digits()
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    average = np.zeros(learner.n_labels * 65).reshape(10, 65)
    for i in range(400):
        learner.run(X, y, np.array([i]))
        average += 3 / (i + 4) * (weights_of(learner)[:, :65] - average)
    # W is taken in every 8 updates with the weight of all of them: close, not equal
    scale = np.abs(average).max()
    np.testing.assert_allclose(learner.core.state()["weights.A"][:, :65], average, atol=0.1 * scale)


def test_statistics_are_those_of_the_rows() -> None:
    X, y = digits()
    X = X * np.float32(3.0) + np.float32(1.0)
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    learner.run(X, y)
    state = learner.core.scaling.state()  # what is far outside counts as the edge: a little less
    np.testing.assert_allclose(state["mean"], X.mean(axis=0), rtol=1e-2)
    np.testing.assert_allclose(state["var"], X.var(axis=0), rtol=0.1, atol=1e-5)


# ------------------------------------------------------------ sets


@pytest.mark.parametrize("uniform", [0.0, 0.3])
def test_reported_propensity_is_the_frequency(uniform: float) -> None:
    """One state, many rounds: frequencies against the propensities, by chi-squared at 99.99 %."""
    from scipy.stats import chi2

    learner = prepared_learner(k=6, d=3, explore="rank", uniform=uniform)
    x = np.array([0.1, 0.2, -0.1], np.float32)
    rule = learner.core.kernel.state()
    rule["draw_state"][2], rule["answers"][0] = 300.0, 1e9  # so that what is pending changes nothing
    counts: dict[frozenset[int], int] = {}
    chance: dict[frozenset[int], float] = {}
    n = 20_000
    for _ in range(n):
        decision = learner.decide(x, set_size=3)
        key = frozenset(decision.labels)
        counts[key] = counts.get(key, 0) + 1
        chance[key] = decision.propensity  # type: ignore[assignment]
    assert sum(chance.values()) == pytest.approx(1.0, abs=1e-6)
    assert len(chance) > 1
    statistic = sum((counts[key] - n * p) ** 2 / (n * p) for key, p in chance.items())
    assert statistic < chi2.ppf(0.9999, len(chance) - 1)
    if uniform:
        assert len(chance) == 20
        assert min(chance.values()) >= uniform / 20 * 0.999


def test_the_top_label_is_always_shown_and_the_budget_holds() -> None:
    X, y = digits()
    costs = {}
    for explore in ("show", "balanced", "rank"):
        learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3, explore=explore)
        other = 0
        for i in range(3000):
            decision = learner.decide(X[i % len(X)])
            other += set(decision.labels) != set(decision.top)
            learner.update(decision, hit=bool(y[i % len(X)] in decision.labels))
        costs[explore] = other
    assert costs["show"] < costs["balanced"] < costs["rank"]


def test_eligible_labels_and_everything_shown() -> None:
    learner = prepared_learner(k=6, d=3)
    x = np.ones(3, np.float32)
    decision = learner.decide(x, eligible=[1, 4])
    assert sorted(decision.labels) == [1, 4]
    assert decision.propensity == 1.0
    for _ in range(50):
        assert set(learner.decide(x, eligible=[0, 2, 5]).labels) < {0, 2, 5}


# ------------------------------------------------------------ what it can take


def test_it_learns_from_sets_that_others_chose() -> None:
    X, y = digits()
    random = np.random.default_rng(0)
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    for _ in range(6):
        for i in random.permutation(len(X)):
            shown = random.choice(10, int(random.integers(1, 6)), replace=False).tolist()
            learner.update(sa.Decision.given(X[i], labels=shown), hit=bool(y[i] in shown))
    assert (learner.predict(X) != y).mean() < 0.08


def test_it_finds_a_label_that_comes_late() -> None:
    X, y = digits()
    early = np.flatnonzero(y != 7)
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    random = np.random.default_rng(0)
    learner.run(X, y, random.choice(early, 20_000))
    learner.run(X, y, random.integers(0, len(X), 20_000))
    sevens = X[y == 7]
    assert (learner.predict(sevens) == 7).mean() > 0.9


def test_it_finds_a_rare_label() -> None:
    X, y = digits()
    weight = np.where(y == 7, 0.009, 1.0)  # 0.1 % of the rounds
    visit = np.random.default_rng(0).choice(len(X), 60_000, p=weight / weight.sum())
    assert 30 < (y[visit] == 7).sum() < 100
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    learner.run(X, y, visit)
    best = learner.predict_set(X[y == 7], 3)
    assert (best == 7).any(axis=1).mean() > 0.8


def test_forgetting_recovers_from_a_drift() -> None:
    X, y = digits()
    after = (y + 3) % 10
    random = np.random.default_rng(0)
    visit = random.integers(0, len(X), 15_000)
    errors = {}
    for forget in (0.0, 0.001):
        learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3, forget=forget)
        learner.run(X, y, visit)
        errors[forget] = learner.run(X, after, visit)[0]
    assert errors[0.001] < 0.5 * errors[0.0]
    assert learner.run(X, after, visit[:5000])[0] < 0.02 * 5000


def test_labels_can_be_added() -> None:
    X, y = digits()
    names = [f"digit {i}" for i in range(8)]
    learner = sa.SetLogit(labels=names, n_features=64, set_size=3)
    pending = learner.decide(X[0])
    few = np.flatnonzero(y < 8)
    random = np.random.default_rng(0)
    learner.run(X[few], y[few], random.integers(0, len(few), 10_000))
    learner.add_labels(["digit 8", "digit 9"])
    assert learner.n_labels == 10
    learner.update(pending, hit=True)
    learner.run(X, y, random.integers(0, len(X), 20_000))
    assert (learner.predict(X[y == 9]) == "digit 9").mean() > 0.9
    with pytest.raises(InvalidInput, match="labels of SetLogit must be distinct"):
        learner.add_labels(["digit 9"])


def test_noise_in_the_answers_is_modelled() -> None:
    X, y = digits()
    random = np.random.default_rng(0)
    rates = {}
    for false_no in (0.0, 0.6):
        learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3, false_no=false_no, explore="rank")
        for i in random.integers(0, len(X), 15_000):
            decision = learner.decide(X[i])
            hit = bool(y[i] in decision.labels) and random.random() > 0.6
            learner.update(decision, hit=hit)
        rates[false_no] = float((learner.predict(X) != y).mean())
    assert rates[0.6] < rates[0.0]
    assert rates[0.6] < 0.1


def test_probabilities_are_calibrated_enough() -> None:
    X, y = digits()
    learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
    visit = np.random.default_rng(0).integers(0, len(X), 20_000)
    learner.run(X, y, visit)
    p = learner.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), learner.predict(X))
    assert p[np.arange(len(y)), y].mean() > 0.9


def test_bad_parameters() -> None:
    common: dict[str, Any] = {"n_labels": 4, "n_features": 2, "set_size": 2}
    for bad in (
        {"explore": "a lot"},
        {"explore": 1.5},
        {"forget": -1},
        {"false_no": 1.0},
        {"false_no": 0.6, "false_yes": 0.5},
        {"uniform": 2},
        {"step": 0},
    ):
        with pytest.raises(InvalidInput, match=r"of SetLogit must be"):
            sa.SetLogit(**common, **bad)
