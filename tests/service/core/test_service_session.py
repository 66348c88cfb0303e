"""A learner behind a journal: decisions, answers, timeouts, restarts."""

from __future__ import annotations

import numpy as np
import pytest
from service_kit import LABELS, Clock, D, rows

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.service.core import sqlite as sqlite_module
from superarm.service.core.faults import Conflict, JournalForeign, Refused, UnknownDecision
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply
from superarm.service.core.stats import Stats


def test_the_same_bits_as_the_library(open_session):
    session = open_session()
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    for i, x in enumerate(rows(300)):
        entry = session.decide(Ask(x))
        decision = twin.decide(x)
        assert entry.decision.labels == decision.labels
        assert entry.decision.to_dict()["rule"] == decision.to_dict()["rule"]
        assert entry.decision.log_propensity == decision.log_propensity
        session.outcome(Reply(entry.place.id, hit=i % 3 == 0))
        twin.update(decision, hit=i % 3 == 0)
    session.commit()
    assert session.learner.state.weights.W.tobytes() == twin.state.weights.W.tobytes()


def test_the_same_id_gives_the_same_set_also_after_a_restart(open_session):
    session = open_session()
    first = session.decide(Ask(rows(1)[0], id="a", context={"page": 1})).shown()
    assert session.decide(Ask(rows(1)[0], id="a", context={"page": 1})).shown() == first
    session.close()
    session = open_session()
    assert session.decide(Ask(rows(1)[0], id="a", context={"page": 1})).shown() == first
    assert session.stats.decisions == 1


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("features", {"x": rows(2)[1]}),
        ("eligible", {"eligible": ("label-1", "label-2")}),
        ("set_size", {"set_size": 1}),
        ("context", {"context": 5}),
    ],
)
def test_an_id_for_another_request_is_a_conflict(open_session, field, changed):
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    with pytest.raises(Conflict, match=f"^{field} of decision") as caught:
        session.decide(Ask(**({"x": rows(1)[0], "id": "a"} | changed)))
    assert caught.value.field == field


def test_a_sparse_row_is_the_same_request_as_its_dense_form(open_session):
    session = open_session()
    session.decide(Ask(np.array([0, 1, 0, 2, 0], np.float32), id="a"))
    sparse = np.array([1, 3], np.int32), np.array([1, 2], np.float32)
    assert session.decide(Ask(sparse, id="a")).place.id == "a"
    assert session.stats.decisions == 1


def test_answers_come_once(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    first = dict(session.outcome(Reply("a", hit=True)).outcome)
    assert (first["learnt"], first["late"], first["timeout"]) == (True, False, False)
    version = session.stats.learnt
    assert session.outcome(Reply("a", hit=True)).outcome == first
    assert session.stats.learnt == version == 1
    with pytest.raises(Conflict, match=r"hit of outcome must be True, as it was first answered, got False"):
        session.outcome(Reply("a", hit=False))
    with pytest.raises(Conflict, match="label of outcome"):
        session.outcome(Reply("a", label="label-0"))
    with pytest.raises(UnknownDecision):
        session.outcome(Reply("b", hit=True))


def test_a_named_label_is_learnt_and_tells_the_bit(open_session):
    session = open_session()
    shown = session.decide(Ask(rows(1)[0], id="a")).body["labels"]
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    twin.update(twin.decide(rows(1)[0]), label=shown[1])
    entry = session.outcome(Reply("a", label=shown[1]))
    assert entry.outcome["hit"] is True
    assert entry.outcome["label"] == shown[1]
    assert session.learner.state.weights.W.tobytes() == twin.state.weights.W.tobytes()
    # the bit alone says nothing else than that
    assert session.outcome(Reply("a", hit=True)).outcome["label"] == shown[1]


def test_a_label_outside_the_eligible_ones_is_refused(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a", eligible=("label-1", "label-2", "label-3"), set_size=1))
    with pytest.raises(Refused, match="label of outcome must be one of the eligible labels"):
        session.outcome(Reply("a", label="label-5"))
    assert session.stats.pending == 1


def test_a_learner_of_bits_gets_the_bit_of_a_named_label(open_session):
    session = open_session(learner="banditron", set_size=1)
    shown = session.decide(Ask(rows(1)[0], id="a")).body["labels"]
    assert session.outcome(Reply("a", label=shown[0])).outcome["learnt"]


def test_a_learner_of_labels_refuses_a_bit(open_session):
    session = open_session(learner="perceptron")
    session.decide(Ask(rows(1)[0], id="a"))
    with pytest.raises(FeedbackError):
        session.outcome(Reply("a", hit=True))
    assert session.stats.pending == 1
    assert session.outcome(Reply("a", label="label-3")).outcome["learnt"]


@pytest.mark.parametrize(
    ("default", "learnt_first", "learnt_late"), [(False, 1, 0), (True, 1, 0), (None, 0, 1)]
)
def test_timeout_is_an_event_and_nothing_is_learnt_twice(open_session, default, learnt_first, learnt_late):
    clock = Clock()
    session = open_session(timeout=10.0, default=default, clock=clock)
    session.decide(Ask(rows(1)[0], id="a"))
    session.commit()
    clock.now += 9.9
    assert session.expire() == 0
    clock.now += 0.2
    assert session.expire() == 1
    session.commit()
    entry = session.find("a")
    assert entry.outcome["timeout"]
    assert entry.outcome["hit"] is default
    assert session.stats.timeouts == 1
    assert session.stats.learnt == learnt_first
    assert session.expire() == 0
    late = session.outcome(Reply("a", hit=True))
    assert (late.outcome["late"], late.outcome["hit"]) == (True, True)
    assert late.full()["state"] == "answered late"
    assert session.stats.learnt == learnt_first + learnt_late
    assert session.outcome(Reply("a", hit=True)).outcome == late.outcome
    with pytest.raises(Conflict):
        session.outcome(Reply("a", hit=False))
    assert (session.stats.late, session.stats.pending) == (1, 0)
    session.commit()
    model = session.model_file()
    assert replay(session.journal).sha256
    again = type(session)(session.journal, timeout=10.0, default=default)
    assert again.model_file() == model
    assert again.stats.to_dict() == session.stats.to_dict()


def test_without_a_timeout_nothing_expires(open_session):
    clock = Clock()
    session = open_session(clock=clock)
    session.decide(Ask(rows(1)[0]))
    session.commit()
    clock.now = 1e12
    assert session.expire() == 0


def test_a_decision_that_has_left_the_memory_can_be_answered(open_session, monkeypatch):
    session = open_session()
    monkeypatch.setattr(session._entries, "most_bytes", 3 * 4_000)
    twin = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)
    made = [twin.decide(x) for x in rows(10)]
    ids = [session.decide(Ask(x)).place.id for x in rows(10)]
    assert len(session._entries) == 3
    for id_, decision in zip(ids, made, strict=True):
        session.outcome(Reply(id_, hit=True))
        twin.update(decision, hit=True)
    assert session.learner.state.weights.W.tobytes() == twin.state.weights.W.tobytes()


def overflow(*_, **__):
    raise WeightsOverflow("weights must stay finite")


def test_an_answer_that_would_overflow_is_kept_but_not_learnt(open_session, monkeypatch):
    session = open_session()
    for id_, x in zip("abc", rows(3), strict=True):
        session.decide(Ask(x, id_))
    session.outcome(Reply("a", hit=True))
    with monkeypatch.context() as patch:
        patch.setattr(session.learner, "update", overflow)
        outcome = session.outcome(Reply("b", hit=True)).outcome
    assert (outcome["hit"], outcome["learnt"]) == (True, False)
    session.outcome(Reply("c", hit=True))
    assert (session.stats.refused, session.stats.outcomes, session.stats.learnt) == (1, 3, 2)
    session.commit()
    assert replay(session.journal).same
    totals, model = session.stats.to_dict(), session.model_file()
    session.journal.close()
    again = open_session()
    assert (again.stats.to_dict(), again.model_file()) == (totals, model)


def test_a_row_that_makes_scores_overflow_is_refused(open_session, monkeypatch):
    session = open_session()
    monkeypatch.setattr(session.learner, "decide", overflow)
    with pytest.raises(Refused, match="features of decision must be so small that all scores stay finite"):
        session.decide(Ask(rows(1)[0]))
    assert session.stats.decisions == session.journal.seq == 0


def test_a_restart_needs_only_the_events_after_the_last_snapshot(open_session):
    session = open_session()
    for x in rows(20):
        session.outcome(Reply(session.decide(Ask(x)).place.id, hit=True))
    session.snapshot()
    for x in rows(5):
        session.decide(Ask(x))
    session.commit()
    model, totals = session.model_file(), session.stats.to_dict()
    session.journal.close()  # as if killed: close() would snapshot
    session = open_session()
    assert session.replayed == 5
    assert session.model_file() == model
    assert session.stats.to_dict() == totals
    session.close()
    assert open_session().replayed == 0


def test_a_journal_remembers_what_it_was_made_for(open_session):
    open_session().close()
    session = open_session()
    assert session.labels == tuple(LABELS)
    session.close()
    for wrong in (
        {"labels": ["x", "y"]},
        {"n_features": 9},
        {"set_size": 3},
        {"learner": "mc-dbf"},
        {"seed": 7},
    ):
        with pytest.raises(JournalForeign, match=r"which .*events\.db was made for"):
            open_session(**wrong)


def test_a_new_journal_must_be_told_what_for(open_session):
    with pytest.raises(JournalForeign, match="given for a new journal"):
        open_session(labels=None)


def test_a_new_journal_can_start_with_a_model(open_session, tmp_path):
    learner = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=3)
    for x in rows(50):
        learner.update(learner.decide(x), hit=False)
    learner.save(tmp_path / "model.npz")
    session = open_session(model=tmp_path / "model.npz")
    assert session.model_file() == (tmp_path / "model.npz").read_bytes()
    assert session.decide(Ask(rows(1)[0])).body["labels"] == learner.decide(rows(1)[0]).labels
    with pytest.raises(JournalForeign, match="set_size"):
        open_session("other.db", model=tmp_path / "model.npz", set_size=4)


def test_labels_must_be_names(open_session, tmp_path):
    sa.SetLogit(n_labels=4, n_features=D).save(tmp_path / "numbers.npz")
    with pytest.raises(JournalForeign, match=r"names \(strings\)"):
        open_session(model=tmp_path / "numbers.npz")
    with pytest.raises(InvalidInput, match="set_size"):
        open_session("b.db", set_size=99)


def test_warm_up_changes_nothing(open_session):
    session = open_session()
    before = session.model_file()
    session.warm_up()
    assert session.model_file() == before
    assert session.learner.round == 0


def test_the_curves_of_the_totals_stay_short():
    stats = Stats(LABELS)
    for i in range(5000):
        stats.decision(1000.0 + 0.37 * i, ["label-0"], ["label-1" if i % 4 == 0 else "label-0"], 0.5)
    assert len(stats.slots) <= 240
    assert sum(slot[0] for slot in stats.slots) == 5000
    assert sum(slot[1] for slot in stats.slots) == stats.explored == 1250
    assert stats.start + len(stats.slots) * stats.width >= 1000.0 + 0.37 * 4999
    assert Stats.from_dict(LABELS, stats.to_dict()).to_dict() == stats.to_dict()


def test_the_index_of_ids_keeps_up_in_the_middle_of_a_transaction(open_session, monkeypatch):
    monkeypatch.setattr(sqlite_module, "INDEX_EVERY", 7)
    session = open_session()
    ids = []
    for i, x in enumerate(rows(60)):
        ids.append(session.decide(Ask(x, f"d{i}")).place.id)
        if i % 2:
            session.outcome(Reply(f"d{i - 1}", hit=True))
        if i % 10 == 9:
            session._entries.clear()
            assert session.find(ids[i - 1], uncommitted=True).place.state == 1
            session.commit()
            assert session.find(ids[i - 1]).place.state == 1
    states = {id_: session.find(id_).place.state for id_ in ids}
    pending = [place.id for place in session.journal.open_places(limit=100)]
    assert pending == [id_ for id_ in ids if states[id_] == 0]
    assert len(pending) == 30
    session.journal.close()
    session = open_session()
    assert {id_: session.find(id_).place.state for id_ in ids} == states
    assert [place.id for place in session.journal.open_places(limit=100)] == pending
