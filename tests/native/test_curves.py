"""SetLogit with curves: the gate, the likelihood, a naive twin, and where curves must and must not help."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from naive import softmax
from naive_curves import Curved
from native_hooks import averaged_step, gate_slope, random_feature_scores, random_features, scaled
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.errors import InvalidInput
from superarm.learners import setlogit
from superarm.native.curves import Curves


def rings(n: int, k: int = 6, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Labels by the distance from the origin in two columns: no line separates them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)).astype(np.float32)
    distance = X[:, 0] ** 2 + X[:, 1] ** 2
    return X, np.searchsorted(np.quantile(distance, np.arange(1, k) / k), distance)


def made(X: Any, k: int, m: int = 2, **parameters: Any) -> sa.SetLogit:
    return sa.SetLogit(n_labels=k, n_features=X.shape[1], set_size=m, **parameters)


# ------------------------------------------------------------ the gate


ANSWERS = [
    {"hit": True},
    {"hit": False},
    {"label": 1},
    {"label": 4},
    {"likelihood": [0.1, 0.0, 0.5, 0.2, 1.0]},
]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("noise", [(0.0, 0.0), (0.1, 0.3)])
def test_the_slope_of_the_gate(answer: dict[str, Any], noise: tuple[float, float]) -> None:
    """Against finite differences of the log-likelihood of the answer."""
    random = np.random.default_rng(0)
    linear, curved, drawn, g = random.normal(size=5), random.normal(size=5), np.array([1, 3]), 0.7
    false_yes, false_no = noise

    def log_likelihood(gate: float) -> float:
        p = softmax(linear + gate * curved)
        if "label" in answer:
            return float(np.log(p[answer["label"]]))
        if "likelihood" in answer:
            return float(np.log(p @ answer["likelihood"]))
        inside = p[drawn].sum()
        yes = (1 - false_no) * inside + false_yes * (1 - inside)
        return float(np.log(yes if answer["hit"] else 1 - yes))

    wanted = (log_likelihood(g + 1e-5) - log_likelihood(g - 1e-5)) / 2e-5
    q = softmax(linear + g * curved)
    got = gate_slope(q, curved, drawn, false_yes=false_yes, false_no=false_no, **answer)
    assert got == pytest.approx(wanted, rel=1e-5)


def test_an_impossible_answer_leaves_the_gate() -> None:
    q, a = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0])
    assert gate_slope(q, a, [1, 2], hit=True) == 0.0
    assert gate_slope(q, a, [], likelihood=[0.0, 1.0, 1.0]) == 0.0


def test_the_stage_alone_on_one_row() -> None:
    curves = Curves(3, 4, 64, 7)
    x = np.array([0.5, -0.5, 0.1, 0.2])
    phi = random_features(curves.random_features, x)
    averaged_step(curves.weights, [1.0, -1.0, 0.0], phi)
    average, last = random_feature_scores(curves, x)
    np.testing.assert_allclose(last, [phi @ phi, -phi @ phi, 0.0], rtol=1e-5)
    np.testing.assert_allclose(average, 0.75 * last, rtol=1e-5)
    assert curves.g == 1.0


def test_curves_fade_where_the_truth_is_linear_and_noisy() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 20)).astype(np.float32)
    y = (X @ random.normal(size=(20, 6))).argmax(axis=1)
    wrong = random.random(len(y)) < 0.2
    y[wrong] = random.integers(0, 6, wrong.sum())
    errors = []
    for curves in (0, None):
        learner = made(X, 6, explore="rank", curves=curves)
        errors.append(learner.run(X, y)[0] / len(X))
    assert learner.core.curves.g < 0.25
    assert errors[1] < errors[0] + 0.01


def test_curves_learn_what_no_line_can() -> None:
    X, y = rings(30_000, d=10)
    errors = {}
    for curves in (0, None):
        learner = made(X, 6, explore="rank", curves=curves)
        learner.run(X, y, np.arange(20_000))
        errors[curves] = (learner.predict(X[20_000:]) != y[20_000:]).mean()
    assert errors[None] < 0.35 < 0.7 < errors[0]
    assert learner.core.curves.g > 0.7
    relevance = learner.core.state()["curves.random_features.relevance"]  # two of the ten columns matter
    assert relevance[:2].min() > 3 * relevance[2:].max()


# ------------------------------------------------------------ the update


@pytest.mark.parametrize("hit", [True, False])
def test_a_bit_is_a_step_along_the_gradient_of_its_likelihood(hit: bool) -> None:
    """At gate 1 and where average and last weights agree: of both parts, by finite differences."""
    X, y = rings(200)
    learner = made(X, 6, curves=64)
    learner.run(X, y)
    core, state = learner.core, learner.core.state()
    for part in ("weights", "curves.weights"):
        state[f"{part}.A"][...] = state[f"{part}.W"]
    state["curves.gate"][:] = 1.0, 1e12  # and there it stays
    state["mean_posterior"][:] = 1e12  # nobody in need: on a miss, blame is spread evenly
    decision = learner.decide(X[0])
    z, bias, _, _ = scaled(core.scaling, X[0])
    x, phi = np.append(z.astype(float), bias), random_features(core.curves.random_features, z).astype(float)
    W, W2 = state["weights.W"][:, :5].astype(float), state["curves.weights.W"][:, :64].astype(float)
    inside = np.isin(np.arange(6), decision.labels)
    p = softmax(W @ x + W2 @ phi)
    post = p * (inside if hit else ~inside)
    post /= post.sum()
    if not hit:
        post = (1 - setlogit.REVIVE_DENSE) * post + setlogit.REVIVE_DENSE * ~inside / (~inside).sum()
    else:  # the gradient of log sum_S p, exactly

        def log_likelihood(at: tuple[int, int], by: float) -> float:
            moved = W2.copy()
            moved[at] += by
            return float(np.log(softmax(W @ x + moved @ phi)[inside].sum()))

        for at in [(0, 3), (2, 40), (5, 63)]:
            numeric = (log_likelihood(at, 1e-5) - log_likelihood(at, -1e-5)) / 2e-5
            assert (post - p)[at[0]] * phi[at[1]] == pytest.approx(numeric, abs=1e-6)
    learner.update(decision, hit=hit)
    step = setlogit.STEP_WITH_CURVES
    moved = state["curves.weights.W"][:, :64] - W2, state["weights.W"][:, :5] - W
    np.testing.assert_allclose(moved[0], step * np.outer(post - p, phi), atol=1e-5)
    np.testing.assert_allclose(moved[1], step * np.outer(post - p, x), atol=1e-5)


@pytest.mark.parametrize(("d", "curves"), [(4, None), (70, 64)])
def test_a_naive_twin_computes_the_same(d: int, curves: int | None) -> None:
    X, y = rings(400, d=d)
    learner = made(X, 6, curves=curves, seed=3)
    learner.inputs.encode_rows(X[:1])
    learner.ensure_core()
    state = learner.core.state()
    twin = Curved(6, d, state["curves.random_features.sign"], features=curves or setlogit.CURVES)
    for i in range(400):
        decision = learner.decide(X[i])
        np.testing.assert_allclose(learner.scores(X[i : i + 1])[0], twin.scores(X[i]), atol=0.02, rtol=0.01)
        hit = bool(y[i] in decision.labels)
        learner.update(decision, hit=hit)
        twin.learn(X[i].astype(float), decision.labels, hit)
    assert learner.core.curves.g == pytest.approx(twin.gate, abs=0.01)
    np.testing.assert_allclose(state["curves.random_features.relevance"], twin.relevance, atol=0.02)
    np.testing.assert_allclose(state["curves.random_features.inverse"], twin.waves.inverse, rtol=0.02)


# ------------------------------------------------------------ the house


def test_sparse_rows_stay_linear() -> None:
    X, y = rings(300)
    learners = [made(X, 6, curves=curves) for curves in (None, 0, 64)]
    for learner in learners:
        learner.run(csr_matrix(X), y)
        assert learner.n_random_features == 0
        assert learner.core.state()["curves.weights.W"].size == 0
    scores = [learner.scores(csr_matrix(X)) for learner in learners]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_labels_can_be_added_to_a_learner_with_curves() -> None:
    X, y = rings(3000)
    learner = made(X, 4, explore="rank")
    learner.run(X, y % 4, np.arange(1000))
    before = learner.scores(X[:5])
    learner.add_labels(2)
    np.testing.assert_array_equal(learner.scores(X[:5])[:, :4], before)
    learner.run(X, y)
    assert set(learner.predict(X)) == set(range(6))


def test_too_many_labels_stay_linear_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setlogit, "MAX_LABELS_WITH_CURVES", 5)
    X, _ = rings(10)
    learner = made(X, 6)
    with pytest.warns(UserWarning, match="SetLogit stays linear: 1024 random features for each of 6 labels"):
        learner.scores(X)
    assert learner.n_random_features == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for learner in (made(X, 6, curves=0), made(X, 6, curves=32), made(X, 5)):
            learner.scores(X)
        learner.add_labels(3)  # what has been begun goes on
    assert learner.n_random_features == 1024


@pytest.mark.parametrize("bad", [-2, 3, 2.5, True, "many"])
def test_bad_numbers_of_curves(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="curves of SetLogit must be"):
        sa.SetLogit(n_labels=4, n_features=3, curves=bad)
    with pytest.raises(InvalidInput, match="curves of AveragedSoftmax must be"):
        sa.AveragedSoftmax(n_labels=4, n_features=3, curves=bad)


def test_several_passes_pay_for_more_curves_and_a_step_that_shrinks() -> None:
    X, y = rings(100)
    learner = made(X, 6)
    learner.prepare_passes(1)
    assert learner.curves is None
    learner.prepare_passes(5)
    learner.run(X, y)
    assert learner.n_random_features == setlogit.CURVES_TRAINED == learner.params["curves"]
    learner.anneal(0.25)
    assert learner.core.step == 0.25 * setlogit.STEP_WITH_CURVES
    learner.run(X, y)
    learner.anneal(1.0)
    assert learner.core.step == setlogit.STEP_WITH_CURVES
    own = made(X, 6, curves=64)
    own.prepare_passes(5)
    assert own.curves == 64
