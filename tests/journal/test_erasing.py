"""Forgetting people: features and context are nowhere any more, and what remains still verifies."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from journal_kit import replayed, sha256_of
from service_kit import Clock, rows
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.journal import sqlite
from superarm.journal.changes import Erase, Freeze
from superarm.journal.errors import JournalDamaged
from superarm.journal.export import export
from superarm.journal.snapshots import take_snapshot
from superarm.journal.verify import verify
from superarm.service import upkeep, views
from superarm.service.errors import DecisionErased, InvalidRequest, UnknownDecision
from superarm.service.http.metrics import service_metrics
from superarm.service.requests import DecisionRequest, OutcomeRequest

SECRET = np.array([0.12345, 6.789, -3.25, 1.5, 77.125], np.float32)
WORD = "a-name-that-nobody-may-keep"


def fill(session, n, seed=0, answered=True):
    X = rows(n, seed)
    for start in range(0, n, 20):
        turn = range(start, min(start + 20, n))
        session.together([DecisionRequest(X[i], f"{seed}.{i}", context={"n": i}) for i in turn])
        if answered:
            session.together([OutcomeRequest(f"{seed}.{i}", hit=i % 2 == 0) for i in turn])


def compact(session):
    session.snapshot()


def nowhere(folder):
    found = [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and (SECRET.tobytes() in file.read_bytes() or WORD.encode() in file.read_bytes())
    ]
    assert found == []


@pytest.mark.parametrize("where", ["fresh", "after a snapshot", "open"])
def test_an_erased_decision_is_in_no_file_and_the_rest_verifies(drive, tmp_path, where):
    session = drive(keep_snapshots=1)
    fill(session, 150)
    session.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    if where != "open":
        session.outcome(OutcomeRequest("person", hit=True))
    fill(session, 150, 1)
    if where == "after a snapshot":
        compact(session)
    before = session.model_file()
    assert session.erase(ids=["person"]) == 1
    nowhere(tmp_path)
    entry = session.find("person")
    told = entry.full()
    assert (told["features"], told["context"], told["erased"]) == (None, None, True)
    assert told["labels"]  # what was shown is still known
    assert session.model_file() == before  # what was learnt stays
    with pytest.raises(DecisionErased):
        session.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    assert session.erase(ids=["person"]) == 0
    if where == "open":
        outcome = session.outcome(OutcomeRequest("person", hit=True)).outcome
        assert (outcome["hit"], outcome["learnt"]) == (True, False)
    fill(session, 20, 2)
    for from_start in (False, True):
        done = replayed(session, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(session)
    assert replayed(session, from_start=True).snapshots_loaded
    found = verify(session.store.path)
    assert found.ok, found.problems
    assert found.erased == 1
    model = session.model_file()
    session.store.close()
    session = drive(keep_snapshots=1)
    assert session.model_file() == model
    nowhere(tmp_path)
    assert export(session.store, tmp_path / "log.jsonl")[1] == 1  # one was left out
    assert '"person"' not in (tmp_path / "log.jsonl").read_text()
    assert [change["what"] for change in session.changes()] == ["erase", "erase"]


def test_replay_and_verify_count_each_decision_that_was_not_compared(drive):
    """After an erasure the next snapshot is loaded: the decisions before it are not compared."""
    session = drive()
    fill(session, 200)
    session.erase(ids=["0.7"])
    fill(session, 2, 1)
    session.snapshot()
    fill(session, 1, 2)
    path = session.store.path
    done = replayed(session, from_start=True)
    assert done.snapshots_loaded
    assert done.decisions < 30  # the first batch, and what came after the snapshot
    assert done.decisions + done.unchecked == 203
    session.close()
    told = CliRunner().invoke(app, ["verify", str(path)]).output
    assert f"decisions not compared, since content was erased: {done.unchecked}\n" in told
    assert f"intact, and the replay agrees: {done.decisions} decisions" in told
    report = json.loads(CliRunner().invoke(app, ["verify", str(path), "--json"]).output)
    assert (report["compared"], report["unchecked"]) == (done.decisions, done.unchecked)


def test_everything_older_than_a_time(drive, tmp_path):
    clock = Clock()
    session = drive(keep_snapshots=1, clock=clock)
    for seed in range(4):
        fill(session, 120, seed)
        compact(session)
        clock.now += 1000.0
    assert session.erase(before=clock.now - 2500.0) == 240
    assert session.erase(before=clock.now - 2500.0) == 0
    gone = [event.id for event in session.store.events() if event.erased]
    assert len(gone) == 240
    assert {name.split(".")[0] for name in gone} == {"0", "1"}
    assert verify(session.store.path).ok
    fill(session, 10, 9)
    assert replayed(session, from_start=True).same
    assert session.find("2.7").full()["context"] == {"n": 7}


def test_a_time_in_milliseconds_does_not_erase_everything(drive):
    session = drive()
    fill(session, 3)
    for before in (time.time() * 1000.0, time.time() + 120.0, 1e308):
        with pytest.raises(
            InvalidRequest, match="before of erase must be a time in the past, in seconds since 1970"
        ):
            session.erase(before=before)
    assert session.erase(before=time.time()) == 3


def test_a_snapshot_that_stands_too_near_tells_a_row_and_goes(drive):
    session = drive()
    fill(session, 200)
    session.snapshot()
    before = session.seq
    session.decide(DecisionRequest(SECRET, "person"))
    session.outcome(OutcomeRequest("person", hit=True))
    session.snapshot()  # the difference of the two is this one row
    near = session.seq
    fill(session, 200, 1)
    session.erase(ids=["person"])
    kept = session.kept()
    assert before in kept
    assert near not in kept
    assert not replayed(session).compared  # all that follows that snapshot is passed by way of the next
    assert replayed(session, from_start=True).same


def test_nobody_of_that_name(drive):
    session = drive()
    with pytest.raises(UnknownDecision):
        session.erase(ids=["nobody"])


def test_retention_while_it_runs(drive, tmp_path):
    """In turns, beside requests; see upkeep.py."""
    clock = Clock()
    session = drive(keep_snapshots=1, snapshot_every=100, retain=500.0, clock=clock)
    session.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    session.outcome(OutcomeRequest("person", hit=True))
    fill(session, 120)
    clock.now += 1000.0
    service = session.service

    async def main():
        await service.start()
        for i, x in enumerate(rows(100, 5)):
            await service.decide(DecisionRequest(x, f"new{i}"))
        while not (await service.read(views.decision_details, "person")).erased:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert not (await service.read(views.decision_details, "new5")).erased
        assert service.upkeep.failures == 0
        await service.stop()

    asyncio.run(asyncio.wait_for(main(), 60))
    nowhere(tmp_path)
    assert verify(tmp_path / "events.db").ok


def test_an_erasure_that_leaves_something_on_the_disk_is_unfinished_and_tried_again(drive, tmp_path):
    """Somebody reads: the log cannot be emptied, and the answer, the status and the metrics say so."""
    session = drive()
    session.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    fill(session, 120)
    reader = sqlite3.connect(tmp_path / "events.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    service = session.service

    async def main():
        await service.start()
        told = await service.change(Erase(ids=["person"]))
        assert (told.erased, told.finished) == (1, False)
        again = await service.change(Erase(ids=["person"]))
        assert (again.erased, again.finished) == (0, False)
        assert any("still on the disk" in sentence for sentence in service.problems())
        metrics = {one.name: one.samples[0].value for one in service_metrics(service) if one.samples}
        assert metrics["superarm_erasure_unfinished"] == 1
        reader.close()
        while service.problems():
            await asyncio.sleep(0.05)
        await service.stop()

    asyncio.run(asyncio.wait_for(main(), 30))
    nowhere(tmp_path)


def test_an_unfinished_erasure_is_finished_by_the_next_start(drive, tmp_path):
    session = drive()
    session.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    fill(session, 120)
    reader = sqlite3.connect(tmp_path / "events.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    session.erase(ids=["person"])
    assert session.service.model.erasure_problem is not None
    session.store.close()
    reader.close()
    again = drive()
    assert again.service.model.erasure_problem is None
    nowhere(tmp_path)


def test_the_command_erases_by_age_only_with_a_clock_that_can_be_right(drive, tmp_path):
    clock = Clock()
    clock.now = time.time() - 400 * 86_400.0
    session = drive(clock=clock)
    session.decide(DecisionRequest(SECRET, "person"))
    session.close()
    command = ["erase", str(tmp_path / "events.db"), "--older", "90d", "--json"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "the clock is 400 days after the last event" in str(refused.exception)
    assert "--trust-clock" in str(refused.exception)
    assert json.loads(CliRunner().invoke(app, [*command, "--trust-clock"]).stdout)["erased"] == 1


@pytest.mark.parametrize("jump", [400 * 86_400.0, -400 * 86_400.0])
def test_a_clock_that_is_far_from_the_last_event_neither_erases_nor_expires(drive, jump):
    clock = Clock()
    clock.now = 1e9
    session = drive(clock=clock)
    session.decide(DecisionRequest(SECRET, "person"))
    session.store.close()
    clock = Clock()
    clock.now = 1e9 + jump
    options = {"timeout": 10.0, "retain": 100.0}
    session = drive(clock=clock, **options)

    async def main(service, seconds):
        await service.start()
        await asyncio.sleep(seconds)
        found = await service.read(views.decision_details, "person")
        trouble = service.problems()
        await service.queue.close()
        await service.upkeep.stop()
        return found, trouble

    found, trouble = asyncio.run(main(session.service, 0.3))
    assert (found.state, found.erased) == ("pending", False)
    assert any("days" in sentence and "--trust-clock" in sentence for sentence in trouble)
    session.store.close()
    if jump > 0:
        session = drive(clock=clock, trust_clock=True, **options)
        found, trouble = asyncio.run(main(session.service, 0.5))
        assert (found.state, found.erased, trouble) == ("expired", True, ())


@pytest.mark.parametrize("jump", [400 * 86_400.0, -400 * 86_400.0])
def test_a_wrong_clock_is_not_used_by_the_starts_after_the_first_either(drive, jump):
    """Its time is in no event, so each start finds it as far from the last one."""
    clock = Clock()
    clock.now = 1e9
    session = drive(clock=clock)
    session.decide(DecisionRequest(SECRET, "person"))
    session.close()
    clock.now += jump
    for name in ("first", "second", "third"):
        session = drive(clock=clock, timeout=3_600.0, default_outcome=False, retain=7_200.0)
        assert session.service.model.clock_problem is not None
        session.decide(DecisionRequest(SECRET, name))
        assert (session.expire(), session.find("person").erased) == (0, False)
        assert 0.0 <= session.find(name).record.decision.time - 1e9 < 60.0
        session.close()
    clock.now = 1e9 + 60.0
    assert drive(clock=clock).service.model.clock_problem is None


def test_a_snapshot_that_an_erasure_has_overtaken_is_not_kept(drive, monkeypatch):
    """Beside the snapshot that the erasure keeps it would reveal what lies between the two."""
    session = drive()
    session.decide(DecisionRequest(SECRET, "person"))
    fill(session, 120)
    service, before, gate = session.service, session.seq, threading.Event()

    def slow(projector, at):
        if projector is not service.model.projector:
            gate.wait(10.0)
        return take_snapshot(projector, at)

    async def main():
        await service.start()
        snapshot = asyncio.create_task(service.upkeep.snapshot())
        await asyncio.sleep(0.1)
        await service.change(Erase(ids=["person"]))
        gate.set()
        await snapshot
        await service.queue.close()
        await service.upkeep.stop()

    monkeypatch.setattr(upkeep, "take_snapshot", slow)
    asyncio.run(asyncio.wait_for(main(), 30))
    assert session.kept() == [0, before + 1]
    assert session.store._select("SELECT DISTINCT seq FROM parts ORDER BY seq") == [(0,), (before + 1,)]


def test_a_change_beside_an_unfinished_erasure_is_finished(drive, tmp_path):
    session = drive()
    fill(session, 120)
    with closing(sqlite3.connect(tmp_path / "events.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()

        async def main():
            await session.service.start()
            erased = await session.service.change(Erase(ids=["0.1"]))
            frozen = await session.service.change(Freeze())
            assert (erased.finished, frozen.finished) == (False, True)
            await session.service.stop()

        asyncio.run(asyncio.wait_for(main(), 30))


def test_an_erasure_is_finished_after_an_outage_at_the_start(drive, tmp_path):
    """The connection of the read-only start used to stay open, in the midst of reading."""
    session = drive()
    fill(session, 3)
    session.close()
    lock = tmp_path / "events.db.lock"
    lock.unlink()
    lock.mkdir()
    session = drive()
    assert session.service.outage is not None
    lock.rmdir()
    session.recover()
    session.decide(DecisionRequest(SECRET, "person"))
    session.erase(ids=["person"])
    assert session.service.model.erasure_problem is None


def test_a_damaged_log_is_found_when_an_outage_at_the_start_ends(drive, tmp_path, monkeypatch):
    session = drive()
    fill(session, 3)
    session.close()
    lock = tmp_path / "events.db.lock"
    lock.unlink()
    lock.mkdir()
    session, checked = drive(), []
    monkeypatch.setattr(sqlite, "check_log", checked.append)
    lock.rmdir()
    session.recover()
    assert checked == [session.store]


def test_of_two_near_snapshots_the_pinned_one_stays(drive):
    session = drive()
    fill(session, 100)
    session.snapshot()
    near = session.seq
    session.decide(DecisionRequest(SECRET, "person"))
    session.outcome(OutcomeRequest("person", hit=True))
    session.snapshot()
    pinned = session.seq
    fill(session, 200, 1)
    session.rollback(pinned)
    session.erase(ids=["person"])
    assert pinned in session.kept()
    assert near not in session.kept()


def test_an_erasure_that_erased_nothing_is_not_counted_in_the_journal(drive, monkeypatch):
    session = drive()
    fill(session, 3)
    session.erase(ids=["0.1"])
    monkeypatch.setattr(session.store, "count_erased", None)
    assert session.erase(ids=["0.1"]) == 0


def test_a_damaged_decision_that_is_to_be_erased_is_not_unknown(drive, tmp_path):
    session = drive()
    fill(session, 3)
    session.close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        connection.execute("UPDATE events SET x = x'00' WHERE seq = 2")
        connection.commit()
    session = drive()
    with pytest.raises(JournalDamaged, match="event 2 of journal"):
        session.erase(ids=["0.1"])
    with pytest.raises(UnknownDecision, match="ids of erase must be those of decisions"):
        session.erase(ids=["nobody"])
