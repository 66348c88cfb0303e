"""A copy of a journal that a service may be writing at this moment.

The database is copied by SQLite's own backup, which gives one moment of it; the copy is verified before it gets its
name. The way back is to put the copy where the journal was and to start (docs/operations.md).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import randbits

from superarm._files import atomic_path, sync
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalDamaged, JournalUnavailable
from superarm.journal.sqlite import SqliteStore
from superarm.journal.sqlite_checks import COPY_ID, check_nothing_left
from superarm.journal.sqlite_files import PRIVATE_FILE, connect, real_path, sibling, write_mark
from superarm.journal.verify import VerifyResult, verify


def backup(path: str | Path, to: str | Path) -> VerifyResult:
    """Copy a journal to a new file, and verify the copy."""
    source, target = real_path(path), real_path(to)
    if target.exists():
        raise InvalidInput.must("TO", "superarm backup", "a new file", str(target))
    check_nothing_left(target)
    SqliteStore(source, read_only=True).close()  # it is a journal, and has lost nothing
    try:
        with atomic_path(target) as part:
            _copy(source, part)
            verified = verify(part, with_replay=False)
            if not verified.ok:
                raise JournalDamaged(f"the copy of {source} is damaged: {verified.problems[0]}")
            # the database last: what is there under its name is whole
            os.replace(sibling(part, "-mark"), sibling(target, "-mark"))  # noqa: PTH105
        return verified
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, JournalDamaged):
            raise
        raise JournalUnavailable(f"journal {source} cannot be copied to {target}: {error}") from error


def _copy(source: Path, part: Path) -> None:
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    with closing(connect(source, write=False)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new, pages=1000, sleep=0.001)
        new.execute("PRAGMA journal_mode = WAL")
        copy = randbits(62)  # a log of another one is not its log
        new.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (COPY_ID, copy))
        new.commit()
    with closing(SqliteStore(part, read_only=True)) as copied:
        write_mark(part, copied.head().seq, copied.head().digest, copy)
    sync(part)
