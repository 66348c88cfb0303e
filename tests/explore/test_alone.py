"""Rules on anybody's scores: one row, or a matrix at once."""

from __future__ import annotations

import copy
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.explore import Boltzmann, Cover, Dilute, Greedy, RunnerUp, Uniform

LABELS = ["ant", "bee", "cat", "dog", "eel", "fox"]
RULES: list[Any] = [
    (RunnerUp, {"set_size": 3}),
    (RunnerUp, {"set_size": 1, "uniform": 0.1}),
    (Dilute, {"set_size": 2, "gamma": 0.3}),
    (Greedy, {"set_size": 2}),
    (Uniform, {"set_size": 2}),
    (Boltzmann, {"set_size": 1}),
]


@pytest.mark.parametrize(("cls", "params"), RULES)
@pytest.mark.parametrize("eligible", [None, ["ant", "cat", "dog", "fox"]])
def test_a_matrix_is_its_rows(cls: Any, params: dict[str, Any], eligible: Any) -> None:
    scores = np.random.default_rng(0).normal(size=(200, 6))
    many, single = (cls(labels=LABELS, seed=2, **params) for _ in range(2))
    many.id = single.id
    for part in (scores[:150], scores[150:]):
        decisions = many.decide_many(scores=part, eligible=eligible)
        assert len(decisions) == len(part)
        for decision, s in zip(decisions, part, strict=True):
            assert decision.to_dict() == single.decide(scores=s, eligible=eligible).to_dict()


def test_probabilities_and_rows() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(6), size=50)
    x = np.arange(100.0).reshape(50, 2)
    decisions = RunnerUp(set_size=2, labels=LABELS).decide_many(probabilities=p, x=x)
    assert decisions[7].x.tolist() == [14.0, 15.0]
    assert decisions.top[:, 0].tolist() == [LABELS[i] for i in p.argmax(axis=1)]
    draw = sa.explore.distribution_of(decisions[3])
    assert draw is not None
    assert draw.probability(decisions[3].labels) == pytest.approx(decisions.propensity[3])


@pytest.mark.parametrize(("cls", "params"), RULES)
def test_probability_of_any_set_moves_nothing(cls: Any, params: dict[str, Any]) -> None:
    scores = np.random.default_rng(5).normal(size=(30, 6))
    rule, other = (cls(labels=LABELS, seed=1, **params) for _ in range(2))
    for s in scores:
        sets = list(combinations(LABELS, params["set_size"]))
        p = {frozenset(labels): rule.distribution(s).probability(labels) for labels in sets}
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
        assert rule.distribution(s).probability(LABELS[: params["set_size"] + 1]) == 0.0
        decision = rule.decide(s)
        assert p[frozenset(decision.labels)] == pytest.approx(decision.propensity, rel=1e-9)
        assert decision.labels == other.decide(s).labels


@pytest.mark.parametrize("own", [{}, {"uniform": 0.1}, {"set_size": 3}])
def test_probability_of_any_set_of_any_size(own: dict[str, Any]) -> None:
    """Where sizes vary, all sets together are certain, and each decision has its own probability."""
    rule = Cover(coverage=0.8, warm_up=0, labels=LABELS, seed=1, **({"set_size": None} | own))
    random = np.random.default_rng(6)
    sets = [labels for size in range(1, 7) for labels in combinations(LABELS, size)]
    sizes = set()
    for s in 3.0 * random.normal(size=(60, 6)):
        p = {frozenset(labels): rule.distribution(s).probability(labels) for labels in sets}
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(p.values()) >= 0.0
        decision = rule.decide(s)
        assert p[frozenset(decision.labels)] == pytest.approx(decision.propensity, rel=1e-6)
        sizes.add(len(decision.labels))
        rule.update(decision, hit=bool(random.random() < 0.8))
    assert len(sizes) > 1


def test_a_rule_is_pickled_with_what_it_has_moved() -> None:
    rule = RunnerUp(set_size=2, seed=3)
    scores = np.random.default_rng(0).normal(size=(60, 5))
    rule.decide_many(scores[:20])
    again, copied = pickle.loads(pickle.dumps(rule)), copy.copy(rule)
    for s in scores[20:]:
        first = rule.decide(s).to_dict()
        assert first == again.decide(s).to_dict() == copied.decide(s).to_dict()
    # its numbers do not depend on how many labels there are
    assert rule.decide(np.zeros(9)).set_size == 2


def test_answers_move_a_rule() -> None:
    """Sets that wait for an answer count as asked: where few came, labels that are close are tied."""
    rule = RunnerUp(set_size=2, explore="rank")
    made = [rule.decide(scores=[2.0, 1.9, 1.0, 0.0]) for _ in range(50)]
    assert "groups" not in (made[-1].rule or {})
    rule.update(made[0], hit=True)
    assert "groups" in (rule.decide(scores=[2.0, 1.9, 1.0, 0.0]).rule or {})
    with pytest.raises(FeedbackError, match="decision of RunnerUp must be of this rule"):
        RunnerUp(set_size=2).update(made[1], hit=True)


def test_a_rule_takes_one_answer_to_a_decision() -> None:
    rule = RunnerUp(set_size=2)
    first, second = (rule.decide(scores=[2.0, 1.0, 0.0]) for _ in range(2))
    rule.update(first, hit=True)
    with pytest.raises(FeedbackError, match="decision of RunnerUp was answered before: round 0"):
        rule.update(first, hit=True)
    with pytest.raises(FeedbackError, match="hit of RunnerUp must be True or False, got 'no'"):
        rule.update(second, hit="no")  # type: ignore[arg-type]
    with pytest.raises(FeedbackError, match="decision of RunnerUp must be a Decision"):
        rule.update("yes", hit=True)  # type: ignore[arg-type]
    with pytest.raises(FeedbackError, match="must be of this rule"):
        rule.update(sa.Decision.given([1.0], labels=[0, 1]), hit=True)
    assert rule._core.kernel.state()["answers"].tolist() == [1.0]
    rule.update(second, hit=np.int64(0))  # type: ignore[arg-type]
    assert rule._core.kernel.state()["answers"].tolist() == [2.0]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda rule: pickle.loads(pickle.dumps(rule))])
@pytest.mark.parametrize("stored", [False, True])
def test_a_copied_rule_takes_answers_to_its_decisions(again: Any, stored: bool) -> None:
    rule = Cover(coverage=0.9, warm_up=0)
    decisions = [rule.decide(scores=[2.0, 1.0, 0.0, -1.0]) for _ in range(3)]
    rule.update(decisions[0], hit=True)
    copied = again(rule)
    for one in (rule, copied):
        for decision in decisions[1:]:
            one.update(sa.Decision.from_dict(decision.to_dict()) if stored else decision, hit=False)
        with pytest.raises(FeedbackError, match="answered before: round 0"):
            one.update(decisions[0], hit=True)
    assert copied.observed_coverage() == rule.observed_coverage()
    assert copied.observed_coverage().answers == 3


def test_what_it_refuses() -> None:
    rule = RunnerUp(set_size=2, labels=LABELS)
    with pytest.raises(InvalidInput, match="6 numbers, one a label"):
        rule.decide_many(scores=np.zeros((3, 5)))
    with pytest.raises(InvalidInput, match="finite"):
        rule.decide_many(scores=np.full((3, 6), np.nan))
    with pytest.raises(InvalidInput, match="scores of RunnerUp must be finite"):
        rule.decide(scores=[1e300, 0, 0, 0, 0, 0])
    with pytest.raises(InvalidInput, match=r"must be one row of numbers \(decide_many takes a matrix\)"):
        rule.decide(scores=np.zeros((3, 6)))
    with pytest.raises(InvalidInput, match=r"must be a matrix \(decide takes one row\)"):
        rule.decide_many(scores=np.zeros(6))
    for p, got in (([0, 0, 0, 0, 0, 0], "0.0"), ([0.9, 0.9, 0.2, 0, 0, 0], "2.0")):
        with pytest.raises(InvalidInput, match=f"must be 1 in sum for each row .* got {got}"):
            rule.decide_many(probabilities=np.array([[0.5, 0.5, 0, 0, 0, 0], p]))
    assert rule.decide(probabilities=[0.333, 0.333, 0.333, 0, 0, 0]).set_size == 2  # files have few digits
    for size, wanted in ((99, "at most 6, as there are labels"), (0, "a whole number of at least 1")):
        with pytest.raises(InvalidInput, match=f"set_size of RunnerUp must be {wanted}, got {size}"):
            rule.decide(scores=np.zeros(6), set_size=size)
    with pytest.raises(InvalidInput, match="set_size of Uniform must be at most 6"):
        sa.explore.Uniform(set_size=7).decide_many(scores=np.zeros((3, 6)))
    with pytest.raises(InvalidInput, match="set_size of Boltzmann must be 1"):
        sa.explore.Boltzmann().decide(scores=np.zeros(6), set_size=2)
    with pytest.raises(InvalidInput, match="eligible of RunnerUp must be distinct labels"):
        rule.decide(scores=np.zeros(6), eligible=[])
    with pytest.raises(InvalidInput, match="x of RunnerUp must be numbers"):
        rule.decide(scores=np.zeros(6), x=["a"])
    with pytest.raises(InvalidInput, match="x of RunnerUp must be 3 rows"):
        rule.decide_many(scores=np.zeros((3, 6)), x=np.zeros((2, 4)))


def test_what_a_rule_decides_can_be_logged(tmp_path: Any) -> None:
    """Rows as lists, arrays or with names: the log has them, and how probable the set was."""
    from superarm.logs import Log, Writer

    rule = RunnerUp(set_size=2, labels=LABELS)
    for x, kept in (([1, 2.5], [1.0, 2.5]), (np.array([1.0, 2.5]), [1.0, 2.5])):
        with Writer(tmp_path / "log.jsonl") as log:
            log.add(rule.decide(scores=np.arange(6.0), x=x), hit=np.int64(1))
        (record,) = Log(tmp_path / "log.jsonl")
        assert (record.decision.x.tolist(), record.hit) == (kept, True)
    with Writer(tmp_path / "log.jsonl") as log:
        log.add(rule.decide(scores=np.arange(6.0), x={"age": np.int64(41), "city": "Rome"}), hit=False)
    (record,) = Log(tmp_path / "log.jsonl")
    assert record.decision.x == {"age": 41, "city": "Rome"}
    assert record.decision.propensity > 0


def test_a_copy_for_label_numbers_keeps_the_state() -> None:
    rule = RunnerUp(set_size=2, labels=["ant", "bee", "cat"])
    rule.decide([1.0, 2.0, 3.0])
    copied = rule.without_label_names()
    assert (copied.labels, copied.round) == (None, 1)
    assert copied.distribution([1.0, 2.0, 3.0], eligible=[0, 1, 2]).eligible == (0, 1, 2)
    assert rule.decide([1.0, 2.0, 3.0]).labels[0] == "cat"
