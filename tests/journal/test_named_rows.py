"""Rows with names in a journal: kept as they came, the same bits after any restart."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, replayed, sha256_of
from people import people as world_of_people
from service_kit import LABELS

from superarm.data.columns import Columns
from superarm.errors import InvalidInput
from superarm.learners.registry import make
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.request_errors import Conflict

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
    driver = drive(learner=learner, n_features=None, shadows=["set-logit:explore=1.0"])
    params = {name: getattr(driver.learner, name) for name in ("uniform",) if hasattr(driver.learner, name)}
    twin = make(learner, labels=LABELS, set_size=2, **params)
    waiting = []
    for i, x in enumerate(people(120)):
        entry, own = driver.decide(DecisionRequest(x)), twin.decide(x)
        assert entry.decision.labels == own.labels
        assert entry.full()["features"] == x
        waiting.append((entry.id, own))
        if i % 3:
            id_, late = waiting.pop(len(waiting) // 2)
            driver.outcome(OutcomeRequest(id_, hit=i % 2 == 0))
            twin.update(late, hit=i % 2 == 0)
        if i == 60:
            driver.snapshot()
            driver.projector.records.clear()  # what is read from the journal is as good as what is remembered
    assert all_bits(driver.learner) == all_bits(twin)
    model, reports = driver.model_file(), driver.reports()
    for from_start in (False, True):
        done = replayed(driver, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(driver)
    driver.store.close()
    again = drive(shadows=["set-logit:explore=1.0"])
    assert again.model_file() == model
    assert repr(again.reports()) == repr(reports)


def test_asked_again_the_order_of_names_does_not_matter(drive):
    driver = drive(n_features=None)
    first = driver.decide(DecisionRequest({"age": 41, "city": "Rome"}, "a"))
    assert driver.decide(DecisionRequest({"city": "Rome", "age": 41.0}, "a")).shown() == first.shown()
    for other in ({"age": 42, "city": "Rome"}, {"age": 41}, np.zeros(driver.learner.n_features)):
        with pytest.raises(Conflict, match="features"):
            driver.decide(DecisionRequest(other, "a"))


def test_what_cannot_be_kept_is_refused_before_anything_moves(drive):
    driver = drive(n_features=None)
    with pytest.raises(InvalidInput, match="features of decision must be numbers of 64 bits"):
        driver.decide(DecisionRequest({"age": 10**30}))
    assert (driver.seq, driver.learner.columns, driver.outage) == (0, None, None)
    driver.decide(DecisionRequest({"zip": 1}))
    assert replayed(driver, from_start=True).same


def test_going_back_keeps_the_places_of_names(drive):
    driver = drive(n_features=None)
    for x in people(5):
        driver.outcome(OutcomeRequest(driver.decide(DecisionRequest(x)).id, hit=True))
    driver.snapshot()
    seq = driver.seq
    for x in people(60):
        driver.outcome(OutcomeRequest(driver.decide(DecisionRequest(x)).id, hit=True))
    names = driver.learner.columns.names
    driver.decide(DecisionRequest({"late 3": 1.0}, "before"))
    driver.rollback(seq)
    assert driver.learner.columns.names == names
    driver.outcome(OutcomeRequest("before", hit=True))
    driver.rollback(0)  # when it had seen no row at all
    driver.decide(DecisionRequest({"new": 1.0}))
    assert driver.learner.columns.names == [*names, "new"]
    assert replayed(driver, from_start=True).same


def test_erased_rows_leave_no_values_behind(drive):
    driver = drive(n_features=None)
    driver.decide(DecisionRequest({"age": 41, "city": "Secretville"}, "a"))
    driver.erase(["a"])
    found = driver.find("a")
    assert found.full()["features"] is None
    assert "Secretville" not in repr(found.body)


@pytest.mark.slow
def test_numbers_of_all_sizes_and_words_are_learnt(drive):
    """The world of the issue, where hashed names ended at .61."""
    X, y = world_of_people(5_000)
    driver = drive(n_features=None)
    right = []
    for x, wanted in zip(X, y, strict=True):
        entry = driver.decide(DecisionRequest(x))
        right.append(LABELS[wanted] in entry.top)
        driver.outcome(OutcomeRequest(entry.id, hit=LABELS[wanted] in entry.labels))
    assert np.mean(right[-1_000:]) >= 0.98


def test_new_columns_without_end_take_no_memory(drive):
    columns = Columns.infer([{"age": i % 9, "city": "Rome" if i % 2 else "Oslo"} for i in range(30)])
    driver = drive(n_features=None, columns=columns)
    for i in range(30):
        driver.decide(DecisionRequest({"age": 1, "city": "Rome"} | {f"{i}.{n}": n for n in range(10)}))
    warnings = driver.service.column_warnings.by_column
    assert (len(warnings), warnings["0.0"]) == (100, "column '0.0' is new: it is left out")
    assert driver.service.column_warnings.n_decisions == 30
