"""Learning from sets that somebody else drew: the estimates stay unbiased."""

from __future__ import annotations

from itertools import permutations
from math import exp

import numpy as np
import pytest
from exact import log_ordered_probability

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.explore import Dilute

X = np.array([0.6, -0.8], np.float32)


def learner(k: int, m: int, **params: object) -> sa.MCDBF:
    """Its own top set for X is the m last labels."""
    made = sa.MCDBF(n_labels=k, n_features=2, set_size=m, intercept=False, gamma=0.5, **params)
    made.run(X[None], [0], [])  # no round, but a first row: it makes the core
    weights(made)[:, 0] = np.arange(k)
    return made


def weights(it: sa.MCDBF) -> np.ndarray:
    return it.core.weights.state()["dense"]


@pytest.mark.parametrize("eligible", [None, [0, 1, 2, 4]])
@pytest.mark.parametrize(("k", "m", "gamma"), [(5, 2, 0.3), (6, 3, 0.7), (5, 1, 0.2)])
@pytest.mark.parametrize(
    "params",
    [
        {"estimate": "ordered"},
        {"estimate": "set"},
        {"estimate": "minimum-variance", "rho": 0.7},
        {"estimate": "set", "gate": True, "margin": 1.0},
        {"estimate": "minimum-variance", "rho": 0.8, "gate": True, "margin": 0.5},
    ],
)
@pytest.mark.slow
def test_step_from_a_log_is_unbiased_by_enumeration(k, m, gamma, params, eligible):
    among = list(range(k)) if eligible is None else eligible
    top = among[:m]
    own = among[-m:]
    n = len(among)
    for y in among:
        start, mean = learner(k, m, **params), np.zeros((k, 2))
        s = start.scores(X[None])[0]
        for drawn in permutations(among, m):
            one = learner(k, m, **params)
            one.update(sa.Decision.given(X, drawn, top=top, gamma=gamma, eligible=eligible), hit=y in drawn)
            z = exp(log_ordered_probability(n, m, gamma, [r in top for r in drawn]))
            mean += z * (weights(one) - weights(start))[:, :2]
        step = np.eye(k)[y] - np.isin(np.arange(k), own) / m
        if params.get("gate"):
            step = step * (params["margin"] - s[y] + s[own].mean() > 0)
        np.testing.assert_allclose(mean, np.outer(step, X), atol=2e-5)


def test_a_logged_decision_of_its_own_top_set_moves_as_its_own_does():
    """Same top set and gamma: up to a vector common to all rows it is the learner's own update."""
    a = sa.MCDBF(n_labels=5, n_features=2, set_size=2, gamma=0.3, seed=3, estimate="set")
    b = sa.MCDBF(n_labels=5, n_features=2, set_size=2, gamma=0.3, seed=3, estimate="set")
    for t in range(20):
        decision = a.decide(X)
        a.update(decision, hit=t % 3 == 0)
        same = sa.Decision.given(X, decision.drawn, top=decision.top, gamma=0.3)
        b.update(same, hit=t % 3 == 0)
    shift = weights(a) - weights(b)
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-4)


def test_mcdbf_refuses_sets_whose_draw_nobody_knows():
    with pytest.raises(
        FeedbackError, match=r"must be its own \(given sets teach set-logit, and with top= and gamma="
    ):
        learner(5, 2).update(sa.Decision.given(X, [0, 1], propensity=0.2), hit=True)


def test_a_given_set_teaches_once():
    one, decision = learner(5, 2), sa.Decision.given(X, [0, 1], top=[0, 1], gamma=0.2)
    one.update(decision, hit=True)
    with pytest.raises(FeedbackError, match="was answered before"):
        one.update(decision, hit=True)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"top": [0, 1]}, "top and gamma of Decision.given must be given both or neither"),
        ({"gamma": 0.1}, "top and gamma of Decision.given must be given both or neither"),
        ({"top": [0, 0], "gamma": 0.1}, "top of Decision.given must be 2 distinct labels"),
        ({"top": [0], "gamma": 0.1}, "top of Decision.given must be 2 distinct labels"),
        ({"top": [0, 1], "gamma": 0.0}, r"gamma of Decision.given must be in \(0, 1\]"),
        (
            {"eligible": [0, 2]},
            "eligible of Decision.given must be a list of distinct labels that holds labels and top",
        ),
    ],
)
def test_given_says_what_is_wrong(bad, message):
    with pytest.raises(InvalidInput, match=message):
        sa.Decision.given(X, [0, 1], **bad)


def test_notes_travel_with_the_model(tmp_path):
    made = learner(5, 2)
    made.metadata["training"] = {"rows": 3}
    made.save(tmp_path / "m.npz")
    assert sa.load(tmp_path / "m.npz").metadata == {"training": {"rows": 3}}


def test_a_batch_that_fails_midway_has_marked_what_it_learnt():
    learner = sa.SetLogit(n_labels=3, n_features=2, scaling="unit")
    good, bad = sa.Decision.given([1.0, 2.0], [0]), sa.Decision.given([3e38, 0.0], [1])  # no length 1
    with pytest.raises(WeightsOverflow):
        learner.update_many([good, bad], hits=[True, False])
    with pytest.raises(FeedbackError, match="answered before"):
        learner.update(good, hit=True)


@pytest.mark.parametrize("estimate", ["ordered", "set", "minimum-variance"])
def test_many_given_sets_teach_as_one_by_one_whatever_their_gamma(estimate):
    random = np.random.default_rng(0)
    one, many = (sa.MCDBF(n_labels=6, n_features=2, set_size=2, estimate=estimate) for _ in range(2))
    logged = []
    for i in range(40):
        gamma, x = (0.2, 0.7)[i % 2], random.normal(size=2)
        decision = Dilute(gamma=gamma, set_size=2 + i % 3 // 2, seed=i).decide(random.normal(size=6), x=x)
        logged.append((x, decision.drawn, decision.top, gamma))
    hits = (random.random(40) < 0.5).tolist()
    for (x, drawn, top, gamma), hit in zip(logged, hits, strict=True):
        one.update(sa.Decision.given(x, drawn, top=top, gamma=gamma), hit=hit)
    many.update_many(
        [sa.Decision.given(x, drawn, top=top, gamma=gamma) for x, drawn, top, gamma in logged], hits
    )
    for name, array in one.core.state().items():
        np.testing.assert_array_equal(array, many.core.state()[name], err_msg=name)


@pytest.mark.parametrize("estimate", ["ordered", "set"])
def test_an_answer_is_read_by_the_gamma_of_its_draw(estimate):
    """gamma may change between a decision and its answer."""
    learner = sa.MCDBF(n_labels=5, n_features=1, set_size=2, gamma=0.5, estimate=estimate, seed=3)
    decision = learner.decide([1.0])
    changed = learner.with_params(gamma=0.05)
    learner.update(decision, hit=True)
    changed.update(decision, hit=True)
    np.testing.assert_array_equal(
        learner.core.weights.state()["dense"], changed.core.weights.state()["dense"]
    )
