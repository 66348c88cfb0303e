"""Deciding at a cursor: a pure function of model, row and cursor; advance makes up for it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.checks.helpers import state_bytes
from superarm.errors import InvalidInput, WeightsOverflow

LABELS = ["ant", "bee", "cat", "dog", "eel"]


def rows(n: int = 40) -> Any:
    return np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)


def test_a_cursor_is_a_value() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.decide(rows()[0])
    cursor = learner.cursor()
    assert cursor.round == 1
    other = sa.Cursor(cursor.round, cursor.draw_state)
    assert other == cursor == copy.copy(cursor)
    learner.decide(rows()[1], cursor=other)
    assert (other.round, cursor.round, learner.round) == (2, 1, 1)
    assert other != cursor
    again = learner.decide(rows()[1], cursor=cursor)
    assert again.to_dict() == learner.decide(rows()[1]).to_dict()


def test_many_may_decide_ahead_and_answers_come_later() -> None:
    """A process that decides with an older model, and one that learns: in the order of events, the same."""
    usual, learner = (sa.SetLogit(labels=LABELS, set_size=2, seed=3) for _ in range(2))
    learner.id = usual.id
    for start in range(0, 40, 8):
        cursor, part = learner.cursor(), rows()[start : start + 8]
        ahead = [learner.decide(x, cursor=cursor) for x in part]
        expected = [usual.decide(x) for x in part]
        assert [d.to_dict() for d in ahead] == [d.to_dict() for d in expected]
        stored = [sa.Decision.from_dict(d.to_dict()) for d in ahead]
        for decision in stored:
            learner.advance(decision)
        hits = [i % 3 == 0 for i in range(8)]
        assert learner.update_many(stored, hits) == 8
        for decision, hit in zip(expected, hits, strict=True):
            usual.update(decision, hit=hit)
    assert state_bytes(usual) == state_bytes(learner)
    assert usual.cursor() == learner.cursor()


KINDS: list[Any] = [[1.0, 2.0], ([1], [1.0]), {"age": 41, "city": "Rome"}, sa.Row([1.0], ([0], [1.0]))]


@pytest.mark.parametrize("x", KINDS)
def test_deciding_at_a_cursor_fixes_nothing(x: Any) -> None:
    usual, learner = (sa.SetLogit(labels=LABELS, set_size=2, seed=3) for _ in range(2))
    learner.id = usual.id
    cursor = learner.cursor()
    decision = learner.decide(x, cursor=cursor)
    assert learner.core is None
    assert (learner.inputs.layout, learner.columns, learner.n_features, learner.round) == (
        None,
        None,
        None,
        0,
    )
    assert decision.to_dict() == usual.decide(x).to_dict()
    learner.advance(sa.Decision.from_dict(decision.to_dict()))
    assert learner.inputs.layout == usual.inputs.layout
    assert state_bytes(learner) == state_bytes(usual)
    learner.update(decision, hit=True)


def test_new_names_wait_for_the_order_of_events() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.decide({"age": 41})
    cursor = learner.cursor()
    first, second = (learner.decide({name: 1.0}, cursor=cursor) for name in ("income", "zip"))
    assert learner.columns.names == ["age"]
    for decision in (second, first):
        learner.advance(decision)
    assert learner.columns.names == ["age", "zip", "income"]
    for decision in (first, second):
        learner.update(decision, hit=False)


def test_what_is_no_cursor_or_no_decision_of_its_own() -> None:
    learner, other = sa.SetLogit(labels=LABELS, set_size=2), sa.Perceptron(labels=LABELS, set_size=2)
    x = rows()[0]
    for cursor in (3, other.cursor()):
        with pytest.raises(InvalidInput, match="cursor of SetLogit must be one of this learner"):
            learner.decide(x, cursor=cursor)
    assert learner.core is None
    for decision in (None, other.decide(x), sa.Decision.given(x, ["ant"])):
        with pytest.raises(InvalidInput, match="decision of SetLogit must be its own"):
            learner.advance(decision)


def test_an_example_row_is_taken() -> None:
    for n_features in (None, 3, (2, 5)):
        learner = sa.SetLogit(labels=LABELS, n_features=n_features)
        learner.decide(learner.inputs.example_row())
    for x in ([1.0, 2.0], ([3], [1.0]), {"age": 3}, sa.Row([1.0], ([0], [1.0]), 9)):
        learner = sa.SetLogit(labels=LABELS)
        learner.decide(x)
        learner.decide(learner.inputs.example_row())


def test_a_likelihood_for_every_label() -> None:
    """A set and a bit, a label, and a likelihood say the same where they say the same."""
    by_bit, by_label, one, two = (sa.SetLogit(labels=LABELS, set_size=2, seed=1) for _ in range(4))
    for x in rows():
        decision = one.decide(x)
        inside = np.array([label in decision.labels for label in LABELS], float)
        one.update(decision, likelihood=inside)
        by_bit.update(by_bit.decide(x), hit=True)
        two.update(two.decide(x), likelihood=[0, 0, 2.5, 0, 0])
        by_label.update(by_label.decide(x), label="cat")
    np.testing.assert_allclose(one.scores(rows()), by_bit.scores(rows()), atol=1e-3)
    np.testing.assert_allclose(two.scores(rows()), by_label.scores(rows()), atol=1e-3)
    decision = one.decide(rows()[0])
    for wrong in ([1.0], [0.0] * 5, [-1.0, 1, 1, 1, 1], [np.nan] * 5, "abc"):
        with pytest.raises(sa.errors.FeedbackError, match="likelihood of SetLogit must be 5 numbers"):
            one.update(decision, likelihood=wrong)
    with pytest.raises(sa.errors.FeedbackError, match="feedback of SetLogit"):
        one.update(decision, hit=True, likelihood=[1.0] * 5)
    bandit = sa.Banditron(labels=LABELS)
    with pytest.raises(sa.errors.FeedbackError, match=r"feedback of Banditron must be hit=\.\.\."):
        bandit.update(bandit.decide(rows()[0]), likelihood=[1.0] * 5)


def test_other_parameters_and_all_that_was_learnt() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2, seed=1)
    open_ = [learner.decide(x) for x in rows()]
    for decision in open_[:30]:
        learner.update(decision, hit=True)
    other = learner.with_params(explore="show", false_no=0.1)
    assert (other.explore, other.false_no, other.id, other.round) == ("show", 0.1, learner.id, 40)
    assert np.array_equal(other.scores(rows()), learner.scores(rows()))
    other.update(open_[30], hit=False)
    with pytest.raises(sa.errors.FeedbackError, match="was answered before"):
        other.update(open_[3], hit=False)
    with pytest.raises(InvalidInput, match="gamma of SetLogit must be one of its parameters"):
        learner.with_params(gamma=0.1)


@pytest.mark.parametrize("named", [False, True])
def test_old_weights_in_the_present(named: bool, tmp_path: Any) -> None:
    def row(i: int) -> Any:
        return {f"c{i % 3}": float(i), "word": "ab"[i % 2]} if named else rows()[i]

    learner = sa.SetLogit(labels=LABELS, set_size=2, seed=1)
    learner.save(tmp_path / "new.npz")
    for i in range(10):
        learner.update(learner.decide(row(i)), hit=i % 2 == 0)
    learner.save(tmp_path / "old.npz")
    learner.add_labels(["fox"])
    late = [learner.decide(row(i)) for i in range(10, 20)]
    learner.update(late[0], hit=True)
    for name in ("old.npz", "new.npz"):
        snapshot = sa.load(tmp_path / name)
        before = (snapshot.round, snapshot.labels, snapshot.answered.count)
        back = learner.resume_from_snapshot(snapshot)
        assert (snapshot.round, snapshot.labels, snapshot.answered.count) == before
        assert (back.round, back.labels, back.id) == (20, learner.labels, learner.id)
        assert back.answered.count == learner.answered.count
        for decision in late[1:]:
            back.update(decision, hit=False)
        with pytest.raises(sa.errors.FeedbackError, match="was answered before"):
            back.update(late[0], hit=True)
        assert back.decide(row(20)).round == 20


def test_labels_added_before_the_first_row_are_decided_among() -> None:
    """A core that was made to decide at a cursor does not outlive the labels it was made for."""
    learner = sa.Perceptron(labels=["a", "b"])
    learner.decide([1.0, 0.0], cursor=learner.cursor())
    learner.add_labels(["c", "d"])
    assert learner.decide([1.0, 0.0], eligible=["d"], cursor=learner.cursor()).labels == ["d"]
    learner.id = "another"
    assert learner.decide([1.0, 0.0], cursor=learner.cursor()).learner == "another"


def test_the_first_texts_at_a_cursor_share_a_core(monkeypatch: Any) -> None:
    """Until the learner itself has seen a text, or learnt something else."""
    learner, built = sa.SetLogit(labels=LABELS, set_size=2, seed=1), []
    learner.update(learner.decide({"age": 1.0}), hit=True)
    make = type(learner).make_core
    monkeypatch.setattr(type(learner), "make_core", lambda *args: built.append(1) or make(*args))
    cursor, open_decision = learner.cursor(), learner.decide({"age": 3.0})
    for i in range(5):
        learner.decide({"age": 2.0, "text": f"card {i} not working at all"}, cursor=cursor)
    assert len(built) == 1
    learner.update(open_decision, hit=True)
    text = {"age": 2.0, "text": "card not working at all"}
    now = learner.decide(text, cursor=learner.cursor())
    assert len(built) == 2
    assert now.to_dict() == learner.decide(text).to_dict()


def test_a_decision_counts_once(tmp_path: Path) -> None:
    """However it came: made here, or taken with `advance`, in any order, also after save and load."""
    usual, learner = (sa.SetLogit(labels=LABELS, set_size=2, seed=3) for _ in range(2))
    learner.id = usual.id
    decisions = [usual.decide(x) for x in rows(6)]
    own = learner.decide(rows()[0])
    for number in (4, 1):
        learner.advance(decisions[number])
    before = state_bytes(learner)
    for again in (own, decisions[4], decisions[1]):
        with pytest.raises(
            InvalidInput, match="decision of SetLogit must be one that it has not made or taken"
        ):
            learner.advance(again)
    assert state_bytes(learner) == before
    learner.save(tmp_path / "model.npz")
    for copied in (
        sa.load(tmp_path / "model.npz"),
        copy.deepcopy(learner),
        learner.with_params(false_no=0.0),
    ):
        assert copied.round == 5
        for number in (3, 2, 5):
            copied.advance(decisions[number])
        assert copied.cursor() == usual.cursor()
        for number in range(6):
            with pytest.raises(InvalidInput, match="has not made or taken before"):
                copied.advance(decisions[number])


def test_a_refused_update_in_the_fused_loop_leaves_what_single_calls_leave():
    X = np.ones((2, 2), np.float32)
    fused, single = (sa.Softmax(n_labels=4, n_features=2, step=6e14) for _ in range(2))
    with pytest.raises(WeightsOverflow, match="the update of round 1 would overflow"):
        fused.run(X, [0, 1])
    for x, y in zip(X, [0, 1], strict=True):
        decision = single.decide(x)
        if y == 0:
            single.update(decision, label=0)
    assert fused.cursor() == single.cursor()
    assert (fused.answered.count, fused.round) == (single.answered.count, single.round) == (1, 2)
