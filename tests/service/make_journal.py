"""Makes the small journal of today's format that the tests read for ever: make_journal.py FOLDER.

Run once for each format that is released; the file is never made anew.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import numpy as np

from superarm.service.core.archive import Compaction, folder
from superarm.service.core.schema import FORMAT
from superarm.service.core.session import Ask, Reply, Session

LABELS = [f"label-{i}" for i in range(6)]


def make(place: Path) -> Path:
    path = place / f"format-{FORMAT}.db"
    options = {"labels": LABELS, "n_features": 5, "set_size": 2, "seed": 3, "keep_snapshots": 1}
    session = Session.open(path, learner="mc-dbf:gamma=0.3", **options)
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    for i, x in enumerate(X):
        session.decide(Ask(x, f"d{i}", context={"n": i}))
        if i % 3:
            session.outcome(Reply(f"d{i}", hit=i % 2 == 0))
        if i == 12:
            session.snapshot()
            session.commit()
            work = Compaction(session.journal, 1)
            work.write()
            while work.step():
                session.commit()
            session.add_labels(["new"])
        if i == 20:
            session.retire_labels(["label-5"])
    session.commit()
    session.erase(ids=["d2"])
    session.journal.close()  # as if killed: events after the last snapshot
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("VACUUM")
    database.close()
    for left in (path.with_name(path.name + ".lock"),):
        left.unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1])
    made = make(target)
    print(made, [file.name for file in folder(made).iterdir()])
