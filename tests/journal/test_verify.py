"""verify, backup and the way back; and bit flips: harmless or reported, never silent."""

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

import numpy as np
import pytest
from journal_kit import Driver, replayed, sha256_of, sql, superarm
from service_kit import rows
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput
from superarm.journal.backends import open_store
from superarm.journal.backup import backup
from superarm.journal.errors import JournalDamaged, JournalError
from superarm.journal.events import TIMEOUT, Event, OutcomeBody
from superarm.journal.sqlite_files import read_mark
from superarm.journal.verify import verify
from superarm.native import cpu
from superarm.service import DecisionRequest, OutcomeRequest


def filled(drive, parts=3, each=40, **options):
    """A journal with snapshots, changes, erased and open decisions."""
    driver = drive(keep_snapshots=2, **options)
    for part in range(parts):
        requests = [
            DecisionRequest(x, f"{part}.{i}", context={"n": i}) for i, x in enumerate(rows(each, part))
        ]
        driver.together(requests)
        answered = [i for i in range(each) if i % 4]
        driver.together([OutcomeRequest(f"{part}.{i}", hit=i % 3 == 0) for i in answered])
        driver.snapshot()
    driver.add_labels(["new"])
    driver.erase(ids=["0.3"])
    driver.together([DecisionRequest(x, f"late.{i}") for i, x in enumerate(rows(10, 9))])
    return driver


# ---------------------------------------------------------------- verify


def test_an_event_that_was_written_and_cannot_be_read_is_damaged(drive, tmp_path):
    driver = drive()
    driver.run(3)
    events = [Event.new(2e9, TIMEOUT, OutcomeBody(1, "miss"), "d0")]
    driver.store.append([*events, Event.new(2e9, TIMEOUT, OutcomeBody(2, None), "d1")])
    driver.store.close()
    result = verify(tmp_path / "events.db")
    assert result.problems == ["event 4 cannot be read, though it is what was written"]
    assert result.damaged == [4]
    for command, status in (("verify", 1), ("replay", 2)):
        done = superarm(command, tmp_path / "events.db")
        assert done.returncode == status
        assert "event 4 cannot be read" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_verify_finds_nothing_in_a_sound_journal_also_while_it_is_in_use(drive, tmp_path):
    driver = filled(drive)
    done = superarm("verify", tmp_path / "events.db", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["sound"]
    assert (report["events"], report["erased"]) == (driver.seq, 1)
    assert report["problems"] == report["damaged_events"] == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE events SET x = zeroblob(20) WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET time = time + 1 WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET id = 'late.x' WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET kind = 257 WHERE id = 'late.3'", "event .* is not what was written"),
        ("UPDATE events SET context = '{}' WHERE x IS NULL", "event .* is not what was written"),
        ("DELETE FROM events WHERE id = 'late.3'", "event .* is missing"),
        ("DELETE FROM events WHERE id = 'late.9'", "lost its last events|is missing"),
        ("UPDATE pending SET id = 'other' WHERE id = '1.0'", "is listed as pending, and is not"),
        ("DELETE FROM pending WHERE id = '1.0'", "pending decisions are not listed"),
        ("UPDATE snapshots SET totals = '{}' WHERE seq > 0", "snapshot after event .* is not what"),
        ("UPDATE parts SET data = zeroblob(3) WHERE seq > 0", "snapshot after event .* is not what"),
        ("UPDATE meta SET value = '7' WHERE key = 'seed'", "is not what was written|cannot be read"),
    ],
)
def test_verify_says_what_is_damaged(drive, tmp_path, sql, problem):
    filled(drive).store.close()
    file = sqlite3.connect(tmp_path / "events.db")
    assert file.execute(sql).rowcount > 0
    file.commit()
    file.close()
    result = verify(tmp_path / "events.db")
    assert not result.ok
    import re

    assert any(re.search(problem, sentence) for sentence in result.problems), result.problems
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "events.db"), "--no-replay"])
    assert done.exit_code == 1
    assert "damaged: " in done.output


# ---------------------------------------------------------------- bit flips


def content(path: Path):
    """All that a service would read."""
    journal = open_store(path, read_only=True)
    try:
        events = [event.values for event in journal.events()]
        by_id = [
            [event.values for event in journal.events_by_id([row[3]])[row[3]]] for row in events if row[3]
        ]
        snapshots = [journal.snapshot(note.seq) for note in journal.snapshots()]
        progress = journal.stored_number("erased")
        return events, by_id, journal.pending(1000), snapshots, journal.meta(), progress
    finally:
        journal.close()


def test_a_flipped_bit_is_harmless_or_reported(drive, tmp_path):
    """300 places in every file: journal, log, mark."""
    driver = filled(drive, parts=3, each=12)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for file in tmp_path.glob("events.db*"):
        if not file.name.endswith((".lock", "-shm")):
            (shutil.copytree if file.is_dir() else shutil.copy)(file, here / file.name)
    driver.store.close()
    whole = content(here / "events.db")
    names = [file.relative_to(here) for file in here.rglob("*") if file.is_file()]
    assert {Path(name).name.partition(".")[2] for name in map(str, names)} >= {"db", "db-wal", "db-mark"}
    dice, reported, harmless = random.Random(3), 0, 0
    for name in names:
        for _ in range(100):
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(here, there)
            data = bytearray((there / name).read_bytes())
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            (there / name).write_bytes(data)
            try:
                sound = verify(there / "events.db", with_replay=False).ok
                same = sound and content(there / "events.db") == whole
            except (JournalError, sqlite3.DatabaseError):
                sound = same = False
            assert same or not sound, f"a flipped bit in {name} went by in silence"
            reported += not sound
            harmless += sound
    assert reported > 50
    assert harmless > 0


def test_a_lost_end_of_the_log_is_noticed_left_alone_and_can_be_accepted(drive, tmp_path):
    driver = drive()
    driver.run(150)
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
        Driver.open(copy / "events.db")
    assert log.read_bytes() == bytes(data)  # whoever wants to look further finds all as it was
    assert any(
        "lost its last events: 150 were" in sentence for sentence in verify(copy / "events.db").problems
    )
    done = superarm("verify", copy / "events.db", "--accept-loss")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 events were durable" in done.stderr
    again = Driver.open(copy / "events.db")
    assert 0 < again.seq < 150
    again.decide(DecisionRequest(rows(1)[0]))
    again.close()
    assert verify(copy / "events.db").ok


def test_the_mark_follows_every_commit(drive, tmp_path):
    driver = drive()
    for x in rows(3):
        driver.decide(DecisionRequest(x))
        assert read_mark(tmp_path / "events.db").seq == driver.seq


@pytest.mark.parametrize("n_events", [0, 3])
@pytest.mark.parametrize("garbled", [False, True], ids=["missing", "garbled"])
def test_a_journal_without_a_readable_mark_is_warned_about(drive, tmp_path, caplog, garbled, n_events):
    driver = drive()
    assert driver.problems() == ()
    driver.run(n_events)
    driver.close()
    mark = tmp_path / "events.db-mark"
    if garbled:
        mark.write_bytes(b"\xff" * 300)
    else:
        mark.unlink()
    result = verify(tmp_path / "events.db")
    assert result.ok
    assert "whether its last events were lost cannot be known" in result.warnings[0]
    done = superarm("verify", tmp_path / "events.db")
    assert done.returncode == 0, done.stdout
    assert "warning: journal" in done.stdout
    assert (
        json.loads(superarm("verify", tmp_path / "events.db", "--json").stdout)["warnings"] == result.warnings
    )
    caplog.clear()
    again = drive()
    assert "journal without a mark" in caplog.text
    assert again.problems() == tuple(result.warnings)
    assert again.ready
    again.close()  # it has a mark again
    caplog.clear()
    assert drive().problems() == ()
    assert "journal without a mark" not in caplog.text
    assert verify(tmp_path / "events.db").warnings == []


@pytest.mark.parametrize("left", [0, 60, 4096, 0.3, 0.9])
def test_a_journal_whose_end_was_cut_off_is_damaged_and_not_foreign(drive, tmp_path, left):
    filled(drive).close()
    path = tmp_path / "events.db"
    os.truncate(path, left if isinstance(left, int) else int(path.stat().st_size * left) // 4096 * 4096)
    with pytest.raises(JournalDamaged, match="go back to a backup"):
        drive()
    done = superarm("verify", path)
    assert done.returncode == 1, done.stderr
    assert "damaged: " in done.stdout


# ---------------------------------------------------------------- backup and the way back


def test_a_backup_beside_a_running_service_and_the_way_back(drive, tmp_path):
    driver = filled(drive)
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
        driver.decide(DecisionRequest(rows(1)[0], f"during.{n}"))
        n += 1
    thread.join()
    (result,) = taken
    assert result.ok
    # a disaster: everything is gone; then the way back, as docs/operations.md has it
    driver.store.close()
    for file in tmp_path.glob("events.db*"):
        file.unlink()
    for end in ("", "-mark"):
        part = tmp_path / "backup" / f"monday.db{end}"
        if part.exists():
            (shutil.copytree if part.is_dir() else shutil.copy)(part, tmp_path / f"events.db{end}")
    again = drive(create=False)
    assert again.seq == result.events
    assert again.find("0.5") is not None
    assert replayed(again, from_start=True).sha256 == sha256_of(again)
    again.outcome(OutcomeRequest("1.0", hit=True))
    again.close()
    assert verify(tmp_path / "events.db").ok


def test_a_backup_never_overwrites(drive, tmp_path):
    filled(drive)
    (tmp_path / "there.db").write_bytes(b"precious")
    with pytest.raises(InvalidInput, match="a new file"):
        backup(tmp_path / "events.db", tmp_path / "there.db")
    assert (tmp_path / "there.db").read_bytes() == b"precious"


@pytest.mark.parametrize("left", ["-wal", "-shm", "-mark"])
def test_a_backup_is_not_put_beside_what_is_left_of_another_journal(drive, tmp_path, left):
    filled(drive)
    (tmp_path / f"copy.db{left}").write_bytes(b"of another one")
    with pytest.raises(JournalDamaged, match=f"copy.db is missing, and copy.db{left} of it left"):
        backup(tmp_path / "events.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_backup_of_a_damaged_journal_is_refused_and_leaves_nothing(drive, tmp_path):
    driver = filled(drive)
    sql(driver, "UPDATE events SET x = zeroblob(20) WHERE id = 'late.3'")
    done = superarm("backup", tmp_path / "events.db", tmp_path / "copy.db")
    assert done.returncode == 2
    assert "is not what was written" in done.stderr
    assert [file.name for file in tmp_path.iterdir() if "copy" in file.name] == []
    good = superarm("backup", tmp_path / "none.db", tmp_path / "copy.db")
    assert good.returncode == 2


def test_backups_and_journals_are_private(drive, tmp_path):
    filled(drive)
    assert superarm("backup", tmp_path / "events.db", tmp_path / "copy.db").returncode == 0
    for file in tmp_path.rglob("*"):
        if file.name.startswith(("events.db", "copy.db", "0000")):
            assert file.stat().st_mode & 0o077 == 0, file


def test_a_replay_after_a_clean_stop_compares_every_decision(drive, tmp_path):
    driver = drive()
    driver.run(5, hits=lambda i: i % 2 == 0)
    driver.close()  # the newest snapshot is that of the last event
    done = json.loads(superarm("replay", tmp_path / "events.db", "--json").stdout)
    assert (done["start"], done["decisions"], done["different"], done["same"]) == (0, 5, 0, True)
    assert done["snapshots_same"] == [10]


def test_a_replay_starts_from_the_oldest_snapshot_that_has_events_after_it(drive):
    driver = drive()
    driver.run(4, hits=lambda i: i % 2 == 0)
    driver.snapshot()
    driver.run(3, "more", hits=lambda i: i % 2 == 0)
    driver.snapshot()
    done = replayed(driver)
    assert (done.start, done.decisions, done.snapshots_same, done.same) == (8, 3, (14,), True)
    assert replayed(driver, from_start=True).decisions == 7


def test_a_replay_that_compares_nothing_is_no_success(drive, tmp_path):
    drive().close()
    done = superarm("replay", tmp_path / "events.db")
    assert done.returncode == 1
    assert "decisions compared: 0, different: 0" in done.stdout
    assert done.stderr == "superarm: nothing was compared: the journal has too few events\n"


@pytest.mark.parametrize("around", [" {}", '"{}"', "'{}"])
def test_an_address_within_blanks_or_quotes_is_refused_without_its_password(around):
    with pytest.raises(InvalidInput, match="without blanks or quotes") as refused:
        verify(around.format("postgresql://user:a-secret@host/name"))
    assert "a-secret" not in str(refused.value)


@pytest.mark.slow
def test_the_commands_say_what_they_did(drive, tmp_path):
    filled(drive).close()
    path = tmp_path / "events.db"
    assert "of today's format already" in superarm("migrate", path).stdout
    assert superarm("erase", path, "--id", "late.1").stdout == "features and context of 1 decision erased\n"
    assert json.loads(superarm("erase", path, "--older", "90d", "--json").stdout)["erased"] == 0
    assert "such as 90d" in superarm("erase", path, "--older", "soon").stderr
    for neither_or_both in ((), ("--id", "late.1", "--older", "90d")):
        assert "needs --id or --older, and not both" in superarm("erase", path, *neither_or_both).stderr
    done = json.loads(superarm("replay", path, "--from-start", "--json").stdout)
    assert done["sound"]
    assert len(done["snapshots_loaded"]) >= 1
    assert os.access(path, os.R_OK)


@pytest.mark.slow
def test_no_command_writes_over_a_journal_nor_in_silence_over_another_file(drive, tmp_path):
    filled(drive).close()
    path = tmp_path / "events.db"
    before = path.read_bytes()
    for command in (["replay", path, "--output", path], ["replay", path, "--force", "--output", path],
                    ["export", path, "--force", "--output", tmp_path / "events.db-mark"]):  # fmt: skip
        done = superarm(*command)
        assert done.returncode == 2
        assert "nothing overwrites these" in done.stderr
    assert path.read_bytes() == before
    (tmp_path / "there.jsonl").write_text("precious")
    done = superarm("export", path, "--output", tmp_path / "there.jsonl")
    assert (done.returncode, (tmp_path / "there.jsonl").read_text()) == (2, "precious")
    assert "--force" in done.stderr
    assert superarm("export", path, "--output", tmp_path / "there.jsonl", "--force").returncode == 0
    assert superarm("replay", path, "--output", tmp_path / "model.npz").returncode == 0
    assert superarm("replay", path, "--output", tmp_path / "model.npz").returncode == 2


def test_a_copy_of_a_journal_without_events_has_its_mark(drive, tmp_path):
    drive().close()
    assert backup(tmp_path / "events.db", tmp_path / "copy.db").ok
    assert read_mark(tmp_path / "copy.db").seq == 0
    assert verify(tmp_path / "copy.db").warnings == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("x = NULL, context = NULL", "event 2 is not what was written"),
        ("x = NULL, context = NULL, erased = 1", "event 2 was erased by event 1, which is no erasure"),
    ],
)
def test_content_that_was_taken_out_without_an_erasure_is_damage(drive, tmp_path, change, problem):
    driver = drive()
    driver.together([DecisionRequest(x) for x in rows(3)])
    sql(driver, f"UPDATE events SET {change} WHERE seq = 2")
    result = verify(tmp_path / "events.db")
    assert (result.problems, result.damaged) == ([problem], [2])


@pytest.mark.skipif(len(cpu.levels()) < 2, reason="this processor has one level")
def test_a_journal_that_another_kind_of_processor_wrote_is_intact(tmp_path):
    path = tmp_path / "arms.db"
    driver = Driver.open(path, labels=list("abcdef"), n_features=8, set_size=2, keep_snapshots=2, seed=0)
    X = np.random.default_rng(0).normal(size=(80, 8)).astype(np.float32)
    for i, x in enumerate(X):
        driver.decide(DecisionRequest(x, f"d{i}"))
        driver.outcome(OutcomeRequest(f"d{i}", hit=i % 3 == 0))
        if i in (10, 60):
            driver.snapshot()
    driver.close()
    command = [sys.executable, "-m", "superarm", "verify", str(path)]
    other = next(level for level in cpu.levels() if level != cpu.LEVEL)
    environment = os.environ | {"SUPERARM_CPU": other}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "intact" in done.stdout
