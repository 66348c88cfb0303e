"""Scores: a rule behind the API of a learner."""

from __future__ import annotations

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import Cover, Uniform, rule_from
from superarm.learners import Scores
from superarm.learners.registry import learners_by_name, parse

LABELS = ["ant", "bee", "cat", "dog", "eel"]


def some(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, len(LABELS))).astype(np.float32)


@pytest.mark.parametrize(
    "own", [{}, {"explore": "rank", "uniform": 0.2}, {"coverage": 0.9}, {"explore": Uniform()}]
)
def test_it_is_the_rule_alone_to_the_bit(own, tmp_path):
    size = {} if "coverage" in own else {"set_size": 2}
    learner = Scores(labels=LABELS, seed=3, **size, **own)
    rule = rule_from(learner.rule.to_dict(), "test")
    rule.set_size, rule.seed, rule.labels = learner.set_size, 3, tuple(LABELS)
    for i, s in enumerate(some(60)):
        ours = learner.decide(dict(zip(LABELS, s.tolist(), strict=True)))
        theirs = rule.decide(s)
        assert (ours.labels, ours.drawn, ours.propensity) == (theirs.labels, theirs.drawn, theirs.propensity)
        if i % 3:
            learner.update(ours, hit=i % 2 == 0)
            rule.update(theirs, hit=i % 2 == 0)
        if i == 30:
            learner.save(tmp_path / "model.npz")
            learner = sa.load(tmp_path / "model.npz")
    batch = rule.decide_many(some(5, seed=1))
    assert [one.labels for one in learner.decide_many(some(5, seed=1))] == [one.labels for one in batch]


def test_labels_without_a_score_are_never_shown():
    learner = Scores(labels=LABELS, set_size=2, explore=Uniform())
    seen = {
        label for _ in range(100) for label in learner.decide({"ant": 0.0, "cat": 1.0, "dog": 0.0}).labels
    }
    assert seen == {"ant", "cat", "dog"}
    one = learner.decide({"ant": 0.0, "cat": 1.0}, eligible=["cat", "eel"])
    assert (one.labels, one.eligible, one.propensity) == (["cat"], ["cat"], 1.0)
    assert learner.rank({"cat": 1.0, "bee": 2.0})[:2] == ["bee", "cat"]


def test_labels_can_be_added_and_old_decisions_answered():
    learner = Scores(labels=LABELS, set_size=2)
    old = [learner.decide(dict.fromkeys(LABELS, 0.0)), learner.decide(some(1)[0])]
    many = learner.decide_many(some(4))
    learner.add_labels(["fox"])
    assert learner.decide({"fox": 5.0, "ant": 0.0, "bee": 0.0}).top[0] == "fox"
    for one in old:
        learner.update(one, hit=True)
    assert learner.update_many(many, [True] * 4) == 4


def test_what_it_refuses():
    with pytest.raises(InvalidInput, match="n_features of Scores must be left out, or 5"):
        Scores(labels=LABELS, n_features=9)
    learner = Scores(labels=LABELS, set_size=2)
    for x, message in (
        ({"ape": 1.0}, "x of Scores must be scores of labels that may be shown"),
        ({"ape": 1.0, "ant": 0.0}, r"x\['ape'\] of Scores must be the score of a known label, got 1.0"),
        ({"ant": "high"}, r"x\['ant'\] of Scores must be a finite number"),
        ({"ant": float("nan")}, r"x\['ant'\] of Scores must be a finite number"),
        ([1.0, 2.0], "x of Scores must"),
    ):
        with pytest.raises(InvalidInput, match=message):
            learner.decide(x)
    with pytest.raises(InvalidInput, match="X of Scores must be scores of all 5 labels in every row"):
        learner.decide_many([{"ant": 1.0}])


def test_it_is_no_learner_of_tables():
    assert "scores" not in learners_by_name()
    assert parse("scores:uniform=0.1") == (Scores, {"uniform": 0.1})
    assert isinstance(Scores(labels=LABELS, coverage=0.9).rule, Cover)
