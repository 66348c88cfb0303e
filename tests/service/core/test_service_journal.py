"""The journal: one holder, foreign files, full and read-only disks."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys

import pytest
from service_kit import LABELS, D, rows, sha256_of

from superarm.service.core.faults import JournalDown, JournalForeign, JournalFull, JournalHeld
from superarm.service.core.journal import open_journal
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply, Session

# ---------------------------------------------------------------- one holder


def test_the_second_process_refuses_and_says_who_holds_it(open_session, tmp_path):
    open_session()
    code = "import sys; from superarm.service.core.session import Session; Session.open(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "events.db"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "JournalHeld: journal of superarm must be held by no other process" in done.stderr
    assert f"held by process {os.getpid()} on " in done.stderr


def test_the_lock_ends_with_its_holder(open_session):
    session = open_session()
    with pytest.raises(JournalHeld):
        open_session()
    session.close()
    open_session()


def test_looking_needs_no_lock(open_session, tmp_path):
    session = open_session()
    session.decide(Ask(rows(1)[0]))
    session.commit()
    looking = open_journal(tmp_path / "events.db", read_only=True)
    assert looking.seq == 1
    looking.close()


# ---------------------------------------------------------------- foreign files


@pytest.mark.parametrize("content", [b"this is no database, but a text" * 100, b""])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises((JournalForeign, JournalDown)):
        open_journal(tmp_path / "x.db", read_only=True)


def test_another_database_is_refused(tmp_path):
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute("CREATE TABLE cats (name)")
    other.commit()
    other.close()
    with pytest.raises(JournalForeign, match="a superarm journal"):
        open_journal(tmp_path / "x.db")


def test_a_newer_format_is_refused(open_session, tmp_path):
    open_session().close()
    file = sqlite3.connect(tmp_path / "events.db")
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(JournalForeign, match="install a newer superarm"):
        open_journal(tmp_path / "events.db")


def test_a_missing_journal_cannot_be_read(tmp_path):
    with pytest.raises(JournalForeign, match="an existing file"):
        open_journal(tmp_path / "none.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_of_the_unreleased_format_is_refused_with_a_sentence(open_session, tmp_path):
    open_session().close()
    file = sqlite3.connect(tmp_path / "events.db")
    file.execute("PRAGMA user_version = 1")
    file.close()
    with pytest.raises(JournalForeign, match=r"format 1, of superarm 0\.1, was never released"):
        open_journal(tmp_path / "events.db")


# ---------------------------------------------------------------- durability


def test_commits_wait_for_the_disk(open_session):
    session = open_session()
    assert session.journal.writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert session.journal.writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def fill_until_down(session, most=100_000):
    """Decide until the journal refuses; the ids that were acknowledged."""
    kept = []
    for _ in range(most):
        try:
            entry = session.decide(Ask(rows(1)[0], context="x" * 2000))
            session.commit()
        except JournalDown as error:
            return kept, error
        kept.append(entry.place.id)
    raise AssertionError("it never filled up")


def test_a_full_journal_refuses_keeps_serving_and_recovers(open_session):
    session = open_session(max_mb=1)
    kept, error = fill_until_down(session)
    assert isinstance(error, JournalFull)
    assert len(kept) > 50
    assert session.down is error
    # what is there can be looked at, and asked for again
    assert session.find(kept[-1]) is not None
    again = session.decide(Ask(rows(1)[0], id=kept[0], context="x" * 2000))
    assert again.place.id == kept[0]
    with pytest.raises(JournalDown):
        session.decide(Ask(rows(1)[0]))
    with pytest.raises(JournalDown):
        session.outcome(Reply(kept[0], hit=True))
    with pytest.raises(JournalDown):  # still full
        session.recover()
    assert session.down is not None
    session.journal.max_mb = 10
    session.recover()
    assert session.down is None
    assert session.stats.decisions == len(kept)
    assert session.learner.round == len(kept)
    session.outcome(Reply(kept[0], hit=True))
    session.commit()
    assert replay(session.journal).sha256 == sha256_of(session)


def test_a_read_only_connection_refuses_with_503_and_recovers(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    session.commit()
    session.journal.writer.execute("PRAGMA query_only = ON")
    session.decide(Ask(rows(1)[0], id="b"))
    with pytest.raises(JournalDown, match="readonly") as caught:
        session.commit()
    assert not isinstance(caught.value, JournalFull)
    assert session.find("a") is not None
    session.recover()  # opens it anew
    session.decide(Ask(rows(1)[0], id="b"))
    session.commit()
    assert session.learner.round == 2


def test_a_disk_that_fails_in_the_middle_loses_only_what_was_not_acknowledged(open_session, tmp_path):
    """A limit on file sizes makes real writes fail, as a broken or full disk does."""
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    session.commit()
    now = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    wal = (tmp_path / "events.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 20_000, now[1]))
    try:
        kept, _ = fill_until_down(session, 200)
        assert session.find("a") is not None
        with pytest.raises(JournalDown):
            session.recover()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, now)
        signal.signal(signal.SIGXFSZ, before)
    session.recover()
    assert session.stats.decisions == 1 + len(kept)
    assert all(session.find(id_) is not None for id_ in kept)
    session.close()
    assert open_session().stats.decisions == 1 + len(kept)


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
    session = Session.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    (small_disk / "filler").write_bytes(bytes(1_400_000))
    kept, error = fill_until_down(session)
    assert isinstance(error, JournalFull)
    assert session.find(kept[-1]) is not None
    (small_disk / "filler").unlink()
    session.recover()
    assert session.stats.decisions == len(kept)
    session.decide(Ask(rows(1)[0]))
    session.close()


def test_a_read_only_disk_is_served_as_far_as_it_goes(small_disk):
    session = Session.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    session.decide(Ask(rows(1)[0], id="a"))
    session.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    session = Session.open(small_disk / "events.db")
    assert session.down is not None
    assert not isinstance(session.down, JournalFull)
    assert session.find("a") is not None
    with pytest.raises(JournalDown):
        session.decide(Ask(rows(1)[0]))
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    session.recover()
    session.decide(Ask(rows(1)[0], id="b"))
    session.close()


def test_a_journal_with_two_names_is_refused(open_session, tmp_path):
    """The lock goes by the name: through a hard link two processes could write one file."""
    session = open_session()
    path = session.journal.path
    session.close()
    (tmp_path / "other.db").hardlink_to(path)
    for name in (path, tmp_path / "other.db"):
        with pytest.raises(JournalHeld, match="a file with one name"):
            Session.open(name)
