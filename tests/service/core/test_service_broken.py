"""What hostile testing once broke: one request, a full disk, damage, links, clocks, caches, failed starts."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from service_kit import LABELS, Clock, D, rows, sha256_of

from superarm.errors import InvalidInput
from superarm.service.core import desk, parts
from superarm.service.core.archive import Compaction, folder
from superarm.service.core.faults import (
    Conflict,
    JournalDamaged,
    JournalDown,
    JournalForeign,
    JournalHeld,
    Overloaded,
    Refused,
)
from superarm.service.core.group import Group
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply, Session
from superarm.service.core.upkeep import Upkeep
from superarm.service.core.verify import verify

# ---------------------------------------------------------------- 1: one request


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "context", [nested(254), nested(65), nested(5000), "x" * 70_000, {"a": object()}, "\ud800"]
)
def test_a_context_that_cannot_be_kept_is_refused_before_anything_moves(open_session, context):
    session = open_session()
    session.decide(Ask(rows(1)[0], "a"))
    with pytest.raises(Refused, match="context of decision") as caught:
        session.decide(Ask(rows(1)[0], "b", context=context))
    assert caught.value.field == "context"
    assert session.learner.round == 1
    session.decide(Ask(rows(1)[0], "c", context=nested(64)))
    session.commit()
    assert replay(session.journal).same


@pytest.mark.parametrize("call", ["decide", "outcome", "expire", "freeze"])
def test_whatever_moved_the_learner_without_its_event_is_taken_back(open_session, monkeypatch, call):
    clock = Clock()
    session = open_session(timeout=5.0, default=True, clock=clock)
    session.decide(Ask(rows(1)[0], "a"))
    session.commit()
    before = session.model_file()
    clock.now += 10.0
    calls = {
        "decide": lambda: session.decide(Ask(rows(2)[1], "b")),
        "outcome": lambda: session.outcome(Reply("a", hit=True)),
        "expire": session.expire,
        "freeze": session.freeze,
    }
    with monkeypatch.context() as patch:
        patch.setattr(desk, "dumps", lambda body: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            calls[call]()
    with pytest.raises(JournalDown, match="taken back"):
        session.decide(Ask(rows(1)[0]))
    with pytest.raises(JournalDown):  # nobody is shown what has not happened
        session.model_file()
    session.recover()
    assert session.model_file() == before
    assert not session.frozen
    calls[call]()
    session.commit()
    assert replay(session.journal).sha256 == sha256_of(session)


# ---------------------------------------------------------------- 2: a snapshot that does not fit


def test_a_snapshot_that_does_not_fit_fails_like_every_write(open_session):
    session = open_session(max_mb=1)
    kept = []
    for i, x in enumerate(rows(100)):
        kept.append(session.decide(Ask(x, f"d{i}")).place.id)
    session.commit()
    session.decide(Ask(rows(1)[0], "uncommitted"))
    session.learner.notes["ballast"] = "x" * 1_200_000
    with pytest.raises(JournalDown):
        session.snapshot()
    for late in (
        lambda: session.decide(Ask(rows(1)[0], "late")),
        lambda: session.outcome(Reply("d1", hit=True)),
    ):
        with pytest.raises(JournalDown):
            late()
    session.recover()
    assert session.find("uncommitted") is None
    assert session.journal.seq == 100
    session.decide(Ask(rows(1)[0], "late"))
    session.commit()
    assert [event.seq for event in session.journal.events()] == list(range(1, 102))
    assert verify(session.journal.path).sound


def test_no_statement_runs_outside_of_a_known_transaction(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], "a"))
    session.journal.write("DELETE FROM probe")
    session.journal.writer.execute("ROLLBACK")  # as SQLite does by itself when the disk is full
    with pytest.raises(JournalDown, match="taken the transaction back"), session.writing():
        session.journal.write("DELETE FROM probe")
    session.recover()
    assert session.journal.seq == 0
    session.decide(Ask(rows(1)[0], "c"))
    session.journal.write("DELETE FROM probe")
    session.journal.writer.execute("ROLLBACK")
    with pytest.raises(JournalDown, match="taken the transaction back"):
        session.commit()
    session.recover()
    assert list(session.journal.events()) == []


# ---------------------------------------------------------------- 4: damage met on the way


def test_a_broken_newest_snapshot_does_not_stop_the_start(open_session, tmp_path):
    session = open_session()
    for part in range(2):
        for x in rows(20, part):
            session.outcome(Reply(session.decide(Ask(x)).place.id, hit=True))
        session.snapshot()
        session.commit()
    model, newest = session.model_file(), session.journal.snapshots()[-1]
    session.journal.write("UPDATE chunks SET data = substr(data, 2) WHERE seq = ?", (newest,))
    session.journal.commit()
    session.journal.close()
    again = open_session()
    assert again.model_file() == model
    assert again.replayed == 40
    assert again.health().broken_snapshots == (newest,)
    assert any("snapshots are damaged" in told for told in again.health().trouble)


def test_a_missing_event_is_told_and_nobody_hangs(open_session):
    session = open_session()
    for id_ in "abc":
        session.decide(Ask(rows(1)[0], id_))
    session.commit()
    session.snapshot()
    session.journal.write("DELETE FROM events WHERE id = 'a'")
    session.commit()
    session._entries.clear()

    async def main():
        group = Group(session)
        with pytest.raises(JournalDamaged, match=r"event 1 of journal .* is missing"):
            await group.submit(session.outcome, Reply("a", hit=True))
        entry = await asyncio.wait_for(group.submit(session.outcome, Reply("c", hit=True)), 5)
        assert entry.outcome["learnt"]

        def stop(_):
            raise StopIteration

        with pytest.raises(RuntimeError):  # what a Future cannot hold
            await asyncio.wait_for(group.submit(stop, None), 5)
        await asyncio.wait_for(group.submit(session.decide, Ask(rows(1)[0])), 5)
        await group.close()

    asyncio.run(main())


def test_health_knows_a_commit_that_hangs(open_session, monkeypatch):
    session = open_session()
    assert session.health().ready
    assert session.health().trouble == ()
    session._commit_began = time.monotonic() - 60.0
    health = session.health()
    assert health.commit_seconds > 59.0
    assert not health.ready
    assert "waiting for the disk" in health.trouble[0]


# ---------------------------------------------------------------- 6: nothing in the loop


def test_expiry_reads_what_is_due_and_no_more(open_session):
    """With 20,000 pending and 3 due, SQLite takes steps for the 3."""
    clock = Clock()
    session = open_session(timeout=10.0, clock=clock)
    ids = [session.decide(Ask(rows(1)[0])).place.id for _ in range(3)]
    clock.now += 5.0
    for _ in range(20_000):
        session.decide(Ask(rows(1)[0]))
    session.journal.index()
    session.commit()
    clock.now += 6.0
    steps = []
    session.journal.reader.set_progress_handler(lambda: steps.append(1), 100)
    due = session.journal.open_places(limit=500, before=clock.now - 10.0)
    session.journal.reader.set_progress_handler(None, 0)
    assert [place.id for place in due] == ids
    assert len(steps) < 5
    assert session.expire() == 3


def test_a_model_is_kept_in_pieces(open_session, monkeypatch):
    monkeypatch.setattr(parts, "PIECE", 100)
    session = open_session()
    session.decide(Ask(rows(1)[0]))
    session.snapshot()
    session.commit()
    count = session.journal.reader.execute("SELECT count(*), max(length(data)) FROM chunks WHERE seq = 1")
    pieces, longest = count.fetchone()
    assert pieces > 10
    assert longest == 100
    model = session.model_file()
    session.journal.close()
    assert open_session().model_file() == model


def test_the_loop_goes_on_while_a_large_model_is_kept(open_session):
    """80 MB: the copy is made in the loop, all else in other threads."""
    session = open_session(n_features=1_000_000, learner="softmax", snapshot_every=3)
    x = (np.array([5], np.int32), np.array([1.0], np.float32))
    session.decide(Ask(x, "a"))
    size = len(session.model_file())
    assert size > 20e6

    async def main():
        group, longest, ticks = Group(session), 0.0, 0
        upkeep = Upkeep(group)
        began = time.perf_counter()
        session.snapshot_every = 10**9
        await group.submit(session.decide, Ask(x, "b"))
        task = asyncio.create_task(upkeep.snapshot())
        last = time.perf_counter()
        while not task.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
            ticks += 1
        await task
        whole = time.perf_counter() - began
        await group.close()
        return longest, whole, ticks

    longest, whole, ticks = asyncio.run(main())
    assert session.snapshot_seq == 2
    assert ticks > 5, (longest, whole)  # as one call in the loop it would be one
    assert verify(session.journal.path, with_replay=False).sound


# ---------------------------------------------------------------- 7: links


def test_a_journal_through_a_link_is_the_same_journal(open_session, tmp_path):
    session = open_session()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "events.db")
    with pytest.raises(JournalHeld):
        Session.open(link)
    session.close()
    session = Session.open(link, keep_snapshots=1)
    for x in rows(5):
        session.decide(Ask(x))
    session.snapshot()
    session.commit()
    work = Compaction(session.journal, 1)
    work.write()
    while work.step():
        session.commit()
    session.close()
    assert folder(tmp_path / "events.db").is_dir()
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]
    assert verify(tmp_path / "events.db").sound


# ---------------------------------------------------------------- 8: what was not committed


def test_looking_beside_a_failing_commit_always_finds_what_is_durable(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], "a"))
    session.commit()
    missed, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            if session.journal.place("a") is None:
                missed.append(1)

    thread = threading.Thread(target=look)
    thread.start()
    for i in range(300):
        session.decide(Ask(rows(1)[0], f"b{i}"))
        session.fail(JournalDown("full"))
        session.down = None
        session.load_model()
    stop.set()
    thread.join()
    assert missed == []


def test_an_answer_whose_commit_failed_is_no_first_answer(open_session, monkeypatch):
    session = open_session()
    session.decide(Ask(rows(1)[0], "a"))
    session.commit()

    def fail():
        raise JournalDown("no")

    async def main():
        group = Group(session)
        with monkeypatch.context() as patch:
            patch.setattr(session.journal, "commit", fail)
            both = [group.submit(session.outcome, Reply("a", hit=hit)) for hit in (True, False)]
            done = await asyncio.gather(*both, return_exceptions=True)
        assert [type(error) for error in done] == [JournalDown, JournalDown]
        session._retry_at = 0.0
        entry = await group.submit(session.outcome, Reply("a", hit=False))
        assert entry.outcome["hit"] is False
        with pytest.raises(Conflict):
            await group.submit(session.outcome, Reply("a", hit=True))
        await group.close()

    asyncio.run(main())


def test_too_many_waiting_is_no_fault_of_the_journal(open_session, monkeypatch):
    from superarm.service.core import group as group_module

    monkeypatch.setattr(group_module, "MOST_WAITING", 3)
    session = open_session()

    async def main():
        group = Group(session)
        asked = [group.submit(session.decide, Ask(rows(1)[0])) for _ in range(5)]
        assert group.waiting == 3
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in done[3:]] == [Overloaded, Overloaded]
        await group.close()

    asyncio.run(main())


# ---------------------------------------------------------------- 9: clocks, timeouts


@pytest.mark.parametrize("jump", [1e9, -1e9])
def test_a_clock_that_jumps_neither_stops_timeouts_nor_ends_all_waiting(open_session, jump):
    clock, steady = Clock(), Clock()
    session = open_session(timeout=10.0, clock=clock, steady=steady)

    def wait(seconds):
        clock.now += seconds
        steady.now += seconds

    session.decide(Ask(rows(1)[0], "before"))
    session.commit()
    wait(5.0)
    clock.now += jump
    session.decide(Ask(rows(1)[0], "during"))
    session.commit()
    assert session.expire() == 0
    wait(6.0)
    assert session.expire() == 1
    assert session.find("before", uncommitted=True).outcome["timeout"]
    clock.now -= jump
    session.decide(Ask(rows(1)[0], "after"))
    session.commit()
    wait(5.0)
    assert session.expire() == 1
    wait(6.0)
    assert session.expire() == 1
    session.commit()
    assert session.stats.pending == 0


def test_decisions_from_a_future_that_never_came_expire_after_a_restart(open_session):
    clock = Clock()
    clock.now = 5e9
    session = open_session(timeout=10.0, clock=clock)
    session.decide(Ask(rows(1)[0], "a"))
    session.close()
    clock = Clock()
    session = open_session(timeout=10.0, clock=clock)
    assert session.expire() == 0
    clock.now += 11.0
    assert session.expire() == 1


@pytest.mark.parametrize(
    "wrong", [{"timeout": -5.0}, {"timeout": 0.0}, {"timeout": float("nan")}, {"retain": -1}]
)
def test_settings_that_make_no_sense_are_refused(open_session, wrong):
    with pytest.raises(InvalidInput, match="more than 0 seconds"):
        open_session(**wrong)


def test_a_default_outcome_that_the_learner_cannot_use_is_refused(open_session):
    with pytest.raises(InvalidInput, match=r"--default-outcome .* learns from labels"):
        open_session(learner="perceptron", timeout=5.0, default=False)


def test_one_duty_of_upkeep_that_fails_starves_no_other(open_session, monkeypatch):
    session = open_session(snapshot_every=1)
    session.decide(Ask(rows(1)[0]))
    session.commit()

    def fail():
        raise ValueError("no")

    async def main():
        group = Group(session)
        task = asyncio.create_task(Upkeep(group).run())
        while session.snapshot_seq < 1:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await group.close()

    monkeypatch.setattr(session, "expire", fail)
    asyncio.run(asyncio.wait_for(main(), 20))
    session.upkeep_error = session.upkeep_error or "expire: no"
    assert any("upkeep fails: expire: no" in told for told in session.health().trouble)


# ---------------------------------------------------------------- 10: memory, files of others


def test_the_cache_is_limited_in_bytes(open_session):
    session = open_session(n_features=4096)
    session._entries.most_bytes = 1 << 20
    for x in rows(100, d=4096):
        session.decide(Ask(x))
    assert session._entries.bytes <= 1 << 20
    assert 20 < len(session._entries) < 40


OWN = """
import superarm as sa
print("executed")
class Own(sa.SetLogit):
    name = "own"
"""


def test_a_journal_cannot_have_a_file_executed(open_session, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    session = open_session(learner=f"{tmp_path / 'own.py'}:Own")
    session.decide(Ask(rows(1)[0]))
    session.close()
    path = tmp_path / "events.db"
    for command in ("replay", "verify"):
        plain = [sys.executable, "-m", "superarm", command, path]
        done = subprocess.run(plain, capture_output=True, text=True)
        assert done.returncode == 2
        assert "a journal's word is not enough to run one" in done.stderr
        assert "executed" not in done.stdout
        given = [*plain, "--learner", f"{tmp_path / 'own.py'}:Own"]
        assert subprocess.run(given, capture_output=True).returncode == 0
    with pytest.raises(JournalForeign, match="--learner"):
        open_session()


def test_all_files_are_private(open_session, tmp_path):
    session = open_session(keep_snapshots=1)
    session.decide(Ask(rows(1)[0]))
    session.snapshot()
    session.commit()
    work = Compaction(session.journal, 1)
    work.write()
    while work.step():
        session.commit()
    session.commit()
    files = [file for file in tmp_path.rglob("*") if file.name.startswith(("events", "0"))]
    assert len(files) >= 6
    for file in files:
        assert file.stat().st_mode & 0o077 == 0, file


# ---------------------------------------------------------------- 11: a failed start


@pytest.mark.parametrize(
    "wrong", [{"set_size": 99}, {"learner": "nonsense"}, {"labels": None}, {"model": "none.npz"}]
)
def test_a_failed_start_leaves_no_database(tmp_path, wrong):
    options = {"labels": LABELS, "n_features": D, "set_size": 2} | wrong
    with pytest.raises((InvalidInput, JournalForeign, FileNotFoundError)):
        Session.open(tmp_path / "events.db", **options)
    assert not list(tmp_path.glob("*.db"))


def test_a_journal_that_should_be_there_is_not_made_in_silence(open_session, tmp_path, caplog):
    with pytest.raises(JournalForeign, match="there already"):
        open_session(create=False)
    assert list(tmp_path.iterdir()) == []
    session = open_session()
    assert session.founded
    assert "a new journal was made" in caplog.text
    session.close()
    assert not open_session(create=False).founded


def test_the_database_is_what_sqlite_calls_sound(open_session, tmp_path):
    session = open_session()
    session.decide(Ask(rows(1)[0]))
    session.close()
    file = sqlite3.connect(tmp_path / "events.db")
    assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.close()
    assert Path(tmp_path / "events.db-mark").stat().st_size > 0
