"""none_label: a label that is never shown and never predicted, but may be the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_hooks import posterior

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import distribution_of

ADS = ["a", "b", "c", "d", "e"]
NAMES = [*ADS, "(nothing)"]


def visitors(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows, and what each visitor wants: mostly nothing."""
    random = np.random.default_rng(seed)
    taste = np.random.default_rng(1).normal(size=(4, 5))
    X = random.normal(size=(n, 4)).astype(np.float32)
    y = (X @ taste).argmax(axis=1)
    y[random.random(n) < 0.7] = 5
    return X, y


def learner(**parameters: Any) -> sa.SetLogit:
    return sa.SetLogit(labels=NAMES, n_features=4, set_size=2, none_label="(nothing)", **parameters)


def test_it_is_never_shown_and_never_predicted() -> None:
    X, y = visitors(2000)
    model = learner(uniform=0.1)
    for x, wanted in zip(X, y, strict=True):
        decision = model.decide(x)
        assert "(nothing)" not in [*decision.labels, *decision.top]
        assert decision.eligible == ADS
        model.update(decision, hit=NAMES[wanted] in decision.labels)
    assert sorted(model.rank(X[0])) == ADS
    assert set(model.predict(X)) <= set(ADS)
    assert set(model.predict_set(X, 5).ravel()) == set(ADS)
    p = model.predict_proba(X)
    assert p.shape == (2000, 6)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[:, 5].mean() == pytest.approx(0.7, abs=0.1)
    assert model.scores(X).shape == (2000, 6)


def test_propensities_are_those_among_the_others() -> None:
    model = learner()
    decision = model.decide(np.ones(4, np.float32))
    assert decision.propensity == pytest.approx(1 / 10)  # nothing is known: 2 of 5
    draw = distribution_of(sa.Decision.from_dict(decision.to_dict()), labels=NAMES)
    assert draw is not None
    np.testing.assert_allclose(draw.inclusion(), 2 / 5)


def test_the_fused_loop_and_single_calls_are_one() -> None:
    X, y = visitors(400)
    fused, single = learner(), learner()
    counts = fused.run(X, y)
    shown_misses = 0
    for x, wanted in zip(X, y, strict=True):
        decision = single.decide(x)
        hit = NAMES[wanted] in decision.labels
        single.update(decision, hit=hit)
        shown_misses += not hit
    assert counts[2] == shown_misses
    np.testing.assert_array_equal(fused.core.state()["weights.W"], single.core.state()["weights.W"])


def test_it_may_be_told_and_kept(tmp_path: Path) -> None:
    model = learner()
    x = np.ones(4, np.float32)
    for _ in range(30):
        model.update(model.decide(x), label="(nothing)")
    assert model.predict_proba(x[None])[0, 5] > 0.8
    model.save(tmp_path / "model.npz")
    again = sa.load(tmp_path / "model.npz")
    assert again.params["none_label"] == "(nothing)"
    assert "(nothing)" not in again.rank(x)
    again.add_labels(["f"])
    assert sorted(again.rank(x)) == [*ADS, "f"]


def test_a_number_where_labels_have_no_names() -> None:
    model = sa.SetLogit(n_labels=4, n_features=2, set_size=2, none_label=0)
    assert 0 not in model.decide([1.0, 2.0]).labels
    assert sorted(model.rank([1.0, 2.0])) == [1, 2, 3]


def test_it_is_not_revived() -> None:
    """On a miss the labels give 2 % to each other; nothing is given by it or to it."""
    p, mean_posterior = np.array([0.1, 0.2, 0.1, 0.6]), np.array([0.2, 0.0, 0.2, 0.6])
    post = posterior(p, [0], hit=False, mean_posterior=mean_posterior, revive=0.02, none_label=3)
    assert post[0] == 0.0
    assert post[3] == pytest.approx(0.6 / 0.9)
    assert post.sum() == pytest.approx(1.0)
    assert post[1] > 0.2 / 0.9


def test_it_pays_where_most_want_nothing() -> None:
    X, y = visitors(6000)
    hits = {}
    for none_label in ("(nothing)", None):
        model = sa.SetLogit(
            labels=NAMES if none_label else ADS, n_features=4, set_size=1, none_label=none_label
        )
        hits[none_label] = 0
        for i, (x, wanted) in enumerate(zip(X, y, strict=True)):
            decision = model.decide(x)
            hit = NAMES[wanted] in decision.labels
            model.update(decision, hit=hit)
            hits[none_label] += hit and i >= 3000
    assert hits["(nothing)"] > 1.05 * hits[None]


def test_mistakes_are_named() -> None:
    with pytest.raises(InvalidInput, match="none_label of SetLogit must be one of the labels"):
        sa.SetLogit(labels=ADS, n_features=4, set_size=2, none_label="(nothing)")
    with pytest.raises(InvalidInput, match="eligible of SetLogit must be labels without none_label"):
        learner().decide(np.ones(4, np.float32), eligible=["a", "b", "(nothing)"])
