"""A SQLite journal: its tables, its format number, connections, and how a new one comes into being.

Beside the tables that all journals have (statements.py): probe, which is empty: to try whether anything can be written.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from superarm._files import clear_parts, part_of
from superarm._types import JsonObject
from superarm.journal.errors import JournalFull, JournalMismatch, JournalUnavailable
from superarm.journal.events import chain_start
from superarm.journal.journal_files import PRIVATE_FILE, FileLock, real_path, sibling
from superarm.journal.sqlite_mark import log_damaged, read_mark, write_mark
from superarm.journal.statements import FORMAT, TABLES, check_format_number, new_journal_statements
from superarm.journal.store import Snapshot

SQLITE_HEADER = b"SQLite format 3\0"
WRITER_WAITS, READER_WAITS = 0.25, 2.0  # seconds for a lock

TYPES = {"text": "TEXT", "integer": "INTEGER", "small": "INTEGER", "number": "INTEGER", "flag": "INTEGER"}
TYPES |= {"real": "REAL", "blob": "BLOB", "without_rowid": " WITHOUT ROWID"}
# what a full disk causes where a file is to be made
NO_ROOM = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
NAMES = frozenset({"meta", "events", "snapshots"})


def disk_is_full(path: Path) -> bool:
    """Return whether the disk of a file has no room at all."""
    try:
        return os.statvfs(path.parent).f_bavail == 0
    except OSError:
        return False


def full_error(path: Path) -> JournalFull:
    return JournalFull(f"journal {path} cannot be written: its disk or its size limit is full")


def unavailable_error(path: Path, error: Exception) -> JournalUnavailable:
    """Return the JournalUnavailable for an error of SQLite or of the file system."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code in NO_ROOM and disk_is_full(path)):
        return full_error(path)
    return JournalUnavailable(f"journal {path} cannot be written: {error}")


def connect(path: Path, *, write: bool, max_mb: int | None = None, alone: bool = False) -> sqlite3.Connection:
    """Return a connection; `alone`: no process can write the journal as long as its disk is full."""
    uri, log = f"{path.as_uri()}?mode={'rw' if write else 'ro'}", sibling(path, "-wal")
    no_room = not os.access(path.parent, os.W_OK) or (alone and disk_is_full(path))
    if not write and no_room and not (log.exists() and log.stat().st_size):
        uri += "&immutable=1"  # SQLite could not make its index of the (empty) log
    # one thread at a time uses a connection
    options: JsonObject = {"uri": True, "isolation_level": None, "check_same_thread": False}
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(uri, timeout=WRITER_WAITS if write else READER_WAITS, **options)
        if write:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # what is erased must not stay in free pages
            if max_mb is not None:
                size = connection.execute("PRAGMA page_size").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {max_mb * 2**20 // size}")
        return connection
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise unavailable_error(path, error) from error


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no journal, is damaged, or of another format."""
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.OperationalError as error:
        raise unavailable_error(path, error) from error
    except sqlite3.DatabaseError as error:
        with path.open("rb") as file:
            if file.read(len(SQLITE_HEADER)) == SQLITE_HEADER:  # say, its end was cut off
                raise log_damaged(path, error) from error
        raise JournalMismatch.must("journal", "superarm", "a superarm journal", str(path)) from error
    if not tables >= NAMES:
        if path.stat().st_size == 0 and read_mark(path) is not None:
            raise log_damaged(path, "it is empty")
        raise JournalMismatch.must("journal", "superarm", "a superarm journal", str(path))
    check_format_number(version, path)


def create(journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
    """Make a journal with its first snapshot, whole and on the disk, or none at all; return False if there is one."""
    path = real_path(journal)
    lock = FileLock(path)
    chain = chain_start(meta)
    try:
        if path.exists():
            return False
        clear_parts(path)
        with part_of(path) as part:
            os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                tables = TABLES.format(**TYPES) + "CREATE TABLE probe (filler BLOB);"
                connection.executescript(f"BEGIN;{tables}PRAGMA user_version = {FORMAT};")
                for sql, values in new_journal_statements(meta, chain, first):
                    connection.execute(sql, values)
                connection.execute("COMMIT")
                # now, under a name that nobody reads: a crash in it would leave something to roll back
                connection.execute("PRAGMA journal_mode = WAL")
        if read_mark(path) is None:  # (one that is left over shows that a journal was lost here)
            with suppress(OSError):  # without a mark there is a warning
                write_mark(path, 0, chain)
        return True
    except (sqlite3.Error, OSError) as error:
        raise JournalUnavailable(f"journal {path} cannot be made: {error}") from error
    finally:
        lock.close()
