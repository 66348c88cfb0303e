"""The tables of a SQLite journal, its format number, and how a new one comes into being.

meta        what it was made for: learner, labels, number of features, set size
events      decisions, outcomes, timeouts and changes, numbered from 1, each with its digests
decisions   where each id stands: its event, whether it is open, the event that closed it;
            an index of the events up to the one that `progress` calls "indexed", the rest is in memory
changes     the numbers and bodies of the change events, also of those in archives
snapshots   totals and makers of each snapshot, and the digests of its parts
chunks      the parts of the snapshots, in pieces: SQLite holds no value above 10^9 bytes
archives    Parquet files beside the journal that hold the oldest events (see archive.py)
progress    how far the index has come
probe       empty: to try whether anything can be written
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from orjson import dumps

from superarm.service.core.events import chain_start
from superarm.service.core.faults import JournalDown, JournalForeign, JournalFull
from superarm.service.core.files import PRIVATE_FILE, clear_parts, sync_folder

__all__ = ["FORMAT", "check_format", "connect", "create", "down"]

FORMAT = 2  # 1 was superarm 0.1, which was never released

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,
  x BLOB, context BLOB, body BLOB NOT NULL, content BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE decisions (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, state INTEGER NOT NULL, closed INTEGER
) WITHOUT ROWID;
CREATE INDEX open_decisions ON decisions (time, seq) WHERE state = 0;
CREATE TABLE changes (seq INTEGER PRIMARY KEY);
CREATE TABLE snapshots (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, totals TEXT NOT NULL, made_by TEXT NOT NULL,
  parts TEXT NOT NULL, digest BLOB NOT NULL, pinned INTEGER NOT NULL
);
CREATE TABLE chunks (
  number INTEGER NOT NULL, seq INTEGER NOT NULL, part TEXT NOT NULL, data BLOB NOT NULL
);
CREATE UNIQUE INDEX chunk ON chunks (seq, part, number);
CREATE TABLE archives (
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, file TEXT NOT NULL, sha256 BLOB NOT NULL,
  digest BLOB NOT NULL, oldest REAL NOT NULL, contents INTEGER NOT NULL
);
CREATE TABLE progress (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE probe (filler BLOB);
"""
NAMES = frozenset({"meta", "events", "decisions", "snapshots", "archives"})
WRITER_WAITS, READER_WAITS = 0.25, 2.0  # seconds for a lock; the writer waits in the event loop


def down(path: Path, error: Exception) -> JournalDown:
    """The refusal for an error of SQLite or of the file system."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return JournalFull(f"journal {path} cannot be written: its disk or its size limit is full")
    return JournalDown(f"journal {path} cannot be written: {error}")


def connect(path: Path, *, write: bool, max_mb: int | None = None) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={'rw' if write else 'ro'}"
    log = path.with_name(path.name + "-wal")
    if not write and not os.access(path.parent, os.W_OK) and not log.exists():
        uri += "&immutable=1"  # a read-only disk: SQLite could not make its index of the (empty) log
    # one thread at a time uses a connection: the loop, or the thread that commits for it
    options: dict[str, Any] = {"uri": True, "isolation_level": None, "check_same_thread": False}
    try:
        connection: sqlite3.Connection = sqlite3.connect(
            uri, timeout=WRITER_WAITS if write else READER_WAITS, **options
        )
    except sqlite3.Error as error:
        raise down(path, error) from error
    try:
        if write:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # what is erased must not stay in free pages
            if max_mb is not None:
                size = connection.execute("PRAGMA page_size").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {max_mb * 2**20 // size}")
    except sqlite3.Error as error:
        connection.close()
        raise down(path, error) from error
    return connection


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no journal, or of another format."""
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError as error:
        raise down(path, error) from error
    except sqlite3.DatabaseError as error:
        raise JournalForeign.must("journal", "superarm", "a superarm journal", str(path)) from error
    if not tables >= NAMES:
        raise JournalForeign.must("journal", "superarm", "a superarm journal", str(path))
    if version == 1:
        wanted = f"of format {FORMAT}: format 1, of superarm 0.1, was never released and is not read"
        raise JournalForeign.must("journal", "superarm", wanted, str(path))
    if version > FORMAT:
        wanted = f"of format {FORMAT} at most (install a newer superarm)"
        raise JournalForeign.must("journal", "superarm", wanted, f"format {version}")
    if version < FORMAT:
        wanted = f"of format {FORMAT} (superarm migrate makes one of an older journal)"
        raise JournalForeign.must("journal", "superarm", wanted, f"format {version}")


def meta_text(meta: dict[str, Any]) -> bytes:
    """What a journal was made for, as the chain of digests begins with it."""
    return dumps(sorted(meta.items()))


def create(path: Path, meta: dict[str, Any], fill: Any) -> None:
    """A new journal, whole and on the disk, or none at all; ``fill(connection, digest)`` adds to it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    clear_parts(path)
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        connection = sqlite3.connect(part, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"BEGIN;{TABLES}PRAGMA user_version = {FORMAT};")
            rows = [(key, dumps(value).decode()) for key, value in meta.items()]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            fill(connection, chain_start(meta_text(meta)))
            connection.execute("COMMIT")
            # now, under a name that nobody reads: a crash in it would leave something to roll back
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        os.replace(part, path)  # noqa: PTH105
        sync_folder(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise JournalDown(f"journal {path} cannot be made: {error}") from error
    finally:
        clear_parts(path)
