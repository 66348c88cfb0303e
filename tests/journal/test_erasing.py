"""Forgetting people: features and context are nowhere any more, and what remains still verifies."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
from journal_kit import replayed, sha256_of
from service_kit import Clock, rows
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput
from superarm.journal import sqlite
from superarm.journal.changes import Erase, Freeze
from superarm.journal.errors import JournalDamaged
from superarm.journal.export import export
from superarm.journal.projector import Projector
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest, views
from superarm.service.metrics import service_metrics
from superarm.service.request_errors import DecisionErased, UnknownDecision

SECRET = np.array([0.12345, 6.789, -3.25, 1.5, 77.125], np.float32)
WORD = "a-name-that-nobody-may-keep"


def fill(driver, n, seed=0, answered=True):
    X = rows(n, seed)
    for start in range(0, n, 20):
        batch = range(start, min(start + 20, n))
        driver.together([DecisionRequest(X[i], f"{seed}.{i}", context={"n": i}) for i in batch])
        if answered:
            driver.together([OutcomeRequest(f"{seed}.{i}", hit=i % 2 == 0) for i in batch])


@contextmanager
def reading(folder):
    """Read the journal meanwhile, as another process may: its log cannot be emptied."""
    with closing(sqlite3.connect(folder / "events.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        yield


def nowhere(folder):
    names = [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and (SECRET.tobytes() in file.read_bytes() or WORD.encode() in file.read_bytes())
    ]
    assert names == []


@pytest.mark.parametrize("where", ["fresh", "after a snapshot", "open"])
def test_an_erased_decision_is_in_no_file_and_the_rest_verifies(drive, tmp_path, where):
    driver = drive(keep_snapshots=1)
    fill(driver, 150)
    driver.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    if where != "open":
        driver.outcome(OutcomeRequest("person", hit=True))
    fill(driver, 150, 1)
    if where == "after a snapshot":
        driver.snapshot()
    before = driver.model_file()
    assert driver.erase(ids=["person"]) == 1
    nowhere(tmp_path)
    entry = driver.find("person")
    record = entry.full()
    assert (record["features"], record["context"], record["erased"]) == (None, None, True)
    assert record["labels"]  # what was shown is still known
    assert driver.model_file() == before  # what was learnt stays
    with pytest.raises(DecisionErased):
        driver.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    assert driver.erase(ids=["person"]) == 0
    if where == "open":
        outcome = driver.outcome(OutcomeRequest("person", hit=True)).outcome
        assert (outcome["hit"], outcome["learnt"]) == (True, False)
    fill(driver, 20, 2)
    for from_start in (False, True):
        done = replayed(driver, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(driver)
    assert replayed(driver, from_start=True).snapshots_loaded
    result = verify(driver.store.path)
    assert result.ok, result.problems
    assert result.erased == 1
    model = driver.model_file()
    driver.store.close()
    driver = drive(keep_snapshots=1)
    assert driver.model_file() == model
    nowhere(tmp_path)
    assert export(driver.store, tmp_path / "log.jsonl")[1] == 1  # one was left out
    assert '"person"' not in (tmp_path / "log.jsonl").read_text()
    assert [change["what"] for change in driver.changes()] == ["erase", "erase"]


def test_replay_and_verify_count_each_decision_that_was_not_compared(drive):
    """After an erasure the next snapshot is loaded: the decisions before it are not compared."""
    driver = drive()
    fill(driver, 200)
    driver.erase(ids=["0.7"])
    fill(driver, 2, 1)
    driver.snapshot()
    fill(driver, 1, 2)
    path = driver.store.path
    done = replayed(driver, from_start=True)
    assert done.snapshots_loaded
    assert done.decisions < 30  # the first batch, and what came after the snapshot
    assert done.decisions + done.unchecked == 203
    driver.close()
    output = CliRunner().invoke(app, ["verify", str(path)]).output
    told = "decisions not compared (erased, or their model cannot be rebuilt)"
    assert f"{told}: {done.unchecked}\n" in output  # and not that all of these were erased
    assert f"intact, and the replay agrees: {done.decisions} decisions" in output
    report = json.loads(CliRunner().invoke(app, ["verify", str(path), "--json"]).output)
    assert (report["compared"], report["unchecked"]) == (done.decisions, done.unchecked)


def test_everything_older_than_a_time(drive, tmp_path):
    clock = Clock()
    driver = drive(keep_snapshots=1, clock=clock)
    for seed in range(4):
        fill(driver, 120, seed)
        driver.snapshot()
        clock.now += 1000.0
    assert driver.erase(before=clock.now - 2500.0) == 240
    assert driver.erase(before=clock.now - 2500.0) == 0
    gone = [event.id for event in driver.store.events() if event.erased]
    assert len(gone) == 240
    assert {name.split(".")[0] for name in gone} == {"0", "1"}
    assert verify(driver.store.path).ok
    fill(driver, 10, 9)
    assert replayed(driver, from_start=True).same
    assert driver.find("2.7").full()["context"] == {"n": 7}


def test_a_time_in_milliseconds_does_not_erase_everything(drive):
    driver = drive()
    fill(driver, 3)
    for before in (time.time() * 1000.0, time.time() + 120.0, 1e308):
        with pytest.raises(
            InvalidInput, match="before of erase must be a time in the past, in seconds since 1970"
        ):
            driver.erase(before=before)
    assert driver.erase(before=time.time()) == 3


def test_a_snapshot_that_stands_too_near_tells_a_row_and_goes(drive):
    driver = drive()
    fill(driver, 200)
    driver.snapshot()
    before = driver.seq
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.outcome(OutcomeRequest("person", hit=True))
    driver.snapshot()  # the difference of the two is this one row
    near = driver.seq
    fill(driver, 200, 1)
    driver.erase(ids=["person"])
    kept = driver.kept()
    assert before in kept
    assert near not in kept
    assert not replayed(driver).compared  # all that follows that snapshot is passed by way of the next
    assert replayed(driver, from_start=True).same


def test_nobody_of_that_name(drive):
    driver = drive()
    with pytest.raises(UnknownDecision):
        driver.erase(ids=["nobody"])


def test_retention_while_it_runs(drive, tmp_path):
    """In batches of its own, beside requests (upkeep.py)."""
    clock = Clock()
    driver = drive(keep_snapshots=1, snapshot_every=100, retain=500.0, clock=clock)
    driver.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    driver.outcome(OutcomeRequest("person", hit=True))
    fill(driver, 120)
    clock.now += 1000.0
    service = driver.service

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
    driver = drive()
    driver.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    fill(driver, 120)
    service = driver.service

    async def main():
        await service.start()
        with reading(tmp_path):
            first = await service.change(Erase(ids=["person"]))
            assert (first.erased, first.finished) == (1, False)
            again = await service.change(Erase(ids=["person"]))
            assert (again.erased, again.finished) == (0, False)
            assert any("still on the disk" in sentence for sentence in service.problems())
            metrics = {one.name: one.samples[0].value for one in service_metrics(service) if one.samples}
            assert metrics["superarm_erasure_unfinished"] == 1
        while service.problems():
            await asyncio.sleep(0.05)
        await service.stop()

    asyncio.run(asyncio.wait_for(main(), 30))
    nowhere(tmp_path)


def test_an_unfinished_erasure_is_finished_by_the_next_start(drive, tmp_path):
    driver = drive()
    driver.decide(DecisionRequest(SECRET, "person", context={"name": WORD}))
    fill(driver, 120)
    with reading(tmp_path):
        driver.erase(ids=["person"])
        assert driver.service.follower.erasure_problem is not None
        driver.store.close()
    again = drive()
    assert again.service.follower.erasure_problem is None
    nowhere(tmp_path)


def test_the_command_erases_by_age_only_with_a_clock_that_can_be_right(drive, tmp_path):
    clock = Clock()
    clock.now = time.time() - 400 * 86_400.0
    driver = drive(clock=clock)
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.close()
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
    driver = drive(clock=clock)
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.store.close()
    clock = Clock()
    clock.now = 1e9 + jump
    options = {"timeout": 10.0, "retain": 100.0}
    driver = drive(clock=clock, **options)

    async def main(service, seconds):
        await service.start()
        await asyncio.sleep(seconds)
        decision = await service.read(views.decision_details, "person")
        trouble = service.problems()
        await service.queue.close()
        await service.upkeep.stop()
        return decision, trouble

    decision, trouble = asyncio.run(main(driver.service, 0.3))
    assert (decision.state, decision.erased) == ("pending", False)
    assert any("days" in sentence and "--trust-clock" in sentence for sentence in trouble)
    driver.store.close()
    if jump > 0:
        driver = drive(clock=clock, trust_clock=True, **options)
        decision, trouble = asyncio.run(main(driver.service, 0.5))
        assert (decision.state, decision.erased, trouble) == ("expired", True, ())


@pytest.mark.parametrize("jump", [400 * 86_400.0, -400 * 86_400.0])
def test_a_wrong_clock_is_not_used_by_the_starts_after_the_first_either(drive, jump):
    """Its time is in no event, so each start finds it as far from the last one."""
    clock = Clock()
    clock.now = 1e9
    driver = drive(clock=clock)
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.close()
    clock.now += jump
    for name in ("first", "second", "third"):
        driver = drive(clock=clock, timeout=3_600.0, default_outcome=False, retain=7_200.0)
        assert driver.service.follower.clock_problem is not None
        driver.decide(DecisionRequest(SECRET, name))
        assert (driver.expire(), driver.find("person").erased) == (0, False)
        assert 0.0 <= driver.find(name).record.decision.time - 1e9 < 60.0
        driver.close()
    clock.now = 1e9 + 60.0
    assert drive(clock=clock).service.follower.clock_problem is None


def test_a_snapshot_that_an_erasure_has_overtaken_is_not_kept(drive, monkeypatch):
    """Beside the snapshot that the erasure keeps it would reveal what lies between the two."""
    driver = drive()
    driver.decide(DecisionRequest(SECRET, "person"))
    fill(driver, 120)
    service, before, gate, take = driver.service, driver.seq, threading.Event(), Projector.snapshot

    def slow(projector, at):
        if projector is not service.follower.projector:
            gate.wait(10.0)
        return take(projector, at)

    async def main():
        await service.start()
        snapshot = asyncio.create_task(service.upkeep.snapshot())
        await asyncio.sleep(0.1)
        await service.change(Erase(ids=["person"]))
        gate.set()
        await snapshot
        await service.queue.close()
        await service.upkeep.stop()

    monkeypatch.setattr(Projector, "snapshot", slow)
    asyncio.run(asyncio.wait_for(main(), 30))
    assert driver.kept() == [0, before + 1]
    assert driver.store._select("SELECT DISTINCT seq FROM parts ORDER BY seq") == [(0,), (before + 1,)]


def test_a_change_beside_an_unfinished_erasure_is_finished(drive, tmp_path):
    driver = drive()
    fill(driver, 120)

    async def main():
        await driver.service.start()
        with reading(tmp_path):
            erased = await driver.service.change(Erase(ids=["0.1"]))
            frozen = await driver.service.change(Freeze())
        assert (erased.finished, frozen.finished) == (False, True)
        await driver.service.stop()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_an_erasure_is_finished_after_an_outage_at_the_start(drive, tmp_path):
    """The connection of the read-only start used to stay open, in the midst of reading."""
    driver = drive()
    fill(driver, 3)
    driver.close()
    lock = tmp_path / "events.db.lock"
    lock.unlink()
    lock.mkdir()
    driver = drive()
    assert driver.service.outage is not None
    lock.rmdir()
    driver.recover()
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.erase(ids=["person"])
    assert driver.service.follower.erasure_problem is None


def test_a_damaged_log_is_found_when_an_outage_at_the_start_ends(drive, tmp_path, monkeypatch):
    driver = drive()
    fill(driver, 3)
    driver.close()
    lock = tmp_path / "events.db.lock"
    lock.unlink()
    lock.mkdir()
    driver, checked = drive(), []
    monkeypatch.setattr(sqlite, "check_log", checked.append)
    lock.rmdir()
    driver.recover()
    assert checked == [driver.store]


def test_of_two_near_snapshots_the_pinned_one_stays(drive):
    driver = drive()
    fill(driver, 100)
    driver.snapshot()
    near = driver.seq
    driver.decide(DecisionRequest(SECRET, "person"))
    driver.outcome(OutcomeRequest("person", hit=True))
    driver.snapshot()
    pinned = driver.seq
    fill(driver, 200, 1)
    driver.rollback(pinned)
    driver.erase(ids=["person"])
    assert pinned in driver.kept()
    assert near not in driver.kept()


def test_an_erasure_that_erased_nothing_is_not_counted_in_the_journal(drive, monkeypatch):
    driver = drive()
    fill(driver, 3)
    driver.erase(ids=["0.1"])
    monkeypatch.setattr(driver.store, "count_erased", None)
    assert driver.erase(ids=["0.1"]) == 0


def test_a_damaged_decision_that_is_to_be_erased_is_not_unknown(drive, tmp_path):
    driver = drive()
    fill(driver, 3)
    driver.close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        connection.execute("UPDATE events SET x = x'00' WHERE seq = 2")
        connection.commit()
    driver = drive()
    with pytest.raises(JournalDamaged, match="event 2 of journal"):
        driver.erase(ids=["0.1"])
    with pytest.raises(UnknownDecision, match="ids of erase must be those of decisions"):
        driver.erase(ids=["nobody"])
