"""verify, backup and the way back, migration; and bit flips: harmless or reported, never silent."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from service_kit import rows, sha256_of

from superarm.errors import InvalidInput
from superarm.service.core import migrate as migrate_module
from superarm.service.core.archive import Compaction, folder
from superarm.service.core.backup import backup
from superarm.service.core.faults import JournalDamaged, JournalError, JournalForeign
from superarm.service.core.journal import open_journal
from superarm.service.core.mark import read_mark
from superarm.service.core.migrate import migrate
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply, Session
from superarm.service.core.verify import verify


def filled(open_session, parts=3, each=40, **options):
    """A journal with archives, snapshots, changes, erased and open decisions."""
    session = open_session(keep_snapshots=2, **options)
    for part in range(parts):
        for i, x in enumerate(rows(each, part)):
            entry = session.decide(Ask(x, f"{part}.{i}", context={"n": i}))
            if i % 4:
                session.outcome(Reply(entry.place.id, hit=i % 3 == 0))
        session.snapshot()
        session.commit()
    session.add_labels(["new"])
    session.erase(ids=["0.3"])
    work = Compaction(session.journal, 2)
    work.write()
    while work.step():
        session.commit()
    session.commit()
    for i, x in enumerate(rows(10, 9)):
        session.decide(Ask(x, f"late.{i}"))
    session.commit()
    return session


def superarm(*arguments):
    command = [sys.executable, "-m", "superarm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


# ---------------------------------------------------------------- verify


def test_verify_finds_nothing_in_a_sound_journal_also_while_it_is_in_use(open_session, tmp_path):
    session = filled(open_session)
    done = superarm("verify", tmp_path / "events.db", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sound"]
    assert (told["events"], told["erased"]) == (session.journal.seq, 1)
    assert told["archives"] == 1
    assert told["problems"] == told["damaged_events"] == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE events SET x = zeroblob(20) WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET time = time + 1 WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET id = 'late.x' WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET context = '{}' WHERE x IS NULL", "event .* is not what was written"),
        ("DELETE FROM events WHERE id = 'late.3'", "event .* is missing"),
        ("DELETE FROM events WHERE id = 'late.9'", "last events are lost|is missing"),
        ("UPDATE decisions SET state = 1 WHERE id = '1.0'", "index is wrong"),
        ("DELETE FROM decisions WHERE id = '1.0'", "index is wrong"),
        ("DELETE FROM changes", "list of changes is wrong"),
        ("UPDATE snapshots SET totals = '{}' WHERE seq > 0", "snapshot after event .* is not what"),
        ("UPDATE chunks SET data = zeroblob(3) WHERE seq > 0", "snapshot after event .* is not what"),
        ("UPDATE meta SET value = '7' WHERE key = 'seed'", "is not what was written|cannot be read"),
        ("UPDATE archives SET sha256 = zeroblob(32)", "archive .* is not what was written"),
        ("DELETE FROM archives", "is missing|not what was written"),
    ],
)
def test_verify_says_what_is_damaged(open_session, tmp_path, sql, problem):
    filled(open_session).journal.close()
    file = sqlite3.connect(tmp_path / "events.db")
    assert file.execute(sql).rowcount > 0
    file.commit()
    file.close()
    found = verify(tmp_path / "events.db")
    assert not found.sound
    import re

    assert any(re.search(problem, told) for told in found.problems), found.problems
    done = superarm("verify", tmp_path / "events.db", "--no-replay")
    assert done.returncode == 1
    assert "damaged: " in done.stdout


def test_a_missing_archive_is_told_by_verify_and_by_health(open_session, tmp_path):
    session = filled(open_session)
    (file,) = folder(session.journal.path).glob("*.parquet")
    file.unlink()
    assert session.health().missing_archives == (file.name,)
    assert any("archives are missing" in told for told in session.health().trouble)
    assert any("cannot be read" in told for told in verify(session.journal.path).problems)


# ---------------------------------------------------------------- bit flips


def content(path: Path):
    """All that a service would read."""
    journal = open_journal(path, read_only=True)
    try:
        events = [(e.seq, e.time, e.kind, e.id, e.x, e.context, e.text) for e in journal.events()]
        places = [journal.place(event[3]) for event in events if event[3]]
        open_ = journal.open_places(limit=1000)
        snapshots = [journal.snapshot(seq) for seq in journal.snapshots()]
        return events, places, open_, snapshots, journal.meta()
    finally:
        journal.close()


def test_a_flipped_bit_is_harmless_or_reported(open_session, tmp_path):
    """300 places in every file: journal, log, archive, mark."""
    session = filled(open_session, parts=3, each=12)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for file in tmp_path.glob("events.db*"):
        if not file.name.endswith((".lock", "-shm")):
            (shutil.copytree if file.is_dir() else shutil.copy)(file, here / file.name)
    session.journal.close()
    whole = content(here / "events.db")
    names = [file.relative_to(here) for file in here.rglob("*") if file.is_file()]
    assert {Path(name).name.partition(".")[2] for name in map(str, names)} >= {"db", "db-wal", "db-mark"}
    assert any(name.suffix == ".parquet" for name in names)
    dice, reported, harmless = random.Random(3), 0, 0
    for name in names:
        for _ in range(75):
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(here, there)
            data = bytearray((there / name).read_bytes())
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            (there / name).write_bytes(data)
            try:
                sound = verify(there / "events.db", with_replay=False).sound
                same = sound and content(there / "events.db") == whole
            except (JournalError, sqlite3.DatabaseError):
                sound = same = False
            assert same or not sound, f"a flipped bit in {name} went by in silence"
            reported += not sound
            harmless += sound
    assert reported > 50
    assert harmless > 0


def test_a_lost_end_of_the_log_is_noticed_left_alone_and_can_be_accepted(open_session, tmp_path):
    session = open_session()
    for i, x in enumerate(rows(150)):
        session.decide(Ask(x, f"d{i}"))
        session.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("events.db*"):
        if not file.name.endswith(("-shm", ".lock")):
            shutil.copy(file, copy)
    log = copy / "events.db-wal"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 4
    log.write_bytes(data)
    with pytest.raises(JournalDamaged, match="has lost its last events: 150 were durable"):
        Session.open(copy / "events.db")
    assert log.read_bytes() == bytes(data)  # whoever wants to look further finds all as it was
    assert any("last events are lost: 150 were" in told for told in verify(copy / "events.db").problems)
    done = superarm("verify", copy / "events.db", "--accept-loss")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 events were durable" in done.stderr
    again = Session.open(copy / "events.db")
    assert 0 < again.journal.seq < 150
    again.decide(Ask(rows(1)[0]))
    again.close()
    assert verify(copy / "events.db").sound


def test_the_mark_follows_every_commit(open_session, tmp_path):
    session = open_session()
    for x in rows(3):
        session.decide(Ask(x))
        session.commit()
        assert read_mark(tmp_path / "events.db").seq == session.journal.seq


# ---------------------------------------------------------------- backup and the way back


def test_a_backup_beside_a_running_service_and_the_way_back(open_session, tmp_path):
    session = filled(open_session)
    stop = threading.Event()
    taken = []

    def copy():
        taken.append(backup(tmp_path / "events.db", tmp_path / "backup" / "monday.db"))
        stop.set()

    (tmp_path / "backup").mkdir()
    thread = threading.Thread(target=copy)
    thread.start()
    n = 0
    while not stop.is_set():
        session.decide(Ask(rows(1)[0], f"during.{n}"))
        session.commit()
        n += 1
    thread.join()
    (found,) = taken
    assert found.sound
    # a disaster: everything is gone; then the way back, as docs/operations.md has it
    session.journal.close()
    for file in tmp_path.glob("events.db*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    for end in ("", "-mark", "-archive"):
        part = tmp_path / "backup" / f"monday.db{end}"
        if part.exists():
            (shutil.copytree if part.is_dir() else shutil.copy)(part, tmp_path / f"events.db{end}")
    again = open_session(create=False)
    assert again.journal.seq == found.events
    assert again.find("0.5") is not None
    assert replay(again.journal, from_start=True).sha256 == sha256_of(again)
    again.outcome(Reply("1.0", hit=True))
    again.close()
    assert verify(tmp_path / "events.db").sound


def test_a_backup_never_overwrites(open_session, tmp_path):
    filled(open_session)
    (tmp_path / "there.db").write_bytes(b"precious")
    with pytest.raises(InvalidInput, match="a new file"):
        backup(tmp_path / "events.db", tmp_path / "there.db")
    assert (tmp_path / "there.db").read_bytes() == b"precious"


def test_a_backup_of_a_damaged_journal_is_refused_and_leaves_nothing(open_session, tmp_path):
    session = filled(open_session)
    session.journal.write("UPDATE events SET x = zeroblob(20) WHERE id = 'late.3'")
    session.journal.commit()
    done = superarm("backup", tmp_path / "events.db", tmp_path / "copy.db")
    assert done.returncode == 2
    assert "is not what was written" in done.stderr
    assert [file.name for file in tmp_path.iterdir() if "copy" in file.name] == []
    good = superarm("backup", tmp_path / "none.db", tmp_path / "copy.db")
    assert good.returncode == 2


def test_backups_and_journals_are_private(open_session, tmp_path):
    filled(open_session)
    assert superarm("backup", tmp_path / "events.db", tmp_path / "copy.db").returncode == 0
    for file in tmp_path.rglob("*"):
        if file.name.startswith(("events.db", "copy.db", "0000")):
            assert file.stat().st_mode & 0o077 == 0, file


# ---------------------------------------------------------------- formats


def test_a_journal_of_an_older_format_is_migrated_and_kept(open_session, tmp_path, monkeypatch):
    """There is no older released format yet: here one is made up, whose events had another column."""
    session = filled(open_session)
    before = [(event.seq, event.text) for event in session.journal.events()]
    session.close()
    path = tmp_path / "events.db"
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("ALTER TABLE events RENAME COLUMN body TO words")
    file.execute("PRAGMA user_version = -5")
    file.close()
    steps = {-5: lambda db: db.execute("ALTER TABLE events RENAME COLUMN words TO body")}
    steps |= {step: lambda db: None for step in range(-4, 2)}
    with pytest.raises(JournalForeign, match="superarm migrate"):
        open_journal(path)
    with pytest.raises(JournalForeign, match="of a released format"):
        migrate(path)
    monkeypatch.setattr(migrate_module, "STEPS", steps)
    kept = migrate(path)
    assert kept == path.with_name("events.db.format--5")
    again = open_session()
    assert [(event.seq, event.text) for event in again.journal.events()][: len(before)] == before
    again.close()
    assert migrate(path) is None
    old = sqlite3.connect(kept)
    assert old.execute("PRAGMA user_version").fetchone() == (-5,)
    assert old.execute("SELECT count(words) FROM events").fetchone()[0] > 0
    old.close()


def test_a_migration_that_fails_leaves_the_journal_as_it_was(open_session, tmp_path, monkeypatch):
    filled(open_session).close()
    path = tmp_path / "events.db"
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA user_version = -1")
    file.close()

    def fail(database):
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr(migrate_module, "STEPS", {-1: lambda db: None, 0: fail, 1: lambda db: None})
    with pytest.raises(JournalError, match="cannot be migrated"):
        migrate(path)
    file = sqlite3.connect(path)
    assert file.execute("PRAGMA user_version").fetchone() == (-1,)
    file.close()
    assert not list(tmp_path.glob(".*part*"))


def test_the_commands_say_what_they_did(open_session, tmp_path):
    filled(open_session).close()
    path = tmp_path / "events.db"
    assert "of today's format already" in superarm("migrate", path).stdout
    assert superarm("erase", path, "--id", "late.1").stdout == "features and context of 1 decisions erased\n"
    assert json.loads(superarm("erase", path, "--older", "90d", "--json").stdout)["erased"] == 0
    assert "such as 90d" in superarm("erase", path, "--older", "soon").stderr
    assert "given, or --older" in superarm("erase", path).stderr
    done = json.loads(superarm("replay", path, "--from-start", "--json").stdout)
    assert done["sound"]
    assert len(done["snapshots_taken_over"]) >= 1
    assert os.access(path, os.R_OK)
