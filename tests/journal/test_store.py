"""JournalStore: one suite, which SQLite and PostgreSQL both pass."""

from __future__ import annotations

import pytest

from superarm.journal.backends import create_journal, open_store
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import (
    ANSWER,
    CHANGE,
    CORRECTION,
    DECISION,
    ERASURE,
    OUTCOME,
    TIMEOUT,
    AnswerBody,
    Event,
    OutcomeBody,
    chain_start,
    digest_content,
)
from superarm.journal.statements import SET_PROGRESS
from superarm.journal.store import Snapshot

META = {"kind": "test", "made": 1.0}
FIRST = Snapshot(0, 1.0, {"model": b"first"}, {"n": 0}, {"superarm": "0"})


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request, tmp_path):
    """Opens stores on one new journal; each is closed at the end."""
    stores, journal = [], tmp_path / "events.db"
    if request.param == "postgresql":
        journal = request.getfixturevalue("database").fresh()
    assert create_journal(journal, META, FIRST)
    assert not create_journal(journal, META, FIRST)

    def make(**options):
        stores.append(open_store(journal, **options))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def decision(id_, time=10.0, x=b"row", context=b'{"a":1}'):
    return Event(0, time, DECISION, id_, x, context, b'{"k":1}', digest_content(x, context))


def outcome(about, id_, time=11.0):
    return Event.new(time, OUTCOME, OutcomeBody(about, True), id_)


def test_events_get_numbers_and_a_chain_and_come_back_as_they_went_in(opened):
    store = opened()
    assert (store.head().seq, store.head().digest, store.meta()) == (0, chain_start(META), META)
    events = [decision("a"), decision("b", x=b""), Event.new(12.0, CHANGE, {"what": "freeze"})]
    assert store.append(events) == []
    assert [event.seq for event in events] == [1, 2, 3]
    assert (store.head().seq, store.head().time, store.head().digest) == (3, 12.0, events[-1].chain_digest)
    back = list(store.events())
    assert [event.values for event in back] == [event.values for event in events]
    assert [event.seq for event in store.events(1, 2)] == [2]
    assert list(store.events(3)) == []
    looking = opened(read_only=True)
    assert [event.values for event in looking.events()] == [event.values for event in events]


def test_the_numbers_go_on_after_a_restart(opened):
    store = opened()
    store.append([decision("a")])
    store.close()
    store = opened()
    store.append([decision("b")])
    assert [event.seq for event in store.events()] == [1, 2]


def test_the_decision_and_the_outcome_of_an_id_are_found(opened):
    store = opened()
    store.append([decision("a"), decision("b")])
    more = [Event.new(20.0 + i, ANSWER, AnswerBody(f"person {i}", True), "a") for i in range(3)]
    undo = Event.new(30.0, CORRECTION, AnswerBody("person 0", target_seq=3), "a")
    store.append([outcome(1, "a"), *more, undo])
    found = store.events_by_id(["a", "b", "nobody"])
    assert [event.kind for event in found["a"]] == [DECISION, OUTCOME]
    assert [event.id for event in found["b"]] == ["b"]
    assert "nobody" not in found
    assert store.events_by_id([]) == {}


def test_pending_are_those_without_outcome_or_timeout(opened):
    store = opened()
    store.append([decision(f"d{i}", time=float(i)) for i in range(6)])
    store.append([outcome(1, "d0"), Event.new(9.0, TIMEOUT, OutcomeBody(3, None), "d2")])
    assert [one.id for one in store.pending(10)] == ["d1", "d3", "d4", "d5"]
    assert [one.id for one in store.pending(2, after=2)] == ["d3", "d4"]
    assert [one.id for one in store.pending_before(3.5, 10)] == ["d1", "d3"]
    assert [event.id for event in store.recent_decisions(2)] == ["d5", "d4"]


def test_snapshots_are_kept_checked_pinned_and_dropped(opened):
    store = opened()
    assert store.snapshot(0).parts == {"model": b"first"}
    for i in range(3):
        store.append([decision(f"d{i}")])
        parts = {"model": bytes([i]) * 3_000_000, "shadow:x": b"s"}
        store.write_snapshot(Snapshot(i + 1, 5.0, parts, {"n": i}, {"superarm": "1"}))
    assert [note.seq for note in store.snapshots()] == [0, 1, 2, 3]
    found = store.snapshot(2)
    assert (found.parts["model"], found.parts["shadow:x"], found.totals) == (
        b"\1" * 3_000_000,
        b"s",
        {"n": 1},
    )
    assert store.pin_snapshot(1)
    assert not store.pin_snapshot(99)
    store.append([decision("d3")])
    store.write_snapshot(Snapshot(4, 5.0, {"model": b"4"}, {}, {}), 2)
    assert [note.seq for note in store.snapshots()] == [0, 1, 3, 4]
    store.write_snapshot(Snapshot(4, 5.0, {"model": b"4"}, {}, {}), 9)
    assert [note.seq for note in store.snapshots()] == [0, 1, 3, 4]
    with pytest.raises(JournalDamaged, match="is missing"):
        store.snapshot(2)
    assert store.snapshot(1).totals == {"n": 0}


def test_a_snapshot_that_is_there_stays_as_it_is(opened):
    store = opened()
    store.append([decision("a")])
    store.write_snapshot(Snapshot(1, 5.0, {"model": b"x" * 3_000_000}, {}, {}))
    before = store.snapshot(1)
    store.write_snapshot(Snapshot(1, 6.0, {"model": b"another"}, {}, {}))  # say, of another kind of processor
    assert store.snapshot(1) == before


def test_a_snapshot_from_before_an_erasure_is_not_kept(opened):
    store = opened()
    erasure = Event.new(9.0, ERASURE, {"ids": ["a"]})
    store.append([decision("a"), decision("b"), erasure])
    store.write_snapshot(Snapshot(3, 5.0, {"model": b"after"}, {}, {}))
    store.erase(erasure.seq, ["a"], None)
    store.write_snapshot(Snapshot(2, 5.0, {"model": b"before"}, {}, {}))
    assert [note.seq for note in store.snapshots()] == [0, 3]
    assert [tuple(row) for row in store._select("SELECT DISTINCT seq FROM parts ORDER BY seq")] == [
        (0,),
        (3,),
    ]


@pytest.mark.parametrize("how", ["ids", "before"])
def test_erasing_leaves_the_chain_whole(opened, how):
    store = opened()
    store.append([decision("a", time=1.0), decision("b", time=5.0)])
    body = {"ids": ["a"]} if how == "ids" else {"before": 2.0}
    erasure = Event.new(9.0, ERASURE, body)
    store.append([erasure])
    assert store.has_content_before(2.0)
    assert store.erase(erasure.seq, body.get("ids"), body.get("before")) == 1
    assert store.erase(erasure.seq, body.get("ids"), body.get("before")) == 0
    store.purge_erased()
    assert not store.has_content_before(2.0)
    assert store.has_content_before(6.0)
    first, second, _ = store.events()  # checks every digest
    assert (first.x, first.context, first.erased) == (None, None, erasure.seq)
    assert (second.x, second.erased) == (b"row", None)
    assert [event.seq for event in store.changes()] == [3]


def test_progress(opened):
    store = opened()
    assert store.stored_number("x") == 0
    for value in (7, 9):
        store._execute_all([(SET_PROGRESS, ("x", value))])
    assert (store.stored_number("x"), store.stored_number("y")) == (9, 0)


def test_it_can_be_checked_reopened_and_measured(opened):
    store = opened()
    store.append([decision("a")])
    store.check()
    store.reopen()
    store.append([decision("b")])
    assert list(store.problems()) == []
    assert store.size() > 1000
    assert [event.id for event in store.events()] == ["a", "b"]
