"""What hostile testing has found: requests, full disks, damage, links, failed commits, clocks, failed starts."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest
from journal_kit import Driver, replayed, sha256_of, sql, superarm
from service_kit import LABELS, Clock, D, rows

from superarm.errors import InvalidInput
from superarm.journal import statements
from superarm.journal.clock import SystemClock, clock_problem
from superarm.journal.errors import JournalDamaged, JournalLocked, JournalMismatch, JournalUnavailable
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.request_errors import Conflict, Overloaded, UnknownDecision

# ---------------------------------------------------------------- one request


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "context", [nested(254), nested(65), nested(5000), "x" * 70_000, {"a": object()}, "\ud800"]
)
def test_a_context_that_cannot_be_kept_is_refused_before_anything_moves(drive, context):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    with pytest.raises(InvalidInput, match="context of decision") as caught:
        driver.decide(DecisionRequest(rows(1)[0], "b", context=context))
    assert caught.value.field == "context"
    assert driver.learner.round == 1
    driver.decide(DecisionRequest(rows(1)[0], "c", context=nested(64)))
    assert replayed(driver).same


def test_a_context_with_a_long_integer_is_refused_with_the_limit(drive):
    with pytest.raises(InvalidInput, match=r"integers of at most 64 bits.* got a longer integer"):
        drive().decide(DecisionRequest(rows(1)[0], context={"n": [10**30]}))


@pytest.mark.parametrize("call", ["decide", "outcome", "expire", "freeze"])
def test_nothing_moves_before_the_commit(drive, monkeypatch, call):
    clock = Clock()
    driver = drive(timeout=5.0, default_outcome=True, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    before, totals = driver.model_file(), repr(driver.projector.totals.to_dict())
    clock.now += 10.0
    calls = {
        "decide": lambda: driver.decide(DecisionRequest(rows(2)[1], "b")),
        "outcome": lambda: driver.outcome(OutcomeRequest("a", hit=True)),
        "expire": driver.expire,
        "freeze": driver.freeze,
    }

    def fail(events, **_):
        raise JournalUnavailable("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(driver.store, "append", fail)
        with pytest.raises(JournalUnavailable):
            calls[call]()
    assert (driver.model_file(), repr(driver.projector.totals.to_dict())) == (before, totals)
    driver.recover()
    assert (driver.model_file(), repr(driver.projector.totals.to_dict())) == (before, totals)
    calls[call]()
    assert replayed(driver).sha256 == sha256_of(driver)


def test_a_commit_of_which_nobody_knows_whether_it_happened_is_found_out(drive, monkeypatch):
    """It did: the events are there, and are projected when the journal is up again."""
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    append = driver.store.append

    def fail_late(events, **_):
        append(events)
        raise JournalUnavailable("the answer got lost")

    with monkeypatch.context() as patch:
        patch.setattr(driver.store, "append", fail_late)
        with pytest.raises(JournalUnavailable):
            driver.outcome(OutcomeRequest("a", hit=True))
    driver.recover()
    assert driver.stats.learnt == 1
    assert driver.outcome(OutcomeRequest("a", hit=True)).outcome["learnt"]
    assert replayed(driver).sha256 == sha256_of(driver)


# ---------------------------------------------------------------- a snapshot that does not fit


def test_a_snapshot_that_does_not_fit_fails_like_every_write(drive):
    driver = drive(max_journal_mb=1)
    driver.run(100)
    driver.learner.metadata["ballast"] = "x" * 1_200_000
    with pytest.raises(JournalUnavailable):
        driver.snapshot()
    for late in (
        lambda: driver.decide(DecisionRequest(rows(1)[0], "late")),
        lambda: driver.outcome(OutcomeRequest("d1", hit=True)),
    ):
        with pytest.raises(JournalUnavailable):
            late()
    driver.learner.metadata.clear()
    driver.recover()
    assert driver.seq == 100
    driver.decide(DecisionRequest(rows(1)[0], "late"))
    assert [event.seq for event in driver.store.events()] == list(range(1, 102))
    assert verify(driver.store.path).ok


# ---------------------------------------------------------------- damage met on the way


def test_a_broken_newest_snapshot_does_not_stop_the_start(drive, tmp_path):
    driver = drive()
    for part in range(2):
        driver.run(20, f"{part}.", hits=lambda i: True, seed=part)
        driver.snapshot()
    model, newest = driver.model_file(), driver.kept()[-1]
    sql(driver, "UPDATE parts SET data = substr(data, 2) WHERE seq = ?", (newest,))
    driver.store.close()
    again = drive()
    assert again.model_file() == model
    assert again.replayed == 40
    assert again.service.follower.broken_snapshots == (newest,)
    assert any("snapshots are damaged" in sentence for sentence in again.problems())


def test_a_missing_event_is_told_and_nobody_hangs(drive):
    driver = drive()
    for id_ in "abc":
        driver.decide(DecisionRequest(rows(1)[0], id_))
    driver.snapshot()
    sql(driver, "DELETE FROM events WHERE id = 'a'")
    driver.projector.records.clear()
    service = driver.service

    async def main():
        await service.start()
        with pytest.raises(UnknownDecision):
            await service.outcome(OutcomeRequest("a", hit=True))
        with pytest.raises(JournalDamaged, match=r"event 2 of journal .* is not what was written"):
            await service.outcome(OutcomeRequest("b", hit=True))
        response = await asyncio.wait_for(service.outcome(OutcomeRequest("c", hit=True)), 5)
        assert response.outcome.learnt

        def stop():
            raise StopIteration

        with pytest.raises(RuntimeError):  # what a Future cannot hold
            await asyncio.wait_for(service.submit(stop), 5)
        await asyncio.wait_for(service.decide(DecisionRequest(rows(1)[0])), 5)
        await service.stop()

    asyncio.run(main())


def test_status_knows_a_turn_that_hangs(drive):
    service = drive().service
    assert service.ready
    assert service.problems() == ()

    async def main():
        await service.start()
        service.queue._began = time.monotonic() - 60.0
        assert service.batch_age > 59.0
        assert not service.ready
        assert "waiting for the disk" in service.problems()[0]
        service.queue._began = None
        await service.stop()

    asyncio.run(main())


# ---------------------------------------------------------------- nothing in the loop


def test_a_model_is_kept_in_pieces(drive, monkeypatch):
    monkeypatch.setattr(statements, "PIECE", 100)
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0]))
    driver.snapshot()
    pieces, longest = driver.store._select("SELECT count(*), max(length(data)) FROM parts WHERE seq = 1")[0]
    assert pieces > 10
    assert longest == 100
    model = driver.model_file()
    driver.store.close()
    assert drive().model_file() == model


def test_the_loop_goes_on_while_a_large_model_is_kept(drive, tmp_path):
    """80 MB: the copy is made in the loop, all else in other threads."""
    driver = drive(n_features=1_000_000, learner="softmax", snapshot_every=3)
    x = (np.array([5], np.int32), np.array([1.0], np.float32))
    driver.decide(DecisionRequest(x, "a"))
    size = len(driver.model_file())
    assert size > 20e6

    service = driver.service
    service.settings = replace(service.settings, snapshot_every=10**9)

    async def main():
        longest, ticks = 0.0, 0
        await service.start()
        await service.decide(DecisionRequest(x, "b"))
        task = asyncio.create_task(service.upkeep.snapshot())
        last = time.perf_counter()
        while not task.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
            ticks += 1
        await task
        assert service.follower.store.newest_snapshot() == 2
        await service.stop()
        return longest, ticks

    longest, ticks = asyncio.run(main())
    assert ticks > 5, longest  # as one call in the loop it would be one
    assert verify(tmp_path / "events.db", with_replay=False).ok


# ---------------------------------------------------------------- links


def test_a_journal_through_a_link_is_the_same_journal(drive, tmp_path):
    driver = drive()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "events.db")
    with pytest.raises(JournalLocked):
        Driver.open(link)
    driver.close()
    driver = Driver.open(link, keep_snapshots=1)
    driver.run(5)
    driver.snapshot()
    driver.close()
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]
    assert verify(tmp_path / "events.db").ok


# ---------------------------------------------------------------- what was not committed


def test_an_answer_whose_commit_failed_is_no_first_answer(drive, monkeypatch):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    service = driver.service

    def fail(events, **_):
        raise JournalUnavailable("no")

    async def main():
        await service.start()
        with monkeypatch.context() as patch:
            patch.setattr(service.store, "append", fail)
            both = [service.outcome(OutcomeRequest("a", hit=hit)) for hit in (True, False)]
            done = await asyncio.gather(*both, return_exceptions=True)
        assert [type(error) for error in done] == [JournalUnavailable, JournalUnavailable]
        service._retry_at = 0.0
        response = await service.outcome(OutcomeRequest("a", hit=False))
        assert response.outcome.hit is False
        with pytest.raises(Conflict):
            await service.outcome(OutcomeRequest("a", hit=True))
        await service.stop()

    asyncio.run(main())


def test_too_many_waiting_is_no_fault_of_the_journal(drive, monkeypatch):
    from superarm.service import commit_queue

    service = drive().service

    async def main():
        await service.start()
        await asyncio.sleep(0.1)
        monkeypatch.setattr(commit_queue, "MAX_WAITING", 3)
        asked = [service.decide(DecisionRequest(rows(1)[0])) for _ in range(5)]
        assert service.queue.n_waiting == 3
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in done[3:]] == [Overloaded, Overloaded]
        await service.stop()

    asyncio.run(main())


# ---------------------------------------------------------------- clocks, timeouts


@pytest.mark.parametrize("jump", [1e9, -1e9])
def test_a_clock_that_jumps_neither_stops_timeouts_nor_ends_all_waiting(drive, jump):
    """Ages are counted by the steady clock, which follows the other by a tenth."""
    clock, steady = Clock(), Clock()
    driver = drive(timeout=10.0, clock=SystemClock(clock, steady))

    def wait(seconds):
        clock.now += seconds
        steady.now += seconds

    driver.decide(DecisionRequest(rows(1)[0], "before"))
    wait(5.0)
    clock.now += jump
    driver.decide(DecisionRequest(rows(1)[0], "during"))
    assert driver.expire() == 0
    wait(6.2)
    assert driver.expire() == 1
    assert driver.find("before").outcome["timeout"]
    clock.now -= jump
    driver.decide(DecisionRequest(rows(1)[0], "after"))
    wait(5.0)
    assert driver.expire() == 1
    wait(6.2)
    assert driver.expire() == 1
    assert driver.stats.pending == 0


@pytest.mark.parametrize(
    ("seconds", "distance"),
    [
        (-7_200, "2 hours before"),
        (-170_000, "47 hours before"),
        (-180_000, "2 days before"),
        (40 * 86_400, "40 days after"),
    ],
)
def test_the_distance_of_a_wrong_clock_is_in_hours_below_two_days(seconds, distance):
    assert f"the clock is {distance} the last event" in clock_problem(1e9 + seconds, 1e9)


@pytest.mark.parametrize(
    "wrong", [{"timeout": -5.0}, {"timeout": 0.0}, {"timeout": float("nan")}, {"retain": -1}]
)
def test_settings_that_make_no_sense_are_refused(drive, wrong):
    with pytest.raises(InvalidInput, match="more than 0 seconds"):
        drive(**wrong)


def test_a_default_outcome_that_the_learner_cannot_use_is_refused(drive):
    with pytest.raises(InvalidInput, match=r"^default_outcome .* learns from labels"):
        drive(learner="perceptron", timeout=5.0, default_outcome=False)


def test_upkeep_survives_a_journal_that_is_away_for_a_moment(drive, monkeypatch):
    driver = drive(snapshot_every=1)
    driver.decide(DecisionRequest(rows(1)[0]))
    service, newest, failures = driver.service, driver.store.newest_snapshot, []

    def away():
        if len(failures) < 2:
            failures.append("away")
            raise JournalUnavailable("it is away")
        return newest()

    async def main():
        await service.start()
        while newest() < 1:
            await asyncio.sleep(0.01)
        await service.stop()

    monkeypatch.setattr(driver.store, "newest_snapshot", away)
    asyncio.run(asyncio.wait_for(main(), 20))
    assert len(failures) == 2


def test_one_duty_of_upkeep_that_fails_starves_no_other(drive, monkeypatch):
    driver = drive(snapshot_every=1, timeout=5.0)
    driver.decide(DecisionRequest(rows(1)[0]))
    service = driver.service

    def timeouts():
        raise ValueError("no")

    async def main():
        await service.start()
        while service.follower.store.newest_snapshot() < 1 or service.upkeep.error is None:
            await asyncio.sleep(0.01)
        assert any("upkeep fails: events: no" in sentence for sentence in service.problems())
        await service.stop()

    monkeypatch.setattr(service.upkeep, "timeouts", timeouts)
    asyncio.run(asyncio.wait_for(main(), 20))


# ---------------------------------------------------------------- memory, files of others


def test_the_cache_is_limited_in_bytes(drive):
    driver = drive(n_features=4096)
    driver.projector.records.most_bytes = 1 << 20
    for x in rows(100, d=4096):
        driver.decide(DecisionRequest(x))
    assert driver.projector.records.bytes <= 1 << 20
    assert 20 < len(driver.projector.records) < 40


OWN = """
import superarm as sa
print("executed")
class Own(sa.SetLogit):
    name = "own"
"""


def test_a_journal_cannot_have_a_file_executed(drive, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    driver = drive(learner=f"{tmp_path / 'own.py'}:Own")
    driver.decide(DecisionRequest(rows(1)[0]))
    driver.close()
    path = tmp_path / "events.db"
    for command in ("replay", "verify"):
        done = superarm(command, path)
        assert done.returncode == 2
        assert "code is only run if you name its file" in done.stderr
        assert "executed" not in done.stdout
        assert superarm(command, path, "--learner", f"{tmp_path / 'own.py'}:Own").returncode == 0
    with pytest.raises(InvalidInput, match="--learner"):
        drive()


# ---------------------------------------------------------------- a failed start


@pytest.mark.parametrize(
    "wrong", [{"set_size": 99}, {"learner": "nonsense"}, {"labels": None}, {"model": "none.npz"}]
)
def test_a_failed_start_leaves_no_database(tmp_path, wrong):
    options = {"labels": LABELS, "n_features": D, "set_size": 2} | wrong
    with pytest.raises((InvalidInput, JournalMismatch, FileNotFoundError)):
        Driver.open(tmp_path / "events.db", **options)
    assert not list(tmp_path.glob("*.db"))


def test_a_journal_that_should_be_there_is_not_made_in_silence(drive, tmp_path, caplog):
    with pytest.raises(JournalMismatch, match=r"no such journal: .*\.db"):
        drive(create=False)
    assert list(tmp_path.iterdir()) == []
    driver = drive()
    assert driver.service.created
    assert "new journal created" in caplog.text
    driver.close()
    assert not drive(create=False).service.created


def test_a_journal_that_another_process_has_made_meanwhile_is_not_called_new(tmp_path, monkeypatch, caplog):
    from superarm.journal.backends import create_journal
    from superarm.service import service as service_module

    def slower(journal, meta, first):
        assert create_journal(journal, meta, first)
        return False

    monkeypatch.setattr(service_module, "create_journal", slower)
    service = Driver.open(tmp_path / "events.db", labels=["a", "b", "c"], n_features=2, set_size=1).service
    service.close()
    assert not service.created
    assert "new journal created" not in caplog.text


def test_two_snapshots_at_once_are_both_whole(drive, tmp_path):
    driver = drive(n_features=100_000)
    service, wide = driver.service, np.zeros(100_000, np.float32)

    async def main():
        await service.start()
        await service.decide(DecisionRequest(wide, "a"))
        first = asyncio.create_task(service.upkeep.snapshot())
        await asyncio.sleep(0)
        await service.submit(lambda: None)  # the model is copied in that batch, before the next decision
        await service.decide(DecisionRequest(wide, "b"))
        await asyncio.gather(first, service.upkeep.snapshot())
        await service.stop()

    asyncio.run(asyncio.wait_for(main(), 60))
    found = verify(tmp_path / "events.db", with_replay=False)
    assert (found.problems, found.snapshots) == ([], 3)


def test_time_goes_on_while_the_machine_is_suspended(monkeypatch):
    """CLOCK_MONOTONIC stands still meanwhile."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no clock that counts suspended time")
    asleep = 0.0
    monkeypatch.setattr(time, "time", lambda: 1e9 + asleep)
    monkeypatch.setattr(
        time, "clock_gettime", lambda clock: 5.0 + (asleep if clock == time.CLOCK_BOOTTIME else 0)
    )
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    clock = SystemClock(lambda: 1e9 + asleep)
    assert clock() == 1e9
    asleep = 8 * 3600.0
    assert clock() == 1e9 + 8 * 3600.0
