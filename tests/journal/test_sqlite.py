"""The journal: one holder, foreign files, full and read-only disks."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from journal_kit import Driver
from service_kit import LABELS, D, rows

from superarm.journal.backends import create_journal, open_store
from superarm.journal.backup import backup
from superarm.journal.errors import (
    JournalDamaged,
    JournalFull,
    JournalLocked,
    JournalMismatch,
    JournalUnavailable,
)
from superarm.journal.events import ANSWER, AnswerBody, Event
from superarm.journal.store import Snapshot
from superarm.service.requests import DecisionRequest

# ---------------------------------------------------------------- one holder


def test_the_second_process_refuses_and_says_who_holds_it(drive, tmp_path):
    drive()
    code = "import sys; from superarm.service import Service; Service.open(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "events.db"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "JournalLocked: journal of superarm must be held by no other process" in done.stderr
    assert f"held by process {os.getpid()} on " in done.stderr


def test_the_lock_ends_with_its_holder(drive):
    driver = drive()
    with pytest.raises(JournalLocked):
        drive()
    driver.close()
    drive()


def test_looking_needs_no_lock(drive, tmp_path):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0]))
    looking = open_store(tmp_path / "events.db", read_only=True)
    assert looking.head().seq == 1
    looking.close()


# ---------------------------------------------------------------- foreign files


@pytest.mark.parametrize("content", [b"this is no database, but a text" * 100, b""])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises((JournalMismatch, JournalUnavailable)):
        open_store(tmp_path / "x.db", read_only=True)


def test_another_database_is_refused(tmp_path):
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute("CREATE TABLE cats (name)")
    other.commit()
    other.close()
    with pytest.raises(JournalMismatch, match="a superarm journal"):
        open_store(tmp_path / "x.db")


def test_a_missing_journal_cannot_be_read(tmp_path):
    with pytest.raises(JournalMismatch, match="an existing file"):
        open_store(tmp_path / "none.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "hint"),
    [(1, "use the superarm that made it"), (2, "use the superarm that made it"), (99, "install a newer")],
)
def test_a_journal_of_another_format_is_refused_with_a_hint(drive, tmp_path, number, hint):
    drive().close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(JournalMismatch, match=hint):
        open_store(tmp_path / "events.db")


# ---------------------------------------------------------------- durability


def test_commits_wait_for_the_disk(drive):
    driver = drive()
    assert driver.store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert driver.store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_read_only_connection_refuses_with_503_and_recovers(drive):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    driver.store._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(JournalUnavailable, match="readonly") as caught:
        driver.decide(DecisionRequest(rows(1)[0], id="b"))
    assert not isinstance(caught.value, JournalFull)
    assert driver.find("a") is not None
    driver.recover()  # opens it anew
    driver.decide(DecisionRequest(rows(1)[0], id="b"))
    assert driver.learner.round == 2


def test_a_disk_that_fails_in_the_middle_loses_only_what_was_not_acknowledged(drive, tmp_path):
    """A limit on file sizes makes real writes fail, as a broken or full disk does."""
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    now = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    wal = (tmp_path / "events.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 20_000, now[1]))
    try:
        kept, _ = driver.fill_until_down()
        assert driver.find("a") is not None
        with pytest.raises(JournalUnavailable):
            driver.recover()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, now)
        signal.signal(signal.SIGXFSZ, before)
    driver.recover()
    assert driver.stats.decisions == 1 + len(kept)
    assert all(driver.find(id_) is not None for id_ in kept)
    driver.close()
    assert drive().stats.decisions == 1 + len(kept)


def test_a_log_that_cannot_grow_is_emptied_into_the_journal(drive, tmp_path):
    """A limit on file sizes, that the journal itself is far from."""
    driver = drive()
    now = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, now[1]))
    try:
        kept, _ = driver.fill_until_down()
        driver.recover()
        driver.decide(DecisionRequest(rows(1)[0], id="more"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, now)
        signal.signal(signal.SIGXFSZ, before)
    driver.close()
    assert drive().stats.decisions == len(kept) + 1


def test_a_transaction_that_fails_for_any_reason_is_undone(drive, monkeypatch):
    """It used to stay open after an error that was not SQLite's own, and the next write failed."""
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], id="a"))

    def damaged(_):
        raise JournalDamaged("the list of snapshots cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(driver.store, "_snapshots_to_drop", damaged)
        with pytest.raises(JournalDamaged):
            driver.store.erase(9, ["a"], None)
    driver.decide(DecisionRequest(rows(1)[0], id="b"))
    assert driver.find("a").record.decision.x is not None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no mount command here, so no small disk to fill")
    if done.returncode:
        pytest.skip(f"may not mount a small disk here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_with_507_and_recovers(small_disk):
    driver = Driver.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    (small_disk / "filler").write_bytes(bytes(1_400_000))
    kept, error = driver.fill_until_down()
    assert isinstance(error, JournalFull)
    assert driver.find(kept[-1]) is not None
    (small_disk / "filler").unlink()
    driver.recover()
    assert driver.stats.decisions == len(kept)
    driver.decide(DecisionRequest(rows(1)[0]))
    driver.close()


def test_a_read_only_disk_is_served_as_far_as_it_goes(small_disk):
    driver = Driver.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    driver.decide(DecisionRequest(rows(1)[0], id="a"))
    driver.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    driver = Driver.open(small_disk / "events.db")
    assert driver.outage is not None
    assert not isinstance(driver.outage, JournalFull)
    assert driver.find("a") is not None
    with pytest.raises(JournalUnavailable):
        driver.decide(DecisionRequest(rows(1)[0]))
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    driver.recover()
    driver.decide(DecisionRequest(rows(1)[0], id="b"))
    driver.close()


def test_a_journal_with_two_names_is_refused(drive, tmp_path):
    """The lock goes by the name: through a hard link two processes could write one file."""
    driver = drive()
    path = driver.store.path
    driver.close()
    (tmp_path / "other.db").hardlink_to(path)
    for name in (path, tmp_path / "other.db"):
        with pytest.raises(JournalLocked, match="a file with one name"):
            Driver.open(name)


# ---------------------------------------------------------------- swapped or deleted under a running service


@pytest.mark.parametrize("what", ["events.db", "events.db-wal", "events.db.lock"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_what_is_not_under_its_name_is_not_acknowledged(drive, tmp_path, what, how):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    (tmp_path / what).rename(tmp_path / "away")
    if how == "replaced":
        (tmp_path / what).write_bytes((tmp_path / "away").read_bytes())
    with pytest.raises(JournalUnavailable, match="replaced, written by another process or deleted"):
        driver.decide(DecisionRequest(rows(1)[0], "b"))
    assert not driver.ready
    assert "replaced, written by another process or deleted" in driver.problems()[0]
    with pytest.raises(JournalUnavailable, match="replaced, written by another process or deleted"):
        driver.recover()
    (tmp_path / "away").replace(tmp_path / what)
    driver.recover()
    assert driver.ready
    driver.decide(DecisionRequest(rows(1)[0], "c"))


def test_a_swapped_journal_is_noticed_within_a_second_also_if_nobody_asks(drive, tmp_path):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))

    async def main():
        service = driver.service
        await service.start()
        assert service.ready
        (tmp_path / "events.db").unlink()
        await asyncio.sleep(1.0)
        assert not service.ready
        await service.stop()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert not (tmp_path / "events.db").exists()  # nor made anew


def test_a_journal_that_is_overwritten_in_place_is_not_written_any_more(drive, tmp_path):
    """A backup is copied over the file of a running service: the same file, other pages."""
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    backup(tmp_path / "events.db", tmp_path / "copy.db")
    driver.run(50, "b")
    (tmp_path / "events.db").write_bytes((tmp_path / "copy.db").read_bytes())
    log = (tmp_path / "events.db-wal").read_bytes()
    with pytest.raises(JournalUnavailable, match="replaced, written by another process or deleted"):
        driver.decide(DecisionRequest(rows(1)[0], "c"))
    assert not driver.ready
    assert (tmp_path / "events.db-wal").read_bytes() == log
    with pytest.raises(JournalUnavailable, match="replaced, written by another process or deleted"):
        driver.recover()


def test_a_journal_that_is_deleted_during_a_commit_is_not_acknowledged(drive, tmp_path):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))

    with driver.store._transaction() as writer:
        (tmp_path / "events.db").rename(tmp_path / "away")
        writer.execute("DELETE FROM probe")
    for _ in range(2):
        with pytest.raises(JournalUnavailable, match="replaced, written by another process or deleted"):
            driver.store.check()


def test_commits_that_copy_the_log_into_the_file_are_our_own(drive):
    driver = drive()
    before = driver.store._files
    for part in range(30):  # more than the thousand pages of a checkpoint
        driver.together(
            [DecisionRequest(x, f"{part}.{i}", context="c" * 4000) for i, x in enumerate(rows(50))]
        )
    assert driver.store._files != before
    assert driver.ready
    driver.store.purge_erased()
    driver.decide(DecisionRequest(rows(1)[0], "after"))


def test_a_path_that_leads_nowhere_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(JournalMismatch, match="journal of superarm must be a file, got a loop of links"):
        Driver.open(tmp_path / "a.db", labels=LABELS)
    with pytest.raises(JournalMismatch, match="must be a regular file"):
        Driver.open(tmp_path, labels=LABELS)


def test_erasing_by_id_looks_the_ids_up(drive):
    """Through the index of ids: not by reading the whole journal in the midst of a batch."""
    driver = drive()
    done: list[str] = []
    driver.store._writer.set_trace_callback(done.append)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    assert driver.erase(["a"]) == 1
    driver.store._writer.set_trace_callback(None)
    (update,) = [statement for statement in done if statement.startswith("UPDATE events")]
    plan = driver.store._select(f"EXPLAIN QUERY PLAN {update}")
    assert any("USING INDEX events_id" in row[3] for row in plan), plan


def test_answers_that_are_in_the_log_only_are_no_damage(tmp_path):
    """As a kill leaves the journal of a labelling: answers have no index by their ids."""
    meta = {"kind": "labelling", "made": 1.0}
    create_journal(tmp_path / "l.db", meta, Snapshot(0, 1.0, {}, {}, {}))
    with closing(open_store(tmp_path / "l.db")) as store:
        store.append([Event.new(2.0, ANSWER, AnswerBody("ann", True), f"row {i}") for i in range(5)])
        assert store.log_bytes() > 0
        for name in ("l.db", "l.db-wal", "l.db-mark"):
            shutil.copy(tmp_path / name, tmp_path / f"killed-{name}")
    with closing(open_store(tmp_path / "killed-l.db")) as store:
        assert store.head().seq == 5


def test_the_mark_is_synced_with_each_snapshot(drive, monkeypatch):
    driver, synced = drive(), []
    driver.decide(DecisionRequest(rows(1)[0]))
    monkeypatch.setattr(driver.store._marker, "sync", lambda: synced.append(driver.store.head().seq))
    driver.snapshot()
    assert synced == [1]


def test_what_is_due_by_time_is_found_without_a_look_at_all_that_is_not(drive):
    store = drive().store
    times = dict.fromkeys(range(1, 20000), 100.0) | {20_000: 5.0}  # the clock was ahead before
    with store._transaction() as writer:
        for table, values in (
            ("pending", "?, ?, 'x'"),
            ("events", "?, ?, 4, '', '', NULL, '', '', '', NULL"),
        ):
            writer.executemany(f"INSERT INTO {table} VALUES ({values})", times.items())
    steps = []
    store._reader.set_progress_handler(lambda: steps.append(1), 100)  # of SQLite's machine
    assert [one.seq for one in store.pending_before(10.0, 500)] == [20_000]
    assert store.has_content_before(10.0)
    assert not store.has_content_before(5.0)
    assert len(steps) < 10
