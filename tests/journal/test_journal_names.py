"""Rows with names in a journal: kept as they came, the same bits after any restart."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, replayed, sha256_of
from people import people as world_of_people
from service_kit import LABELS

from superarm.data.columns import Columns
from superarm.learners.registry import make
from superarm.service.errors import Conflict, InvalidRequest
from superarm.service.requests import DecisionRequest, OutcomeRequest

CITIES = ("Rome", "Oslo", "Lima")


def people(n, seed=0):
    """Rows to which new names are added, and in which any name may be missing."""
    random = np.random.default_rng(seed)
    for i in range(n):
        row = {
            "age": random.normal(40.0, 12.0),
            "city": CITIES[i % 3],
            "vip": bool(i % 2),
            "since": "2026-05-01",
        }
        row |= {f"late {j}": float(random.normal()) for j in range(5) if i > 10 * j}
        if i % 7 == 0:
            row["age"] = None
        if i > 25:  # the sparse part comes late
            row["note"] = f"order {i % 5} is late again"
        yield {name: row[name] for name in random.permutation(list(row))}


def all_bits(learner):
    return learner.columns.to_dict(), bits(learner)


@pytest.mark.parametrize("learner", ["set-logit", "mc-dbf:gamma=0.2"])
def test_the_same_bits_as_in_the_library_and_after_a_restart(drive, learner):
    session = drive(learner=learner, n_features=None, shadows=["set-logit:explore=1.0"])
    params = {name: getattr(session.learner, name) for name in ("uniform",) if hasattr(session.learner, name)}
    twin = make(learner, labels=LABELS, set_size=2, **params)
    waiting = []
    for i, x in enumerate(people(120)):
        entry, own = session.decide(DecisionRequest(x)), twin.decide(x)
        assert entry.decision.labels == own.labels
        assert entry.full()["features"] == x
        waiting.append((entry.id, own))
        if i % 3:
            id_, late = waiting.pop(len(waiting) // 2)
            session.outcome(OutcomeRequest(id_, hit=i % 2 == 0))
            twin.update(late, hit=i % 2 == 0)
        if i == 60:
            session.snapshot()
            session.projector.records.clear()  # what is read from the journal is as good as what is remembered
    assert all_bits(session.learner) == all_bits(twin)
    model, reports = session.model_file(), session.reports()
    for from_start in (False, True):
        done = replayed(session, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(session)
    session.store.close()
    again = drive(shadows=["set-logit:explore=1.0"])
    assert again.model_file() == model
    assert repr(again.reports()) == repr(reports)


def test_asked_again_the_order_of_names_does_not_matter(drive):
    session = drive(n_features=None)
    first = session.decide(DecisionRequest({"age": 41, "city": "Rome"}, "a"))
    assert session.decide(DecisionRequest({"city": "Rome", "age": 41.0}, "a")).shown() == first.shown()
    for other in ({"age": 42, "city": "Rome"}, {"age": 41}, np.zeros(session.learner.n_features)):
        with pytest.raises(Conflict, match="features"):
            session.decide(DecisionRequest(other, "a"))


def test_what_cannot_be_kept_is_refused_before_anything_moves(drive):
    session = drive(n_features=None)
    with pytest.raises(InvalidRequest, match="features of decision must be numbers of 64 bits"):
        session.decide(DecisionRequest({"age": 10**30}))
    assert (session.seq, session.learner.columns, session.outage) == (0, None, None)
    session.decide(DecisionRequest({"zip": 1}))
    assert replayed(session, from_start=True).same


def test_going_back_keeps_the_places_of_names(drive):
    session = drive(n_features=None)
    for x in people(5):
        session.outcome(OutcomeRequest(session.decide(DecisionRequest(x)).id, hit=True))
    session.snapshot()
    seq = session.seq
    for x in people(60):
        session.outcome(OutcomeRequest(session.decide(DecisionRequest(x)).id, hit=True))
    names = session.learner.columns.names
    session.decide(DecisionRequest({"late 3": 1.0}, "before"))
    session.rollback(seq)
    assert session.learner.columns.names == names
    session.outcome(OutcomeRequest("before", hit=True))
    session.rollback(0)  # when it had seen no row at all
    session.decide(DecisionRequest({"new": 1.0}))
    assert session.learner.columns.names == [*names, "new"]
    assert replayed(session, from_start=True).same


def test_erased_rows_leave_no_values_behind(drive):
    session = drive(n_features=None)
    session.decide(DecisionRequest({"age": 41, "city": "Secretville"}, "a"))
    session.erase(["a"])
    found = session.find("a")
    assert found.full()["features"] is None
    assert "Secretville" not in repr(found.body)


@pytest.mark.slow
def test_numbers_of_all_sizes_and_words_are_learnt(drive):
    """The world of the issue, where hashed names ended at .61."""
    X, y = world_of_people(5_000)
    session = drive(n_features=None)
    right = []
    for x, wanted in zip(X, y, strict=True):
        entry = session.decide(DecisionRequest(x))
        right.append(LABELS[wanted] in entry.top)
        session.outcome(OutcomeRequest(entry.id, hit=LABELS[wanted] in entry.labels))
    assert np.mean(right[-1_000:]) >= 0.98


def test_new_columns_without_end_take_no_memory(drive):
    columns = Columns.infer([{"age": i % 9, "city": "Rome" if i % 2 else "Oslo"} for i in range(30)])
    session = drive(n_features=None, columns=columns)
    for i in range(30):
        session.decide(DecisionRequest({"age": 1, "city": "Rome"} | {f"{i}.{n}": n for n in range(10)}))
    warnings = session.service.column_warnings.by_column
    assert (len(warnings), warnings["0.0"]) == (100, "column '0.0' is new: it is left out")
    assert session.service.column_warnings.n_decisions == 30
