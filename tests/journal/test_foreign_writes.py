"""What another process writes into a SQLite journal, while a service runs or between two starts."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from service_kit import rows

from superarm.journal.backup import backup
from superarm.journal.errors import JournalDamaged, JournalUnavailable
from superarm.journal.sqlite import SqliteStore
from superarm.service import views
from superarm.service.requests import DecisionRequest


def write_foreign(folder, statement):
    with closing(sqlite3.connect(folder / "events.db", isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize("noticed_by", ["upkeep", "decide"])
def test_a_write_through_sqlite_by_another_process_is_noticed(drive, tmp_path, noticed_by):
    """It is in the log, and leaves all files in their places."""
    driver = drive()
    driver.run(5, "a")
    SqliteStore(tmp_path / "events.db", read_only=True).close()
    backup(tmp_path / "events.db", tmp_path / "copy.db")
    driver.store.check()  # these only read
    write_foreign(tmp_path, "DELETE FROM events WHERE seq = 5")
    with pytest.raises(JournalUnavailable, match="written by another process"):
        driver.expire() if noticed_by == "upkeep" else driver.decide(DecisionRequest(rows(1)[0], "b"))
    assert not driver.ready
    with pytest.raises(JournalUnavailable, match="written by another process"):
        driver.recover()


def test_a_backup_that_is_copied_over_a_running_journal_is_not_read(drive, tmp_path):
    driver = drive()
    for i, x in enumerate(rows(5)):
        driver.decide(DecisionRequest(x, f"a{i}"))
        if i == 2:
            backup(tmp_path / "events.db", tmp_path / "copy.db")
    shutil.copyfile(tmp_path / "copy.db", tmp_path / "events.db")
    with pytest.raises(JournalUnavailable, match="was replaced"):
        driver.decide(DecisionRequest(rows(1)[0], "b"))
    for view, arguments in (
        (views.decision_details, ("a4",)),
        (views.pending, (10,)),
        (views.snapshots, ()),
        (views.changes, ()),
    ):
        with pytest.raises(JournalUnavailable, match="was replaced"):
            view(driver.service, *arguments)


def test_a_write_of_another_process_that_keeps_ours_waiting_is_noticed(drive, tmp_path):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalUnavailable, match="locked"):
            driver.decide(DecisionRequest(rows(1)[0], "b"))
        other.execute("DELETE FROM pending")
        other.execute("COMMIT")
    with pytest.raises(JournalUnavailable, match="written by another process"):
        driver.recover()


@pytest.mark.parametrize("length", [2, 5, 9])
def test_another_journal_under_the_mark_of_this_one_is_refused(drive, tmp_path, length):
    """Also a longer one: it does not have the event that was durable here."""
    for name, n in (("events.db", 5), ("other.db", length)):
        driver = drive(name)
        driver.run(n, f"{name}-")
        driver.close()
    (tmp_path / "events.db").write_bytes((tmp_path / "other.db").read_bytes())
    with pytest.raises(JournalDamaged, match=r"lost its last events|another event 5 than"):
        drive()


def test_an_event_that_is_missing_no_more_is_not_told(drive, tmp_path):
    """A database that was restored under a process is shorter; then it grows again."""
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    with pytest.raises(JournalDamaged, match=r"event 9 .* is missing"):
        driver.store.digest_at(9)
    assert "event 9" in driver.problems()[-1]
    driver.service.follower.load()
    assert driver.problems() == ()


def test_a_damaged_event_that_was_read_is_told_on_call(drive, tmp_path):
    driver = drive()
    for name in ("a", "b"):
        driver.decide(DecisionRequest(rows(1)[0], name))
    driver.close()
    write_foreign(tmp_path, "UPDATE events SET body = '{}' WHERE seq = 1")
    driver = drive()
    assert driver.problems() == ()
    for _ in range(2):
        with pytest.raises(JournalDamaged):
            driver.decide(DecisionRequest(rows(1)[0], "a"))
    assert [sentence[:7] for sentence in driver.problems()] == ["event 1"]
    assert driver.ready
