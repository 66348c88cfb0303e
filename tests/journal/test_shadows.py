"""Shadows learn from the same sets and answers, are never shown, and need no events."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, decide_until_label_left_out, projected, save_promise
from service_kit import LABELS, Clock, rows

import superarm as sa
from superarm.errors import InvalidInput
from superarm.service import DecisionRequest, OutcomeRequest

SPECS = ["set-logit:explore=rank", "set-logit:forget=0.5"]


def world(n, seed=0):
    """Rows whose right label is the largest of the first five numbers."""
    X = rows(n, seed)
    return X, X.argmax(axis=1)


def run_some(driver, n, seed=0):
    X, y = world(n, seed)
    for start in range(0, n, 10):
        batch = range(start, min(start + 10, n))
        requests = [DecisionRequest(X[i], f"{seed}.{i}") for i in batch]
        shown = driver.together(requests)
        outcomes = [
            OutcomeRequest(made.id, hit=LABELS[y[i]] in made.labels)
            for i, made in zip(batch, shown, strict=True)
        ]
        driver.together(outcomes)


def test_a_shadow_changes_nothing_and_writes_nothing(drive):
    plain, watched = drive("a.db"), drive("b.db", shadows=SPECS)
    plain.learner.id = watched.learner.id
    for driver in (plain, watched):
        run_some(driver, 200)
    assert watched.model_file() == plain.model_file()
    assert watched.seq == plain.seq


def test_labels_that_came_later_were_not_eligible_for_a_shadow(drive):
    driver = drive(shadows=["set-logit:step=2"])
    twin = sa.SetLogit(labels=LABELS, n_features=5, set_size=2, seed=0, step=2)
    made = driver.decide(DecisionRequest(rows(1)[0], "a"))
    driver.add_labels(["new"])
    driver.outcome(OutcomeRequest("a", label="new"))  # could not be shown: a miss among the labels of then
    twin.add_labels(["new"])
    drawn = made.decision
    given = sa.Decision.given(
        rows(1)[0], drawn.drawn, drawn.propensity, top=drawn.top, rule=drawn.rule, eligible=LABELS
    )
    twin.update(given, hit=False)
    (shadow,) = driver.projector.shadows.values()
    assert shadow.n_learnt == 1
    assert bits(shadow.learner, "weights") == bits(twin, "weights")


def test_a_shadow_learns_as_from_given_sets(drive):
    driver = drive(shadows=["set-logit:step=2"])
    twin = sa.SetLogit(labels=LABELS, n_features=5, set_size=2, seed=0, step=2)
    X, y = world(100)
    for x, right in zip(X, y, strict=True):
        entry = driver.decide(DecisionRequest(x))
        made = entry.decision
        hit = LABELS[right] in made.labels
        driver.outcome(OutcomeRequest(entry.id, hit=hit))
        given = sa.Decision.given(x, made.drawn, made.propensity, top=made.top, rule=made.rule)
        twin.update(given, hit=hit)
    (shadow,) = driver.projector.shadows.values()
    assert bits(shadow.learner, "weights") == bits(twin, "weights")
    assert shadow.n_learnt == 100


@pytest.mark.slow
def test_estimated_hit_rates_hold_the_truth(drive):
    """What a shadow would hit can be counted here, since the test knows the right label."""
    driver = drive(shadows=SPECS, learner="set-logit:uniform=0.3")
    X, y = world(6000)
    truth = dict.fromkeys(driver.projector.shadows, 0)
    for x, right in zip(X, y, strict=True):
        entry = driver.decide(DecisionRequest(x))
        for name, shadow in driver.projector.shadows.items():
            truth[name] += LABELS[right] in shadow.learner.rank(x)[:2]
        driver.outcome(OutcomeRequest(entry.id, hit=LABELS[right] in entry.labels))
    own, *others = driver.reports()
    assert own["learner"] == "set-logit:uniform=0.3"
    assert [report["learner"] for report in others] == SPECS
    for report in others:
        rate = truth[f"shadow:{report['learner']}"] / 6000
        # a 99.8 % interval, and one stream: no accident to expect
        wide = 1.6 * (report["high"] - report["low"])
        assert abs(report["rate"] - rate) < wide / 2 + 0.02, (report, rate)
        assert report["low"] < report["rate"] < report["high"]
    good, poor = others
    assert good["rate"] > poor["rate"] + 0.1


@pytest.mark.parametrize("how", ["killed", "closed", "added later"])
def test_a_shadow_is_rebuilt_from_the_journal(drive, how):
    driver, twin = drive(shadows=() if how == "added later" else SPECS), drive("twin.db", shadows=SPECS)
    for one in (driver, twin):
        run_some(one, 150)
        if how == "closed" and one is driver:
            driver.snapshot()
        run_some(one, 100, 1)
        one.freeze()
        run_some(one, 20, 2)
        one.unfreeze()
        one.add_labels(["new"])
        run_some(one, 50, 3)
    driver.store.close()
    again = drive(shadows=SPECS)
    assert again.replayed > 0
    for name, shadow in twin.projector.shadows.items():
        found = again.projector.shadows[name]
        assert bits(found.learner) == bits(shadow.learner)
        assert found.n_learnt == shadow.n_learnt == 300
    if how != "added later":
        for report, wanted in zip(again.reports()[1:], twin.reports()[1:], strict=True):
            assert report == pytest.approx(wanted, abs=1e-9)


def test_a_shadow_that_breaks_does_not_disturb_the_service(drive, monkeypatch):
    driver = drive(shadows=SPECS)
    first = next(iter(driver.projector.shadows.values()))
    monkeypatch.setattr(first.learner, "rank", lambda x: 1 / 0)
    run_some(driver, 20)
    assert driver.outage is None
    assert "ZeroDivisionError" in driver.reports()[1]["problem"]
    assert driver.projector.shadows["shadow:" + SPECS[1]].n_learnt == 20


def test_a_shadow_of_a_promise_learns_from_sets_with_labels_left_out(drive, tmp_path):
    spec = "set-logit:step=2"
    driver = drive(model=save_promise(tmp_path / "promise.npz"), shadows=[spec])
    made = decide_until_label_left_out(driver)
    driver.outcome(OutcomeRequest(made.id, hit=False))
    (shadow,) = driver.projector.shadows.values()
    assert (driver.outage, shadow.stop_reason) == (None, "")
    assert shadow.n_learnt == driver.stats.outcomes
    weights = bits(shadow.learner, "weights")
    driver.close()
    for shadows in ([spec], [spec, "set-logit"]):  # as snapshots have it, and one that begins now
        again = drive(shadows=shadows)
        assert bits(again.projector.shadows[f"shadow:{spec}"].learner, "weights") == weights
        assert {shadow.n_learnt for shadow in again.projector.shadows.values()} == {again.stats.outcomes}
        again.close()


def test_a_decision_that_shadows_cannot_take_stops_them_and_nothing_else(drive, monkeypatch):
    driver = drive(shadows=SPECS)
    run_some(driver, 10)
    monkeypatch.setattr(driver.projector, "_as_given", lambda record: 1 / 0)
    run_some(driver, 20, 1)
    assert (driver.outage, driver.stats.learnt) == (None, 30)
    assert all("ZeroDivisionError" in report["problem"] for report in driver.reports()[1:])


@pytest.mark.parametrize("spec", ["perceptron", "banditron", "mc-dbf"])
def test_a_learner_that_cannot_learn_from_sets_of_others_is_refused(drive, spec):
    with pytest.raises(InvalidInput, match="learns from sets that another learner chose"):
        drive(shadows=[spec], set_size=1)


@pytest.mark.parametrize("hit", [False, True])
def test_a_late_answer_teaches_a_shadow_what_the_default_did_not(drive, hit):
    clock = Clock()
    driver = drive(shadows=SPECS[:1], timeout=10.0, default_outcome=False, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    clock.now += 20.0
    driver.expire()
    driver.outcome(OutcomeRequest("a", hit=hit))
    (shadow,) = driver.projector.shadows.values()
    assert shadow.n_learnt == 1 + hit
    assert np.isfinite(shadow.learner.core.state()["weights.W"]).all()


def test_a_shadow_learns_a_late_answer_where_the_default_was_not_learnt(drive):
    """The default came while learning was frozen; the answer says the same, and is learnt by model and shadow."""
    clock = Clock()
    driver = drive(shadows=SPECS[:1], timeout=10.0, default_outcome=False, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    driver.freeze()
    clock.now += 20.0
    driver.expire()
    driver.unfreeze()
    assert driver.outcome(OutcomeRequest("a", hit=False)).outcome["learnt"]
    (shadow,) = driver.projector.shadows.values()
    assert shadow.n_learnt == 1


def test_a_new_shadow_has_the_labels_and_columns_of_a_stretch_that_was_erased(drive):
    """What it must learn again from the first event on skips the stretch, and with it the changes there."""
    driver = drive(n_features=None)
    words, vectors = {"a": 1.0}, {"a": 1.0, "embedding": [0.1, 0.2]}
    driver.decide(DecisionRequest(vectors, "first"))
    driver.outcome(OutcomeRequest("first", hit=True))
    driver.add_labels(["new"])
    driver.erase(["first"])
    driver.close()
    driver = drive(shadows=SPECS[:1])
    for i, x in enumerate((words, vectors)):
        driver.decide(DecisionRequest(x, f"d{i}", eligible=("new", *LABELS[:2])))
        driver.outcome(OutcomeRequest(f"d{i}", label="new"))
    (shadow,) = driver.projector.shadows.values()
    assert (shadow.n_learnt, shadow.stop_reason) == (2, "")


@pytest.mark.parametrize("restart", [False, True])
def test_a_shadow_is_judged_by_what_it_knew_at_the_decision(drive, restart):
    """With identical learners and outcomes that all come at the end, both rates are those of cold models."""
    spec = "set-logit:uniform=0.5"
    options = {"learner": spec, "set_size": 1, "shadows": [spec]}
    driver = drive(**options)
    X, y = world(1500)
    requests = [DecisionRequest(x, f"d{i}") for i, x in enumerate(X)]
    shown = driver.together(requests)
    if restart:  # the snapshot has the top sets of what is pending
        driver.close()
        driver = drive(shadows=[spec])
    outcomes = [
        OutcomeRequest(made.id, hit=LABELS[right] in made.labels)
        for made, right in zip(shown, y, strict=True)
    ]
    driver.together(outcomes)
    model, shadow = driver.reports()
    assert shadow["rows"] == model["rows"] == 1500
    # all scores tie, and each breaks ties itself
    assert shadow["rate"] == pytest.approx(model["rate"], abs=0.05)
    assert shadow["rate"] < 0.4  # one of five; learnt, it would be 0.8 or so
    (one,) = driver.projector.shadows.values()
    assert (one.n_learnt, one.tops) == (1500, {})


def test_top_sets_of_shadows_are_the_same_in_blocks_and_one_by_one(drive):
    driver = drive(shadows=SPECS)
    run_some(driver, 60)
    driver.run(20, "open", seed=5)
    whole, single = projected(driver, SPECS)
    for name, shadow in driver.projector.shadows.items():
        assert len(shadow.tops) == 20
        assert shadow.tops == whole.shadows[name].tops == single.shadows[name].tops
        assert bits(shadow.learner) == bits(whole.shadows[name].learner) == bits(single.shadows[name].learner)


def test_few_top_sets_are_kept(drive, monkeypatch):
    monkeypatch.setattr("superarm.journal.shadows.MAX_TOPS", 5)
    driver = drive(shadows=SPECS[:1])
    driver.run(8)
    (shadow,) = driver.projector.shadows.values()
    assert len(shadow.tops) == 5
    for i in range(8):
        driver.outcome(OutcomeRequest(f"d{i}", hit=True))
    assert (shadow.n_learnt, shadow.report()["rows"], shadow.tops) == (8, 5, {})
