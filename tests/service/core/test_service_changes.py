"""What an operator changes while it runs: each change is an event, and a replay makes it again."""

from __future__ import annotations

import numpy as np
import pytest
from service_kit import LABELS, rows, sha256_of

from superarm.rows import SparseRow
from superarm.service.core.faults import Refused
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply


def run_some(session, n, seed=0):
    shown = set()
    for i, x in enumerate(rows(n, seed)):
        entry = session.decide(Ask(x))
        shown |= set(entry.body["labels"])
        session.outcome(Reply(entry.place.id, hit=i % 3 == 0))
    session.commit()
    return shown


def same_after_a_restart(session, open_session, **options):
    session.commit()
    model, totals = session.model_file(), session.stats.to_dict()
    told = session.labels, session.retired, session.frozen, session.changes()
    for from_start in (False, True):
        done = replay(session.journal, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(session)
    session.journal.close()
    again = open_session(**options)
    assert again.model_file() == model
    assert again.stats.to_dict() == totals
    assert (again.labels, again.retired, again.frozen, again.changes()) == told
    return again


def test_a_new_label_is_shown_and_survives_a_restart(open_session):
    session = open_session()
    run_some(session, 30)
    session.add_labels(["new", "newer"])
    assert session.labels == (*LABELS, "new", "newer")
    assert {"new", "newer"} <= run_some(session, 200, 1)
    entry = session.decide(Ask(rows(1)[0], "a"))
    session.outcome(Reply("a", label="new"))
    assert entry.outcome["learnt"]
    again = same_after_a_restart(session, open_session)
    assert [(change["what"], change["labels"]) for change in again.changes()] == [
        ("add_labels", ["new", "newer"])
    ]
    assert len(again.stats.shown) == 8


def test_a_decision_from_before_a_new_label_can_still_be_answered(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], "before"))
    session.add_labels(["new"])
    session.outcome(Reply("before", hit=True))
    same_after_a_restart(session, open_session)


def test_a_retired_label_is_never_shown_again_and_answers_are_taken(open_session):
    session = open_session()
    old = session.decide(Ask(rows(1)[0], "old"))
    session.retire_labels(["label-1", "label-2"])
    assert not {"label-1", "label-2"} & run_some(session, 200)
    session.outcome(Reply("old", label="label-1"))
    assert old.outcome["learnt"]
    # the world may still name it for a set that was made without it: then it was a miss
    session.decide(Ask(rows(1)[0], "late"))
    taken = session.outcome(Reply("late", label="label-2")).outcome
    assert (taken["hit"], taken["label"], taken["learnt"]) == (False, "label-2", True)
    again = same_after_a_restart(session, open_session)
    assert again.retired == {"label-1", "label-2"}
    assert not {"label-1", "label-2"} & run_some(again, 50, 2)
    again.add_labels(["label-1"])
    assert "label-1" in run_some(again, 200, 3)


def test_eligible_labels_that_are_retired_do_not_count(open_session):
    session = open_session()
    session.retire_labels(["label-1"])
    entry = session.decide(Ask(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3")))
    assert sorted(entry.body["labels"]) == ["label-2", "label-3"]
    assert session.decide(Ask(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3"))) is entry
    # as without retired labels: where fewer are eligible than a set has, all of them are shown
    assert session.decide(Ask(rows(1)[0], eligible=("label-1", "label-2"))).body["labels"] == ["label-2"]
    assert session.decide(Ask(rows(1)[0], eligible=("label-2",))).body["labels"] == ["label-2"]
    with pytest.raises(Refused, match="not retired"):
        session.decide(Ask(rows(1)[0], eligible=("label-1",)))


@pytest.mark.parametrize(
    ("what", "names", "message"),
    [
        ("add_labels", ["label-1"], "new, or retired"),
        ("add_labels", ["x", "x"], "distinct"),
        ("add_labels", [], "at least one"),
        ("add_labels", [""], "distinct names"),
        ("retire_labels", ["label-9"], "known"),
        ("retire_labels", LABELS[:4], "more than 2 are left"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_leaves_no_trace(open_session, what, names, message):
    session = open_session()
    with pytest.raises(Refused, match=message):
        getattr(session, what)(names)
    assert session.journal.seq == 0
    assert session.labels == tuple(LABELS)


def test_a_learner_whose_matrix_couples_all_labels_refuses_new_ones(open_session):
    session = open_session(learner="soba", set_size=1)
    session.decide(Ask(rows(1)[0]))
    with pytest.raises(Refused, match="couples"):
        session.add_labels(["new"])
    session.commit()
    assert session.down is None
    assert replay(session.journal).same


def test_frozen_it_decides_and_keeps_answers_and_learns_nothing(open_session):
    session = open_session()
    run_some(session, 20)
    session.freeze()
    session.freeze()  # once is enough
    weights = session.learner.state.weights.W.copy()
    run_some(session, 20, 1)
    assert np.array_equal(session.learner.state.weights.W, weights)
    assert (session.stats.outcomes, session.stats.learnt) == (40, 20)
    session = same_after_a_restart(session, open_session)
    assert session.frozen
    session.resume()
    run_some(session, 20, 2)
    assert session.stats.learnt == 40
    assert [change["what"] for change in session.changes()] == ["freeze", "resume"]
    same_after_a_restart(session, open_session)


def test_exploration_can_be_changed_while_it_runs(open_session):
    session = open_session()
    run_some(session, 50)
    session.set_explore("show", uniform=0.0)
    assert session.learner.params["explore"] == "show"
    before = session.stats.explored
    run_some(session, 50, 1)
    few = session.stats.explored - before
    session.set_explore(uniform=0.9)
    run_some(session, 50, 2)
    assert session.stats.explored - before - few > few
    with pytest.raises(Refused, match="uniform"):
        session.set_explore(uniform=7.0)
    with pytest.raises(Refused, match="given, or uniform"):
        session.set_explore()
    same_after_a_restart(session, open_session)


def test_a_learner_without_exploration_refuses(open_session):
    session = open_session(learner="perceptron")
    with pytest.raises(Refused, match="explore"):
        session.set_explore("show")
    assert session.journal.seq == 0


def test_going_back_takes_the_weights_and_undoes_nothing_else(open_session):
    session = open_session()
    run_some(session, 40)
    session.snapshot()
    session.commit()
    there = session.journal.seq
    weights = session.learner.state.weights.W.copy()
    session.add_labels(["new"])
    open_ = session.decide(Ask(rows(1)[0], "open"))
    run_some(session, 40, 1)
    round_, learnt = session.learner.round, session.stats.learnt
    session.go_back(there)
    assert np.array_equal(session.learner.state.weights.W[:6], weights)
    assert (session.learner.round, session.stats.learnt, len(session.labels)) == (round_, learnt, 7)
    session.outcome(Reply("open", hit=True))
    assert open_.body["round"] < round_
    with pytest.raises(Refused, match="kept snapshot"):
        session.go_back(there + 1)
    session = same_after_a_restart(session, open_session)
    run_some(session, 10, 3)
    same_after_a_restart(session, open_session)


def test_the_snapshot_that_was_gone_back_to_is_kept_for_ever(open_session):
    from superarm.service.core.archive import Compaction

    session = open_session(keep_snapshots=1)
    for seed in range(4):
        run_some(session, 20, seed)
        session.snapshot()
        session.commit()
    first = session.journal.snapshots()[1]
    session.go_back(first)
    run_some(session, 20, 9)
    session.snapshot()
    session.commit()
    work = Compaction(session.journal, 1)
    work.write()
    while work.step():
        session.commit()
    session.commit()
    assert first in session.journal.snapshots()
    assert len(session.journal.snapshots()) == 3  # the first, the pinned and the newest
    assert replay(session.journal, from_start=True).same


@pytest.mark.parametrize("sparse", [False, True])
def test_going_back_to_the_very_beginning_keeps_the_kind_of_rows(open_session, sparse):
    session = open_session()
    row = SparseRow(np.array([1, 3], np.int32), np.array([0.5, 2.0], np.float32), 5)
    x = row if sparse else rows(1)[0]
    session.decide(Ask(x, "a"))
    session.commit()
    session.go_back(0)
    session.decide(Ask(rows(1)[0] if sparse else row, "b"))
    session.outcome(Reply("a", hit=True))
    session.outcome(Reply("b", hit=False))
    assert session.learner.sparse is sparse
    same_after_a_restart(session, open_session)


def test_changes_are_refused_while_the_journal_is_down(open_session):
    from superarm.service.core.faults import JournalDown

    session = open_session()
    session.journal.writer.execute("PRAGMA query_only = ON")
    changes = (session.freeze, lambda: session.add_labels(["new"]), lambda: session.go_back(0))
    for change in changes:
        with pytest.raises(JournalDown):  # noqa: PT012  (the change itself may fail, or its commit)
            change()
            session.commit()
        session.recover()
        assert (session.frozen, session.labels, session.changes()) == (False, tuple(LABELS), [])
        session.journal.writer.execute("PRAGMA query_only = ON")


def test_snapshots_say_what_made_them(open_session):
    import numba

    import superarm

    session = open_session()
    (first,) = session.snapshots()
    assert (first["seq"], first["superarm"], first["numba"]) == (0, superarm.__version__, numba.__version__)
    assert first["cpu"]
