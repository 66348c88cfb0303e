"""A learner behind a journal: decisions, answers, timeouts, restarts."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, replayed, sha256_of
from service_kit import LABELS, Clock, D, rows

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.journal.totals import Totals
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.commit_queue import Call
from superarm.service.request_errors import Conflict, UnknownDecision


def test_the_same_bits_as_the_library(drive):
    driver = drive()
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    for i, x in enumerate(rows(300)):
        entry = driver.decide(DecisionRequest(x))
        decision = twin.decide(x)
        assert entry.decision.labels == decision.labels
        assert entry.body.rule.items() >= decision.to_dict()["rule"].items()
        assert entry.decision.log_propensity == decision.log_propensity
        driver.outcome(OutcomeRequest(entry.id, hit=i % 3 == 0))
        twin.update(decision, hit=i % 3 == 0)
    assert bits(driver.learner) == bits(twin)


def test_the_same_id_gives_the_same_set_also_after_a_restart(drive):
    driver = drive()
    first = driver.decide(DecisionRequest(rows(1)[0], id="a", context={"page": 1})).shown()
    assert driver.decide(DecisionRequest(rows(1)[0], id="a", context={"page": 1})).shown() == first
    driver.close()
    driver = drive()
    assert driver.decide(DecisionRequest(rows(1)[0], id="a", context={"page": 1})).shown() == first
    assert driver.stats.decisions == 1


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("features", {"x": rows(2)[1]}),
        ("eligible", {"eligible": ("label-1", "label-2")}),
        ("set_size", {"set_size": 1}),
        ("context", {"context": 5}),
    ],
)
def test_an_id_for_another_request_is_a_conflict(drive, field, changed):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    with pytest.raises(Conflict, match=f"^{field} of decision") as caught:
        driver.decide(DecisionRequest(**({"x": rows(1)[0], "id": "a"} | changed)))
    assert caught.value.field == field


def test_true_is_not_one(drive):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a", context={"a": [1, {"b": 0}], "c": 2}))
    same_json = {"c": 2.0, "a": [1.0, {"b": 0}]}
    driver.decide(DecisionRequest(rows(1)[0], id="a", context=same_json))
    for other in ({"a": [True, {"b": 0}], "c": 2}, {"a": [1, {"b": False}], "c": 2}, {"a": [1], "c": 2}):
        with pytest.raises(
            Conflict, match="context of decision must be as in the first request with the id 'a'"
        ):
            driver.decide(DecisionRequest(rows(1)[0], id="a", context=other))
    named = drive("named.db", n_features=None)
    named.decide(DecisionRequest({"member": True, "age": 41}, id="a"))
    named.decide(DecisionRequest({"age": 41.0, "member": True}, id="a"))
    with pytest.raises(Conflict, match="features of decision"):
        named.decide(DecisionRequest({"member": 1, "age": 41}, id="a"))


def test_a_sparse_row_is_the_same_request_as_its_dense_form(drive):
    driver = drive()
    driver.decide(DecisionRequest(np.array([0, 1, 0, 2, 0], np.float32), id="a"))
    sparse = np.array([1, 3], np.int32), np.array([1, 2], np.float32)
    assert driver.decide(DecisionRequest(sparse, id="a")).id == "a"
    assert driver.stats.decisions == 1


def test_answers_come_once(drive):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    first = dict(driver.outcome(OutcomeRequest("a", hit=True)).outcome)
    assert (first["learnt"], first["late"], first["timeout"]) == (True, False, False)
    version = driver.stats.learnt
    assert driver.outcome(OutcomeRequest("a", hit=True)).outcome == first
    assert driver.stats.learnt == version == 1
    with pytest.raises(
        Conflict, match=r"hit of outcome must be as in the first outcome \(hit True\), got False"
    ):
        driver.outcome(OutcomeRequest("a", hit=False))
    with pytest.raises(Conflict, match="label of outcome"):
        driver.outcome(OutcomeRequest("a", label="label-0"))
    with pytest.raises(UnknownDecision):
        driver.outcome(OutcomeRequest("b", hit=True))


def test_a_named_label_is_learnt_and_tells_the_bit(drive):
    driver = drive()
    shown = driver.decide(DecisionRequest(rows(1)[0], id="a")).labels
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    twin.update(twin.decide(rows(1)[0]), label=shown[1])
    entry = driver.outcome(OutcomeRequest("a", label=shown[1]))
    assert entry.outcome["hit"] is True
    assert entry.outcome["label"] == shown[1]
    assert bits(driver.learner) == bits(twin)
    # the bit alone says nothing else than that
    assert driver.outcome(OutcomeRequest("a", hit=True)).outcome["label"] == shown[1]


def test_a_label_outside_the_eligible_ones_is_refused(drive):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a", eligible=("label-1", "label-2", "label-3"), set_size=1))
    refusal = r"label of outcome must be one of the eligible labels \(.* report hit: false\)"
    with pytest.raises(InvalidInput, match=refusal):
        driver.outcome(OutcomeRequest("a", label="label-5"))
    assert driver.stats.pending == 1


def test_a_learner_of_bits_gets_the_bit_of_a_named_label(drive):
    driver = drive(learner="banditron", set_size=1)
    shown = driver.decide(DecisionRequest(rows(1)[0], id="a")).labels
    assert driver.outcome(OutcomeRequest("a", label=shown[0])).outcome["learnt"]


def test_a_learner_of_labels_refuses_a_bit(drive):
    driver = drive(learner="perceptron")
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    with pytest.raises(FeedbackError):
        driver.outcome(OutcomeRequest("a", hit=True))
    assert driver.stats.pending == 1
    assert driver.outcome(OutcomeRequest("a", label="label-3")).outcome["learnt"]


@pytest.mark.parametrize(
    ("default", "learnt_first", "learnt_late"), [(False, 1, 1), (True, 1, 0), (None, 0, 1)]
)
def test_timeout_is_an_event_and_a_late_answer_teaches_what_the_default_did_not(
    drive, default, learnt_first, learnt_late
):
    clock = Clock()
    driver = drive(timeout=10.0, default_outcome=default, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    clock.now += 9.9
    assert driver.expire() == 0
    clock.now += 0.2
    assert driver.expire() == 1
    entry = driver.find("a")
    assert entry.outcome["timeout"]
    assert entry.outcome["hit"] is default
    assert driver.stats.timeouts == 1
    assert driver.stats.learnt == learnt_first
    assert driver.expire() == 0
    late = driver.outcome(OutcomeRequest("a", hit=True))
    assert (late.outcome["late"], late.outcome["hit"]) == (True, True)
    assert late.full()["state"] == "answered late"
    assert driver.stats.learnt == learnt_first + learnt_late
    assert driver.outcome(OutcomeRequest("a", hit=True)).outcome == late.outcome
    with pytest.raises(Conflict):
        driver.outcome(OutcomeRequest("a", hit=False))
    assert (driver.stats.late, driver.stats.pending) == (1, 0)
    model, totals = driver.model_file(), driver.counts()
    assert replayed(driver, from_start=True).sha256 == sha256_of(driver)
    driver.store.close()
    again = drive(timeout=10.0, default_outcome=default, clock=clock)
    assert again.model_file() == model
    assert again.counts() == totals


def test_without_a_timeout_nothing_expires(drive):
    clock = Clock()
    driver = drive(clock=clock)
    driver.decide(DecisionRequest(rows(1)[0]))
    clock.now = 1e12
    assert driver.expire() == 0


def test_a_decision_that_has_left_the_memory_can_be_answered(drive, monkeypatch):
    driver = drive()
    monkeypatch.setattr(driver.projector.records, "most_bytes", 3 * 6_000)
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    made = [twin.decide(x) for x in rows(10)]
    ids = [decision.id for decision in driver.run(10)]
    assert 1 <= len(driver.projector.records) <= 4
    for id_, decision in zip(ids, made, strict=True):
        driver.outcome(OutcomeRequest(id_, hit=True))
        twin.update(decision, hit=True)
    assert bits(driver.learner) == bits(twin)


def overflow(*_, **__):
    raise WeightsOverflow("weights must stay finite")


def test_an_answer_that_would_overflow_is_kept_but_not_learnt(drive):
    driver = drive(learner="softmax:step=6e14")
    twin = sa.Softmax(labels=LABELS, n_features=D, set_size=2, seed=0, step=6e14)
    X = np.ones((3, D), np.float32)
    truth = [LABELS[0], LABELS[1], LABELS[0]]
    made = [twin.decide(x) for x in X]
    driver.service.commit([Call(DecisionRequest(x, id_)) for id_, x in zip("abc", X, strict=True)])
    answers = [OutcomeRequest(id_, label=label) for id_, label in zip("abc", truth, strict=True)]
    one_batch = [Call(one) for one in answers]
    calls = driver.service.commit(one_batch)
    assert [done.result.outcome.learnt for done in calls] == [True, False, True]
    assert (driver.stats.refused, driver.stats.outcomes, driver.stats.learnt) == (1, 3, 2)
    assert not driver.find("b").outcome["learnt"]
    twin.update(made[0], label=truth[0])
    with pytest.raises(WeightsOverflow):
        twin.update(made[1], label=truth[1])
    twin.update(made[2], label=truth[2])
    assert bits(driver.learner) == bits(twin)


def test_a_row_that_makes_scores_overflow_is_refused(drive, monkeypatch):
    driver = drive()
    monkeypatch.setattr(driver.learner, "decide", overflow)
    with pytest.raises(
        InvalidInput, match="features of decision must be so small that all scores stay finite"
    ):
        driver.decide(DecisionRequest(rows(1)[0]))
    assert driver.stats.decisions == driver.seq == 0


def test_a_restart_needs_only_the_events_after_the_last_snapshot(drive):
    driver = drive()
    driver.run(20, hits=lambda i: True)
    driver.snapshot()
    driver.run(5, "late")
    model, totals = driver.model_file(), driver.counts()
    driver.store.close()  # as if killed: close() would snapshot
    driver = drive()
    assert driver.replayed == 5
    assert driver.model_file() == model
    assert driver.counts() == totals
    driver.close()
    assert drive().replayed == 0


def test_a_set_has_no_more_labels_than_there_are(drive):
    with pytest.raises(InvalidInput, match="set_size"):
        drive("b.db", set_size=99)


def test_the_curves_of_the_totals_stay_short():
    totals = Totals()
    stats = totals.stats
    for i in range(5000):
        stats.count_decision(1000.0 + 0.37 * i, ["label-0"], ["label-1" if i % 4 == 0 else "label-0"], 0.5)
    assert len(stats.slots) <= 240
    assert sum(slot.decisions for slot in stats.slots) == 5000
    assert sum(slot.explored for slot in stats.slots) == stats.explored == 1250
    assert stats.start + len(stats.slots) * stats.width >= 1000.0 + 0.37 * 4999
    assert Totals.from_dict(totals.to_dict()).to_dict() == totals.to_dict()


def test_an_id_that_no_event_can_hold_fails_alone(drive):
    driver = drive()
    long, good = DecisionRequest(rows(1)[0], "x" * 300), DecisionRequest(rows(1)[0], "good")
    refused, done = driver.service.commit([Call(one) for one in (long, good)])
    assert isinstance(refused.error, InvalidInput)
    assert refused.error.field == "id"
    assert done.error is None
    assert driver.find("good") is not None


@pytest.mark.parametrize(
    ("outcome", "field"),
    [({"label": "nonsense"}, "label"), ({}, "hit"), ({"hit": True, "label": "label-1"}, "hit")],
)
def test_an_outcome_that_means_nothing_is_refused_without_http_too(drive, outcome, field):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    with pytest.raises(InvalidInput) as caught:
        driver.outcome(OutcomeRequest("a", **outcome))
    assert caught.value.field == field
    assert driver.find("a").status == "pending"


def test_what_was_refused_long_ago_is_still_known(drive, monkeypatch):
    from superarm.journal import totals

    monkeypatch.setattr(totals, "MAX_REFUSALS", 2)
    driver = drive()
    for i in range(5):
        driver.projector.totals.refuse(i, "no")
    assert list(driver.projector.totals.refusals) == [3, 4]
    assert driver.projector.totals.refused_seqs == {0, 1, 2, 3, 4}
    again = totals.Totals.from_dict(driver.projector.totals.to_dict())
    assert again.refused_seqs == {0, 1, 2, 3, 4}
