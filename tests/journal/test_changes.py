"""What an operator changes while it runs: each change is an event, and a replay makes it again."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, replayed, sha256_of
from service_kit import LABELS, rows

from superarm.data.rows import Row
from superarm.errors import InvalidInput
from superarm.explore import RunnerUp
from superarm.service.requests import DecisionRequest, OutcomeRequest


def run_some(session, n, seed=0):
    shown = set()
    for i, x in enumerate(rows(n, seed)):
        entry = session.decide(DecisionRequest(x))
        shown |= set(entry.labels)
        session.outcome(OutcomeRequest(entry.id, hit=i % 3 == 0))
    return shown


def same_after_a_restart(session, drive, **options):
    model, totals = session.model_file(), session.counts()
    told = session.labels, session.disabled, session.frozen, session.changes()
    for from_start in (False, True):
        done = replayed(session, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(session)
    session.store.close()
    again = drive(**options)
    assert again.model_file() == model
    assert again.counts() == totals
    assert (again.labels, again.disabled, again.frozen, again.changes()) == told
    return again


def test_a_new_label_is_shown_and_survives_a_restart(drive):
    session = drive()
    run_some(session, 30)
    session.add_labels(["new", "newer"])
    assert session.labels == (*LABELS, "new", "newer")
    assert {"new", "newer"} <= run_some(session, 200, 1)
    entry = session.decide(DecisionRequest(rows(1)[0], "a"))
    session.outcome(OutcomeRequest("a", label="new"))
    assert entry.outcome["learnt"]
    again = same_after_a_restart(session, drive)
    assert [(change["what"], change["labels"]) for change in again.changes()] == [
        ("add_labels", ["new", "newer"])
    ]
    assert len(again.stats.by_label) == 8


def test_a_decision_from_before_a_new_label_can_still_be_answered(drive):
    session = drive()
    session.decide(DecisionRequest(rows(1)[0], "before"))
    session.add_labels(["new"])
    session.outcome(OutcomeRequest("before", hit=True))
    same_after_a_restart(session, drive)


def test_a_disabled_label_is_never_shown_again_and_answers_are_taken(drive):
    session = drive()
    old = session.decide(DecisionRequest(rows(1)[0], "old"))
    session.disable_labels(["label-1", "label-2"])
    assert not {"label-1", "label-2"} & run_some(session, 200)
    session.outcome(OutcomeRequest("old", label="label-1"))
    assert old.outcome["learnt"]
    # the world may still name it for a set that was made without it: then it was a miss
    session.decide(DecisionRequest(rows(1)[0], "late"))
    taken = session.outcome(OutcomeRequest("late", label="label-2")).outcome
    assert (taken["hit"], taken["label"], taken["learnt"]) == (False, "label-2", True)
    again = same_after_a_restart(session, drive)
    assert again.disabled == {"label-1", "label-2"}
    assert not {"label-1", "label-2"} & run_some(again, 50, 2)
    again.add_labels(["label-1"])
    assert "label-1" in run_some(again, 200, 3)


def test_eligible_labels_that_are_disabled_do_not_count(drive):
    session = drive()
    session.disable_labels(["label-1"])
    entry = session.decide(DecisionRequest(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3")))
    assert sorted(entry.labels) == ["label-2", "label-3"]
    assert (
        session.decide(DecisionRequest(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3"))).shown()
        == entry.shown()
    )
    # as without disabled labels: where fewer are eligible than a set has, all of them are shown
    assert session.decide(DecisionRequest(rows(1)[0], eligible=("label-1", "label-2"))).labels == ["label-2"]
    assert session.decide(DecisionRequest(rows(1)[0], eligible=("label-2",))).labels == ["label-2"]
    with pytest.raises(InvalidInput, match="not disabled"):
        session.decide(DecisionRequest(rows(1)[0], eligible=("label-1",)))


@pytest.mark.parametrize(
    ("what", "names", "message"),
    [
        ("add_labels", ["label-1"], "new, or disabled"),
        ("add_labels", ["x", "x"], "distinct"),
        ("add_labels", [], "at least one"),
        ("add_labels", [""], "distinct names"),
        ("disable_labels", ["label-9"], "known"),
        ("disable_labels", LABELS[:4], "leave more than the 2 shown"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_leaves_no_trace(drive, what, names, message):
    session = drive()
    with pytest.raises(InvalidInput, match=message):
        getattr(session, what)(names)
    assert session.seq == 0
    assert session.labels == tuple(LABELS)


def test_a_learner_whose_matrix_couples_all_labels_refuses_new_ones(drive):
    session = drive(learner="soba", set_size=1)
    session.decide(DecisionRequest(rows(1)[0]))
    with pytest.raises(InvalidInput, match="couples"):
        session.add_labels(["new"])
    assert session.outage is None
    assert replayed(session).same


def test_frozen_it_decides_and_keeps_answers_and_learns_nothing(drive):
    session = drive()
    run_some(session, 20)
    session.freeze()
    session.freeze()  # once is enough
    weights = bits(session.learner, "weights")
    run_some(session, 20, 1)
    assert bits(session.learner, "weights") == weights
    assert (session.stats.outcomes, session.stats.learnt) == (40, 20)
    session = same_after_a_restart(session, drive)
    assert session.frozen
    session.unfreeze()
    run_some(session, 20, 2)
    assert session.stats.learnt == 40
    assert [change["what"] for change in session.changes()] == ["freeze", "unfreeze"]
    same_after_a_restart(session, drive)


def test_exploration_can_be_changed_while_it_runs(drive):
    session = drive()
    run_some(session, 50)
    session.set_explore("show", uniform=0.0)
    assert session.learner.params["explore"] == "show"
    before = session.stats.explored
    run_some(session, 50, 1)
    few = session.stats.explored - before
    session.set_explore(uniform=0.9)
    run_some(session, 50, 2)
    assert session.stats.explored - before - few > few
    with pytest.raises(InvalidInput, match="uniform"):
        session.set_explore(uniform=7.0)
    with pytest.raises(InvalidInput, match="given, or uniform"):
        session.set_explore()
    same_after_a_restart(session, drive)


def test_a_learner_without_exploration_refuses(drive):
    session = drive(learner="mc-slp")
    with pytest.raises(InvalidInput, match="explore"):
        session.set_explore("show")
    assert session.seq == 0


def test_a_learner_that_showed_the_best_labels_explores(drive):
    session = drive(learner="perceptron")
    for i, x in enumerate(rows(5)):
        session.decide(DecisionRequest(x, f"before{i}"))
    session.set_explore("rank")
    for i, x in enumerate(rows(30, 1)):
        session.decide(DecisionRequest(x, f"after{i}"))
    session.outcome(OutcomeRequest("before0", label=LABELS[0]))
    session.outcome(OutcomeRequest("after0", label=LABELS[1]))
    assert session.learner.rule == RunnerUp(explore="rank")
    same_after_a_restart(session, drive, learner="perceptron")


def test_going_back_takes_the_weights_and_undoes_nothing_else(drive):
    session = drive()
    run_some(session, 40)
    session.snapshot()
    there = session.seq
    weights = session.learner.core.state()["weights.W"].copy()
    session.add_labels(["new"])
    session.set_explore("rank", 0.5)
    open_ = session.decide(DecisionRequest(rows(1)[0], "open"))
    run_some(session, 40, 1)
    round_, learnt = session.learner.round, session.stats.learnt
    session.rollback(there)
    assert np.array_equal(session.learner.core.state()["weights.W"][:6], weights)
    assert (session.learner.round, session.stats.learnt, len(session.labels)) == (round_, learnt, 7)
    assert [session.learner.params[name] for name in ("explore", "uniform")] == ["rank", 0.5]
    session.outcome(OutcomeRequest("open", hit=True))
    assert open_.body.round < round_
    with pytest.raises(InvalidInput, match="kept snapshot"):
        session.rollback(there + 1)
    session = same_after_a_restart(session, drive)
    run_some(session, 10, 3)
    same_after_a_restart(session, drive)


def test_the_snapshot_that_was_gone_back_to_is_kept_for_ever(drive):

    session = drive(keep_snapshots=1)
    for seed in range(4):
        run_some(session, 20, seed)
        session.snapshot()
    first = session.kept()[1]
    session.rollback(first)
    run_some(session, 20, 9)
    session.snapshot()
    assert first in session.kept()
    assert len(session.kept()) == 3  # the first, the pinned and the newest
    assert replayed(session, from_start=True).same


def test_going_back_before_the_first_row_undoes_no_exploring(drive):
    session = drive(n_features=None)
    session.set_explore("rank", 0.5)
    session.rollback(0)
    assert [session.learner.params[name] for name in ("explore", "uniform")] == ["rank", 0.5]
    run_some(session, 10)
    same_after_a_restart(session, drive)


@pytest.mark.parametrize("sparse", [False, True])
def test_going_back_to_the_very_beginning_keeps_the_kind_of_rows(drive, sparse):
    session = drive()
    row = Row(sparse=([1, 3], [0.5, 2.0]), width=5)
    x = row if sparse else rows(1)[0]
    session.decide(DecisionRequest(x, "a"))
    session.rollback(0)
    session.decide(DecisionRequest(rows(1)[0] if sparse else row, "b"))
    session.outcome(OutcomeRequest("a", hit=True))
    session.outcome(OutcomeRequest("b", hit=False))
    assert (session.learner.inputs.layout.n_sparse > 0) is sparse
    same_after_a_restart(session, drive)


def test_changes_are_refused_while_the_journal_is_down(drive):
    from superarm.journal.errors import JournalUnavailable

    session = drive()
    session.store._writer.execute("PRAGMA query_only = ON")
    changes = (session.freeze, lambda: session.add_labels(["new"]), lambda: session.rollback(0))
    for change in changes:
        with pytest.raises(JournalUnavailable):
            change()
        session.recover()
        assert (session.frozen, session.labels, session.changes()) == (False, tuple(LABELS), [])
        session.store._writer.execute("PRAGMA query_only = ON")


def test_snapshots_say_what_made_them(drive):
    import superarm

    session = drive()
    (first,) = session.store.snapshots()
    assert (first.seq, first.made_by["superarm"]) == (0, superarm.__version__)
    assert first.made_by["cpu"]
