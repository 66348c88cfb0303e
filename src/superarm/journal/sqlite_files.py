"""The files of a SQLite journal: their paths, the lock of the one process that may write, and connections."""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from superarm._types import JsonObject
from superarm.errors import Description
from superarm.journal.errors import (
    JournalFull,
    JournalLocked,
    JournalMismatch,
    JournalUnavailable,
)

PRIVATE_FILE = 0o600
WRITER_WAITS, READER_WAITS = 0.25, 2.0  # seconds for a lock

# what a full disk causes where a file is to be made
NO_ROOM = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


def real_path(path: str | Path) -> Path:
    """Return the path without links: lock and log lie beside the real file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise JournalMismatch(f"journal of superarm must be a file, got a loop of links: {path}") from error


def sibling(journal: Path, ending: str) -> Path:
    """Return the file beside a journal whose name has this ending."""
    return journal.with_name(journal.name + ending)


class FileLock:
    """The lock beside a journal, until it is closed; it ends with its process, however that ends."""

    def __init__(self, journal: Path) -> None:
        if journal.is_file() and journal.stat().st_nlink > 1:  # the lock goes by the name
            wanted = "a file with one name: two processes could hold it by different ones"
            raise JournalLocked.must(
                "journal", "superarm", wanted, Description(f"{journal}, which has hard links")
            )
        try:
            self._file = os.open(sibling(journal, ".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            raise JournalUnavailable(
                f"journal {journal} cannot be opened for writing: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "an unknown process"
            os.close(self._file)
            wanted = "held by no other process"
            message = f"journal of superarm must be {wanted}, got {journal}: held by {holder}"
            raise JournalLocked(message) from error
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        with suppress(OSError):  # that is for people; the lock holds without it
            os.ftruncate(self._file, 0)
            holder = f"process {os.getpid()} on {socket.gethostname()} since {since}\n"
            os.pwrite(self._file, holder.encode(), 0)

    def close(self) -> None:
        os.close(self._file)


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
