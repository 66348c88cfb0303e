"""Makes the small journal of today's format that the tests read for ever: make_journal.py FOLDER.

Run once for each format that is released; the file is never made anew.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import numpy as np
from journal_kit import Driver

from superarm.journal.statements import FORMAT
from superarm.service import DecisionRequest, OutcomeRequest

LABELS = [f"label-{i}" for i in range(6)]


def make(place: Path) -> Path:
    path = place / f"format-{FORMAT}.db"
    options = {"labels": LABELS, "n_features": 5, "set_size": 2, "seed": 3, "keep_snapshots": 1}
    driver = Driver.open(path, learner="mc-dbf:gamma=0.3", **options)
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    for i, x in enumerate(X):
        driver.decide(DecisionRequest(x, f"d{i}", context={"n": i}))
        if i % 3:
            driver.outcome(OutcomeRequest(f"d{i}", hit=i % 2 == 0))
        if i == 12:
            driver.snapshot()
            driver.add_labels(["new"])
        if i == 20:
            driver.disable_labels(["label-5"])
    driver.erase(ids=["d2"])
    for i in range(30, 33):
        driver.decide(DecisionRequest(X[i - 30], f"d{i}"))
    driver.store.close()  # as if killed: events after the last snapshot
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("VACUUM")
    database.close()
    for end in (".lock", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
