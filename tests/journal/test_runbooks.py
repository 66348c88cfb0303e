"""The runbooks of docs/operations.md, played."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
from journal_kit import Driver, replayed
from service_kit import LABELS, rows

from superarm.journal.backup import backup
from superarm.journal.errors import JournalDown, JournalFull
from superarm.journal.verify import verify
from superarm.service.handler import DecisionRequest, OutcomeRequest


def work(driver, n, seed, wrong=False):
    """Rows whose right label is the largest of the first five numbers; hits among the last half."""
    hits = []
    X = rows(n, seed)
    for x in X:
        entry = driver.decide(DecisionRequest(x))
        hit = LABELS[int(x.argmax())] in entry.labels
        hits.append(hit)
        driver.outcome(OutcomeRequest(entry.id, hit=hit and not wrong))
    return float(np.mean(hits[n // 2 :]))


def test_the_model_was_spoilt(drive):
    driver = drive()
    good = work(driver, 1200, 0)
    driver.snapshot()
    work(driver, 900, 1, wrong=True)
    assert driver.stats.falling
    assert any("hit rate has fallen" in sentence for sentence in driver.status().trouble)
    driver.freeze()
    spoilt = work(driver, 200, 2)
    before = max(driver.kept())
    driver.rollback(before)
    mended = work(driver, 200, 2)
    driver.unfreeze()
    assert spoilt < good - 0.1
    assert mended > spoilt + 0.1
    assert replayed(driver, from_start=True).same


def test_a_disk_is_full(drive):
    driver = drive(max_mb=1)
    kept = []
    with pytest.raises(JournalFull):  # noqa: PT012
        for i in range(10_000):
            driver.decide(DecisionRequest(rows(1)[0], f"d{i}", context="x" * 2000))
            kept.append(f"d{i}")
    assert not driver.status().ready
    assert driver.status().full
    assert driver.find(kept[-1]) is not None  # looking goes on
    driver.store.max_mb = 10
    driver.recover()
    assert driver.status().ready
    driver.decide(DecisionRequest(rows(1)[0], f"d{len(kept)}", context="x" * 2000))  # sent again
    assert driver.stats.decisions == len(kept) + 1
    assert verify(driver.store.path).sound


def test_restore(drive, tmp_path):
    driver = drive()
    for i, x in enumerate(rows(30)):
        driver.decide(DecisionRequest(x, f"d{i}"))
    backup(tmp_path / "events.db", tmp_path / "monday.db")
    for i, x in enumerate(rows(30, 1)):
        driver.decide(DecisionRequest(x, f"e{i}"))
    # not like this: under the running service
    path = tmp_path / "events.db"
    path.rename(tmp_path / "events.db.broken")
    shutil.copy(tmp_path / "monday.db", path)
    with pytest.raises(JournalDown, match="stop it, put the file in its place, and start it"):
        driver.decide(DecisionRequest(rows(1)[0], "lost?"))
    driver.store.close()
    for end in ("-wal", "-shm", "-mark"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(tmp_path / "monday.db", path)
    shutil.copy(tmp_path / "monday.db-mark", tmp_path / "events.db-mark")
    done = subprocess.run([sys.executable, "-m", "superarm", "verify", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    again = Driver.open(path, create=False)
    assert again.seq == 30
    again.outcome(OutcomeRequest("d3", hit=True))
    again.close()
