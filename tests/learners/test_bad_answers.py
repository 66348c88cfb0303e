"""Answers, decisions and numbers that do not fit are refused before compiled code reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.checks.helpers import state_bytes
from superarm.decisions.decisions import Decisions
from superarm.errors import FeedbackError, InvalidInput
from superarm.explore import Boltzmann, Cover

# ---------------------------------------------------------------- decisions from a frame


def test_rows_of_another_width_are_refused() -> None:
    learner = sa.SetLogit(n_labels=3, n_features=64)
    frame = learner.decide_many(np.ones((2, 64))).to_frame()
    narrow = frame.with_columns(x=pl.Series([[1.0, 2.0]] * 2, dtype=pl.Array(pl.Float32, 2)))
    before = state_bytes(learner)
    with pytest.raises(FeedbackError, match="rows with 64 features, got Rows\\(2 x 2\\)"):
        learner.update_many(Decisions.from_frame(narrow, learner.vocabulary), [True, False])
    assert state_bytes(learner) == before


@pytest.mark.parametrize(
    "change",
    [
        {"x_indices": pl.Series([[0, 99]] * 2, dtype=pl.List(pl.Int32))},
        {"x_values": pl.Series([[1.0]] * 2, dtype=pl.List(pl.Float32))},
        {"drawn": pl.Series([[0, 1], [0]], dtype=pl.List(pl.Int64))},
    ],
)
def test_a_frame_whose_columns_do_not_fit_together_is_refused(change: dict[str, Any]) -> None:
    learner = sa.SetLogit(n_labels=3, n_features=9, set_size=2)
    frame = learner.decide_many(csr_matrix(([1.0] * 4, ([0, 0, 1, 1], [0, 5, 1, 8])), (2, 9))).to_frame()
    with pytest.raises(InvalidInput):
        Decisions.from_frame(frame.with_columns(**change), learner.vocabulary)


def test_a_draw_log_that_is_cut_short_moves_no_promise() -> None:
    learner = sa.SetLogit(n_labels=4, n_features=2, explore=Cover(coverage=0.9, warm_up=0))
    frame = learner.decide_many(np.ones((2, 2))).to_frame()
    frame = frame.with_columns(draw_log=pl.Series([[0.25, 1.0]] * 2, dtype=pl.List(pl.Float64)))
    assert learner.update_many(Decisions.from_frame(frame, learner.vocabulary), [True, False]) == 2
    assert learner.coverage is not None
    assert learner.coverage.answers == 0.0
    assert learner.core.state()["rule.targets"].tolist()[1:3] == [0.0, 0.0]


def test_a_decision_after_the_last_save_is_named_so(tmp_path: Path) -> None:
    learner = sa.SetLogit(n_labels=3, n_features=2)
    learner.decide([1.0, 0.0])
    learner.save(tmp_path / "m.npz")
    late, copy = learner.decide_many(np.ones((2, 2))), sa.load(tmp_path / "m.npz")
    message = "must be made before this model was saved, got round 2; the model is at round 1"
    for decisions in (late, list(late)):
        with pytest.raises(FeedbackError, match=message):
            copy.update_many(decisions, [None, True])
    copy.decide([1.0, 0.0])
    assert copy.update(late[0], hit=True) is None  # as docs/how-to.md warns: the round was used twice


# ---------------------------------------------------------------- a rule that was replaced


@pytest.mark.parametrize(
    "how", ["update", "after its record was made", "list", "columns", "stored", "frame", "one of a frame"]
)
def test_a_decision_of_a_rule_that_was_replaced_does_not_move_the_new_one(how: str) -> None:
    learner = sa.SetLogit(n_labels=40, n_features=2, explore=Boltzmann())
    decisions = learner.decide_many([[1.0, 2.0]])
    decision = decisions[0]
    changed = learner.with_params(explore=Cover(coverage=0.9, warm_up=0))
    if how == "after its record was made":
        assert decision.rule is not None
    if how == "stored":
        decision = sa.Decision.from_dict(decision.to_dict())
    if how in ("frame", "one of a frame"):
        decisions = Decisions.from_frame(decisions.to_frame(), learner.vocabulary)
        decision = decisions[:][0]
    if how in ("columns", "frame"):
        changed.update_many(decisions, [False])
    elif how == "list":
        changed.update_many([decision], [False])
    else:
        changed.update(decision, hit=False)
    assert changed.round == 1
    assert 0 in changed.answered
    assert changed.coverage_at(None).answers == 0.0
    assert changed.core.state()["rule.targets"].tolist()[1:3] == [0.0, 0.0]


def test_of_decisions_by_several_rules_each_rule_reads_its_own() -> None:
    """A frame may hold decisions of before and after the rule was replaced."""
    first = sa.SetLogit(n_labels=40, n_features=2, explore=Boltzmann())
    before = first.decide_many([[1.0, 2.0]])
    now = first.with_params(explore=Cover(coverage=0.9, warm_up=0))
    after = now.decide_many([[1.0, 2.0], [2.0, 1.0]])
    twin = now.with_params()
    stored = Decisions.from_frame(pl.concat([before.to_frame(), after.to_frame()]), first.vocabulary)
    assert [decision.rule for decision in stored] == [decision.rule for decision in (*before, *after)]
    assert now.update_many(stored, [False, True, False]) == 3
    twin.update_many(before, [False])
    twin.update_many(after, [True, False])
    assert state_bytes(now) == state_bytes(twin)
    assert now.coverage is not None
    assert now.coverage.answers == 2.0
    assert stored.to_frame().equals(Decisions.from_frame(stored.to_frame(), first.vocabulary).to_frame())


def test_a_frame_without_the_rules_is_refused() -> None:
    """It could not be told whose draw logs these are."""
    learner = sa.SetLogit(n_labels=4, n_features=2)
    with pytest.raises(InvalidInput, match="no rule"):
        Decisions.from_frame(learner.decide_many(np.ones((2, 2))).to_frame().drop("rule"), learner.vocabulary)


# ---------------------------------------------------------------- hits and labels


@pytest.mark.parametrize("hits", [np.zeros((3, 2), bool), [[True], [False], [True]], True, np.array(True), 1])
def test_hits_that_are_no_list_are_refused(hits: Any) -> None:
    learner = sa.SetLogit(n_labels=5, n_features=2, set_size=2)
    decisions = learner.decide_many(np.ones((3, 2)))
    before = state_bytes(learner)
    with pytest.raises(FeedbackError, match="hits of SetLogit must be"):
        learner.update_many(decisions, hits)
    assert state_bytes(learner) == before


@pytest.mark.parametrize(
    ("y", "order"), [([0.5, 1.7], None), ([0, 1], [0.9, 1.2]), (np.array([0, np.nan]), None)]
)
def test_indices_of_a_run_must_be_whole(y: Any, order: Any) -> None:
    learner = sa.SetLogit(n_labels=3, n_features=2)
    with pytest.raises(InvalidInput, match=r"must be (label|row) indices"):
        learner.run(np.ones((2, 2)), y, order)
    assert learner.run(np.ones((2, 2)), [0.0, 1.0], np.array([1.0, 0.0]))[3] == 2


# ---------------------------------------------------------------- what changes nothing


FIRST_ROWS = {"numbers": [1.0, 2.0, 3.0], "names": {"age": 3, "text": "a card that does not work"}}


@pytest.mark.parametrize("row", FIRST_ROWS.values(), ids=list(FIRST_ROWS))
def test_a_prediction_before_the_first_row_fixes_nothing(row: Any) -> None:
    learner = sa.SetLogit(n_labels=3, seed=1)
    ranks = learner.rank(row)
    assert learner.predict([row])[0] in ranks
    assert learner.predict_proba([row]).tolist() == [[1 / 3] * 3]
    assert (learner.core, learner.n_features, learner.columns) == (None, None, None)
    assert learner.decide([1.0, 2.0]).round == 0


def test_a_failed_prediction_or_run_fixes_nothing() -> None:
    learner = sa.SetLogit(n_labels=3)
    bad = np.array([[np.inf, 1, 2]], np.float32)
    with pytest.raises(InvalidInput, match="x of SetLogit must be finite"):
        learner.predict(bad)
    with pytest.raises(InvalidInput, match="x of SetLogit must be finite"):
        learner.run(bad, [0])
    with pytest.raises(InvalidInput, match="y of SetLogit"):
        learner.run([[1.0, 2.0, 3.0]], ["ant"])
    assert (learner.core, learner.n_features) == (None, None)
    learner.run([[1.0, 2.0]], [0])
    assert (learner.round, learner.n_features) == (1, 2)


def test_a_rule_of_single_labels_shows_no_more() -> None:
    learner = sa.SetLogit(n_labels=5, n_features=2, explore=Boltzmann())
    for ask in (
        lambda: learner.decide([1.0, 2.0], set_size=3),
        lambda: learner.decide_many([[1.0, 2.0]], set_size=3),
    ):
        with pytest.raises(InvalidInput, match=r"set_size of SetLogit must be 1 .*, got 3"):
            ask()
    assert learner.set_size == len(learner.decide([1.0, 2.0]).labels) == 1


def test_labels_are_added_by_add_labels_alone() -> None:
    learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    learner.decide([1.0, 2.0])
    for n_labels in (3, 6):
        with pytest.raises(
            InvalidInput, match="n_labels of SetLogit must be left at 4: add_labels adds some"
        ):
            learner.with_params(n_labels=n_labels)
    assert learner.with_params(labels=list("abcd")).labels == tuple("abcd")
