"""What an operator changes while it runs: each change is an event, and a replay makes it again."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, replayed, sha256_of
from service_kit import LABELS, rows

from superarm.data.rows import Row
from superarm.errors import InvalidInput
from superarm.explore import RunnerUp
from superarm.service import DecisionRequest, OutcomeRequest


def run_some(driver, n, seed=0):
    """Decide and answer; return the labels that were shown."""
    made = driver.run(n, f"{seed}.", hits=lambda i: i % 3 == 0, seed=seed)
    return {label for decision in made for label in decision.labels}


def same_after_a_restart(driver, drive, **options):
    model, totals = driver.model_file(), driver.counts()
    settings = driver.labels, driver.disabled, driver.frozen, driver.changes()
    for from_start in (False, True):
        done = replayed(driver, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(driver)
    driver.store.close()
    again = drive(**options)
    assert again.model_file() == model
    assert again.counts() == totals
    assert (again.labels, again.disabled, again.frozen, again.changes()) == settings
    return again


def test_a_new_label_is_shown_and_survives_a_restart(drive):
    driver = drive()
    run_some(driver, 30)
    driver.add_labels(["new", "newer"])
    assert driver.labels == (*LABELS, "new", "newer")
    assert {"new", "newer"} <= run_some(driver, 200, 1)
    entry = driver.decide(DecisionRequest(rows(1)[0], "a"))
    driver.outcome(OutcomeRequest("a", label="new"))
    assert entry.outcome["learnt"]
    again = same_after_a_restart(driver, drive)
    assert [(change["what"], change["labels"]) for change in again.changes()] == [
        ("add_labels", ["new", "newer"])
    ]
    assert len(again.stats.by_label) == 8


def test_a_decision_from_before_a_new_label_can_still_be_answered(drive):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "before"))
    driver.add_labels(["new"])
    driver.outcome(OutcomeRequest("before", hit=True))
    same_after_a_restart(driver, drive)


def test_a_disabled_label_is_never_shown_again_and_answers_are_taken(drive):
    driver = drive()
    old = driver.decide(DecisionRequest(rows(1)[0], "old"))
    driver.disable_labels(["label-1", "label-2"])
    assert not {"label-1", "label-2"} & run_some(driver, 200)
    driver.outcome(OutcomeRequest("old", label="label-1"))
    assert old.outcome["learnt"]
    # the world may still name it for a set that was made without it: then it was a miss
    driver.decide(DecisionRequest(rows(1)[0], "late"))
    taken = driver.outcome(OutcomeRequest("late", label="label-2")).outcome
    assert (taken["hit"], taken["label"], taken["learnt"]) == (False, "label-2", True)
    again = same_after_a_restart(driver, drive)
    assert again.disabled == {"label-1", "label-2"}
    assert not {"label-1", "label-2"} & run_some(again, 50, 2)
    again.add_labels(["label-1"])
    assert "label-1" in run_some(again, 200, 3)


def test_eligible_labels_that_are_disabled_do_not_count(drive):
    driver = drive()
    driver.disable_labels(["label-1"])
    entry = driver.decide(DecisionRequest(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3")))
    assert sorted(entry.labels) == ["label-2", "label-3"]
    assert (
        driver.decide(DecisionRequest(rows(1)[0], "a", eligible=("label-1", "label-2", "label-3"))).shown()
        == entry.shown()
    )
    # as without disabled labels: where fewer are eligible than a set has, all of them are shown
    assert driver.decide(DecisionRequest(rows(1)[0], eligible=("label-1", "label-2"))).labels == ["label-2"]
    assert driver.decide(DecisionRequest(rows(1)[0], eligible=("label-2",))).labels == ["label-2"]
    with pytest.raises(InvalidInput, match="not disabled"):
        driver.decide(DecisionRequest(rows(1)[0], eligible=("label-1",)))


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
    driver = drive()
    with pytest.raises(InvalidInput, match=message):
        getattr(driver, what)(names)
    assert driver.seq == 0
    assert driver.labels == tuple(LABELS)


def test_a_learner_whose_matrix_couples_all_labels_refuses_new_ones(drive):
    driver = drive(learner="soba", set_size=1)
    driver.decide(DecisionRequest(rows(1)[0]))
    with pytest.raises(InvalidInput, match="couples"):
        driver.add_labels(["new"])
    assert driver.outage is None
    assert replayed(driver).same


def test_frozen_it_decides_and_keeps_answers_and_learns_nothing(drive):
    driver = drive()
    run_some(driver, 20)
    driver.freeze()
    driver.freeze()  # once is enough
    weights = bits(driver.learner, "weights")
    run_some(driver, 20, 1)
    assert bits(driver.learner, "weights") == weights
    assert (driver.stats.outcomes, driver.stats.learnt) == (40, 20)
    driver = same_after_a_restart(driver, drive)
    assert driver.frozen
    driver.unfreeze()
    run_some(driver, 20, 2)
    assert driver.stats.learnt == 40
    assert [change["what"] for change in driver.changes()] == ["freeze", "unfreeze"]
    same_after_a_restart(driver, drive)


def test_exploration_can_be_changed_while_it_runs(drive):
    driver = drive()
    run_some(driver, 50)
    driver.set_explore("show", uniform=0.0)
    assert driver.learner.params["explore"] == "show"
    before = driver.stats.explored
    run_some(driver, 50, 1)
    few = driver.stats.explored - before
    driver.set_explore(uniform=0.9)
    run_some(driver, 50, 2)
    assert driver.stats.explored - before - few > few
    with pytest.raises(InvalidInput, match="uniform"):
        driver.set_explore(uniform=7.0)
    with pytest.raises(InvalidInput, match="given, or uniform"):
        driver.set_explore()
    same_after_a_restart(driver, drive)


def test_a_learner_without_exploration_refuses(drive):
    driver = drive(learner="mc-slp")
    with pytest.raises(InvalidInput, match="explore"):
        driver.set_explore("show")
    assert driver.seq == 0


def test_a_learner_that_showed_the_best_labels_explores(drive):
    driver = drive(learner="perceptron")
    driver.run(5, "before")
    driver.set_explore("rank")
    driver.run(30, "after", seed=1)
    driver.outcome(OutcomeRequest("before0", label=LABELS[0]))
    driver.outcome(OutcomeRequest("after0", label=LABELS[1]))
    assert driver.learner.rule == RunnerUp(explore="rank")
    same_after_a_restart(driver, drive, learner="perceptron")


def test_going_back_takes_the_weights_and_undoes_nothing_else(drive):
    driver = drive()
    run_some(driver, 40)
    driver.snapshot()
    there = driver.seq
    weights = driver.learner.core.state()["weights.W"].copy()
    driver.add_labels(["new"])
    driver.set_explore("rank", 0.5)
    open_ = driver.decide(DecisionRequest(rows(1)[0], "open"))
    run_some(driver, 40, 1)
    round_, learnt = driver.learner.round, driver.stats.learnt
    driver.rollback(there)
    assert np.array_equal(driver.learner.core.state()["weights.W"][:6], weights)
    assert (driver.learner.round, driver.stats.learnt, len(driver.labels)) == (round_, learnt, 7)
    assert [driver.learner.params[name] for name in ("explore", "uniform")] == ["rank", 0.5]
    driver.outcome(OutcomeRequest("open", hit=True))
    assert open_.body.round < round_
    with pytest.raises(InvalidInput, match="kept snapshot"):
        driver.rollback(there + 1)
    driver = same_after_a_restart(driver, drive)
    run_some(driver, 10, 3)
    same_after_a_restart(driver, drive)


def test_the_snapshot_that_was_gone_back_to_is_kept_for_ever(drive):

    driver = drive(keep_snapshots=1)
    for seed in range(4):
        run_some(driver, 20, seed)
        driver.snapshot()
    first = driver.kept()[1]
    driver.rollback(first)
    run_some(driver, 20, 9)
    driver.snapshot()
    assert first in driver.kept()
    assert len(driver.kept()) == 3  # the first, the pinned and the newest
    assert replayed(driver, from_start=True).same


def test_going_back_before_the_first_row_undoes_no_exploring(drive):
    driver = drive(n_features=None)
    driver.set_explore("rank", 0.5)
    driver.rollback(0)
    assert [driver.learner.params[name] for name in ("explore", "uniform")] == ["rank", 0.5]
    run_some(driver, 10)
    same_after_a_restart(driver, drive)


@pytest.mark.parametrize("sparse", [False, True])
def test_going_back_to_the_very_beginning_keeps_the_kind_of_rows(drive, sparse):
    driver = drive()
    row = Row(sparse=([1, 3], [0.5, 2.0]), width=5)
    x = row if sparse else rows(1)[0]
    driver.decide(DecisionRequest(x, "a"))
    driver.rollback(0)
    driver.decide(DecisionRequest(rows(1)[0] if sparse else row, "b"))
    driver.outcome(OutcomeRequest("a", hit=True))
    driver.outcome(OutcomeRequest("b", hit=False))
    assert (driver.learner.inputs.layout.n_sparse > 0) is sparse
    same_after_a_restart(driver, drive)


def test_changes_are_refused_while_the_journal_is_down(drive):
    from superarm.journal.errors import JournalUnavailable

    driver = drive()
    driver.store._writer.execute("PRAGMA query_only = ON")
    changes = (driver.freeze, lambda: driver.add_labels(["new"]), lambda: driver.rollback(0))
    for change in changes:
        with pytest.raises(JournalUnavailable):
            change()
        driver.recover()
        assert (driver.frozen, driver.labels, driver.changes()) == (False, tuple(LABELS), [])
        driver.store._writer.execute("PRAGMA query_only = ON")


def test_snapshots_say_what_made_them(drive):
    import superarm

    driver = drive()
    (first,) = driver.store.snapshots()
    assert (first.seq, first.made_by["superarm"]) == (0, superarm.__version__)
    assert first.made_by["cpu"]
