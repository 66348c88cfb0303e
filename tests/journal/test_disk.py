"""The n-th write, fsync, rename or removal fails: full, broken, cut short, killed, or the power goes.

The way SQLite tests itself; fault_worker.py has the workload and the list of invariants. Here some of the
n, in turn; `python benchmarks/soak.py --every-operation` runs all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from service_kit import rows

from superarm.journal import sqlite, sqlite_files
from superarm.journal.errors import JournalFull
from superarm.journal.sqlite import SqliteStore
from superarm.service.requests import DecisionRequest

KIT = Path(__file__).parent


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here to build the disk that fails")
    library = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    source = KIT / "failing_disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


@pytest.mark.parametrize(
    ("hows", "every"),
    [(["full", "full once", "broken", "stays broken", "short"], 13), (["kill"], 7), (["power"], 7)],
)
@pytest.mark.slow
def test_whatever_fails_nothing_acknowledged_is_lost(failing_disk, tmp_path, hows, every):
    # in memory, where there is such a place: the faults are made by the library, not by the disk
    root = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    folder = root / f"superarm-disk-{os.getpid()}"
    source = str(Path(__file__).parents[2] / "src")
    environment = os.environ | {"LD_PRELOAD": str(failing_disk), "DISK_FOLDER": str(folder)}
    environment["PYTHONPATH"] = os.pathsep.join([source, *sys.path])  # with the kits of the tests
    command = [sys.executable, KIT / "fault_worker.py", str(every), *hows]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        cases = json.loads(done.stdout)
        assert cases.keys() == set(hows)
        assert all(count * every > 200 for count in cases.values()), cases
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_start_on_a_full_disk_says_so_before_any_request_and_serves_what_is_there(drive, monkeypatch):
    driver = drive()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    driver.close()
    with monkeypatch.context() as full:
        for module in (sqlite, sqlite_files):
            full.setattr(module, "disk_is_full", lambda _: True)
        driver = drive()
        assert isinstance(driver.outage, JournalFull)
        assert driver.decide(DecisionRequest(rows(1)[0], "a")).id == "a"
    driver.recover()
    driver.decide(DecisionRequest(rows(1)[0], "b"))


@pytest.mark.parametrize("full", [False, True])
def test_a_full_disk_on_which_sqlite_cannot_make_its_files_is_named(monkeypatch, tmp_path, full):
    monkeypatch.setattr(sqlite_files, "disk_is_full", lambda _: full)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    raised = sqlite_files.unavailable_error(tmp_path / "events.db", error)
    assert isinstance(raised, JournalFull) == full


def test_a_journal_is_read_on_a_disk_without_room_for_an_index_of_its_log(drive, monkeypatch, tmp_path):
    drive().close()
    monkeypatch.setattr(sqlite_files, "disk_is_full", lambda _: True)
    with closing(SqliteStore(tmp_path / "events.db", read_only=True)) as store:
        assert store.head().seq == 0
        assert not (tmp_path / "events.db-shm").exists()
