"""A copy of a journal that a service may be writing at this moment, and the way back.

The database is copied by SQLite's own backup, which gives one moment of it; then the archives it lists,
which are never changed in place. (An archive that erasing replaced meanwhile is not listed by a copy
made after it: then the whole copy is made again.) The copy is verified before it gets its name.

The way back is to put the copy where the journal was, with its archives, and to start (docs/operations.md).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput
from superarm.service.core import archive
from superarm.service.core.faults import JournalDamaged, JournalDown
from superarm.service.core.files import PRIVATE_FILE, discard, make_folder, sync_folder, write_durably
from superarm.service.core.mark import Marker
from superarm.service.core.schema import connect
from superarm.service.core.sqlite import SqliteJournal
from superarm.service.core.verify import Verified, verify

__all__ = ["backup"]

TRIES = 3


def backup(path: str | Path, to: str | Path) -> Verified:
    """Copy a journal and its archives to a new file, and verify the copy."""
    source, target = Path(path).resolve(), Path(to).resolve()
    if target.exists() or archive.folder(target).exists():
        raise InvalidInput.must("TO", "superarm backup", "a new file, without archives", str(target))
    SqliteJournal(source, read_only=True).close()  # it is a journal, and has lost nothing
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        for attempt in range(TRIES):
            try:
                _copy(source, part)
                found = verify(part, with_replay=False)
            except FileNotFoundError as error:
                if attempt == TRIES - 1:
                    raise JournalDamaged(f"archive {error.filename} is missing") from error
                continue
            if not found.sound:
                raise JournalDamaged(f"the copy of {source} is damaged: {found.problems[0]}")
            break
        _name(part, target)
        return found
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, JournalDamaged):
            raise
        raise JournalDown(f"journal {source} cannot be copied to {target}: {error}") from error
    finally:
        _clear(part)


def _copy(source: Path, part: Path) -> None:
    _clear(part)
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    with closing(connect(source, write=False)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new, pages=1000, sleep=0.001)
        new.execute("PRAGMA journal_mode = WAL")
        listed = [row[0] for row in new.execute("SELECT file FROM archives ORDER BY last")]
        seq, chain = _end(new)
    if listed:
        make_folder(archive.folder(part))
    for file in listed:
        data = (archive.folder(source) / file).read_bytes()
        write_durably(archive.folder(part) / file, partial(_put, data))
    if seq:
        marker = Marker(part)
        marker.put(seq, chain)
        marker.sync()
        marker.close()
    with part.open("rb") as file:
        os.fsync(file.fileno())


def _put(data: bytes, file: Any) -> None:
    file.write(data)


def _end(database: sqlite3.Connection) -> tuple[int, bytes]:
    sql = "SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1"
    archived = "SELECT last, digest FROM archives ORDER BY last DESC LIMIT 1"
    return database.execute(sql).fetchone() or database.execute(archived).fetchone() or (0, b"")


def _beside(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + "-mark"), archive.folder(path)


def _name(part: Path, target: Path) -> None:
    """Give the copy its name, the database last: what is there under it is whole."""
    for old, new in zip(_beside(part), _beside(target), strict=True):
        if old.exists():
            os.replace(old, new)  # noqa: PTH105
    os.replace(part, target)  # noqa: PTH105
    sync_folder(target.parent)


def _clear(part: Path) -> None:
    mark, folder = _beside(part)
    for left in (part, mark, *(part.with_name(part.name + end) for end in ("-journal", "-wal", "-shm"))):
        discard(left)
    shutil.rmtree(folder, ignore_errors=True)
