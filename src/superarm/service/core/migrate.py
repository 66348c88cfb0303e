"""A journal of an older format becomes one of today's, and the old file is kept.

Each step takes a journal from one format to the next, in one transaction, on a copy. There is no older format
that was ever released yet: the first step will be STEPS[2], from format 2 to 3.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from superarm.service.core.faults import JournalDown, JournalForeign
from superarm.service.core.files import PRIVATE_FILE, clear_parts, sync_folder
from superarm.service.core.holder import Hold
from superarm.service.core.schema import FORMAT, NAMES

__all__ = ["STEPS", "migrate"]

STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {}


def migrate(path: str | Path) -> Path | None:
    """Bring a journal to today's format; where the old one was kept, or None if it is of today's format.

    The new file takes the old one's name when it is whole; archives stay where they are.
    """
    source = Path(path).resolve()
    if not source.is_file():
        raise JournalForeign.must("journal", "superarm migrate", "an existing file", str(path))
    lock = Hold(source)
    part = source.with_name(f".{source.name}.{os.getpid()}.part")
    try:
        was = _format(source)
        if was == FORMAT:
            return None
        if was > FORMAT or any(step not in STEPS for step in range(was, FORMAT)):
            wanted = f"of a released format, up to {FORMAT}"
            raise JournalForeign.must("journal", "superarm migrate", wanted, f"format {was}")
        clear_parts(source)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        with (
            closing(sqlite3.connect(source)) as old,
            closing(sqlite3.connect(part, isolation_level=None)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")
            new.execute("BEGIN IMMEDIATE")
            for step in range(was, FORMAT):
                STEPS[step](new)
            new.execute(f"PRAGMA user_version = {FORMAT}")
            new.execute("COMMIT")
            new.execute("PRAGMA journal_mode = WAL")
        kept = source.with_name(f"{source.name}.format-{was}")
        os.replace(source, kept)  # noqa: PTH105
        os.replace(part, source)  # noqa: PTH105
        sync_folder(source.parent)
        return kept
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, JournalForeign):
            raise
        raise JournalDown(f"journal {source} cannot be migrated: {error}") from error
    finally:
        clear_parts(source)
        lock.close()


def _format(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        try:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if tables >= NAMES:
                return int(database.execute("PRAGMA user_version").fetchone()[0])
        except sqlite3.DatabaseError:
            pass
    raise JournalForeign.must("journal", "superarm migrate", "a superarm journal", str(path))
