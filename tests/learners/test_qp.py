"""PA and EPABF, compiled, against SciPy's solvers and against the conditions of optimality."""

import numpy as np
import pytest
import qp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native_hooks import epabf_multipliers as multipliers
from native_hooks import pa_threshold as threshold

import superarm as sa

# no finer: of a loss of 1e-8 SciPy's solvers do not find the optimum
SCORE = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0]) | st.integers(-3000, 3000).map(
    lambda score: score / 1000
)
PRICE = st.sampled_from([0.01, 0.1, 1.0, 10.0])
NORM = st.sampled_from([0.25, 1.0, 1.5, 40.0])


def pa_coefficients(s, y, X, C, variant):
    """What PA's kernel adds, as its `learn` computes it."""
    losses = 1 - s[y] + np.delete(s, y)
    positive = losses[losses > 0]
    c = np.zeros(len(s))
    if len(positive):
        max_total = C if variant == "PA-I" else np.inf
        Lambda, bound = threshold(positive, X, max_total, 2 * C if variant == "PA-II" else np.inf)
        c = -np.maximum(1 - s[y] + s - bound, 0) / X
        c[y] = Lambda
    return c


@given(st.lists(SCORE, min_size=2, max_size=7), st.integers(0, 6), NORM, PRICE)
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_pa(variant, s, y, X, C):
    s, y = np.array(s), y % len(s)
    ours = pa_coefficients(s, y, X, C, variant)
    assert abs(ours.sum()) < 1e-9
    if (1 - s[y] + np.delete(s, y) > 0).any():
        wanted = qp.pa(s, y, X, C, variant)
        np.testing.assert_allclose(ours, wanted, atol=1e-5 * max(1.0, np.abs(wanted).max()))
    else:
        assert not ours.any()


def epabf_multipliers(s, shown, a, X, C, variant):
    lambdas = np.maximum(1 - a * s[shown] + s, 0) / X
    high = C if variant == "EPABF-I" else np.inf
    delta = 1 / (2 * C * X) if variant == "EPABF-II" else 0.0
    return multipliers(lambdas, shown, a, high, delta)


def directions(k, shown, a):
    return np.array([a * np.eye(k)[shown] - np.eye(k)[r] for r in range(k)])


@given(
    st.lists(SCORE, min_size=2, max_size=7),
    st.integers(0, 6),
    st.sampled_from([0.0, 1.1, 1.6, 5.0, 50.0]),
    NORM,
    PRICE,
)
@example(s=[-1, -2, -1, -0.5, -0.109, -0.357, -0.5], shown=0, a=0.0, X=1.0, C=0.01)
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("variant", ["EPABF", "EPABF-I", "EPABF-II"])
def test_epabf(variant, s, shown, a, X, C):
    s, shown = np.array(s), shown % len(s)
    ours = directions(len(s), shown, a).T @ epabf_multipliers(s, shown, a, X, C, variant)
    if (1 - a * s[shown] + s > 0).any():
        wanted = qp.epabf(s, shown, a, X, C, variant)
        np.testing.assert_allclose(ours, wanted, atol=1e-5 * max(1.0, np.abs(wanted).max()))
    else:
        assert not ours.any()


@given(
    st.lists(SCORE, min_size=2, max_size=40),
    st.integers(0, 39),
    st.just(0.0) | st.floats(1.001, 1e4),
    NORM,
    PRICE,
)
@settings(deadline=None)
@pytest.mark.parametrize("variant", ["EPABF", "EPABF-I", "EPABF-II"])
def test_epabf_meets_the_optimality_conditions(variant, s, shown, a, X, C):
    """With the multipliers' gradient r = losses - X G G' v (- v/2C): r <= 0 at 0, r >= 0 at C, else 0."""
    s, shown = np.array(s), shown % len(s)
    v = epabf_multipliers(s, shown, a, X, C, variant)
    G, losses = directions(len(s), shown, a), 1 - a * s[shown] + s
    residual = losses - X * G @ (G.T @ v)
    if variant == "EPABF-II":
        residual -= v / (2 * C)
    tolerance = 1e-7 * (1 + a * a) * max(1.0, np.abs(losses).max())
    at_most = C if variant == "EPABF-I" else np.inf
    assert (v >= 0).all()
    assert (v <= at_most).all()
    assert (residual[v < at_most] <= tolerance).all()
    assert (residual[v > 0] >= -tolerance).all()


def test_pa_leaves_no_loss():
    """Plain PA: after its update every margin is at least 1."""
    learner = sa.PA(n_labels=6, n_features=4, variant="PA")
    random = np.random.default_rng(5)
    for _ in range(200):
        x, y = random.normal(size=4), int(random.integers(6))
        learner.update(learner.decide(x), label=y)
        s = learner.scores([x])[0].astype(float)
        assert (s[y] - np.delete(s, y)).min() >= 1 - 1e-3 * max(1.0, np.abs(s).max())


@pytest.mark.parametrize("bit", [True, False])
def test_epabf_leaves_no_loss(bit):
    """Plain EPABF: after its update a w_y~.x - w_r.x >= 1 for every r."""
    learner = sa.EPABF(n_labels=6, n_features=4, variant="EPABF", gamma=0.5)
    random = np.random.default_rng(5)
    for _ in range(200):
        x = random.normal(size=4)
        decision = learner.decide(x)
        learner.update(decision, hit=bit)
        s = learner.scores([x])[0].astype(float)
        a = bit / decision.propensity
        assert (a * s[decision.drawn[0]] - s).min() >= 1 - 1e-3 * max(1.0, a * np.abs(s).max())


def test_a_row_of_zeros_teaches_nothing():
    for learner in (
        sa.PA(n_labels=3, n_features=2, intercept=False),
        sa.EPABF(n_labels=3, n_features=2, intercept=False),
    ):
        decision = learner.decide([0.0, 0.0])
        answer = {"label": 1} if learner.feedback == ("label",) else {"hit": True}
        learner.update(decision, **answer)
        assert not learner.core.weights.state()["dense"].any()
