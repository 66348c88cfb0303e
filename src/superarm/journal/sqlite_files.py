"""The files of a SQLite journal: their paths, the lock of the one process that may write, the mark, and connections.

The mark, `events.db-mark`, says outside of SQLite's log how far the journal had come: number and digest of the last
event that a commit made durable. It is written after each commit, and synced with each snapshot and at the end: it may
lag, but it never runs ahead. A third line says which copy of the journal it belongs to (backup.py gives each a number
of its own; 0: none).
"""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from superarm.errors import Unquoted
from superarm.journal.errors import (
    JournalError,
    JournalFull,
    JournalLocked,
    JournalMismatch,
    JournalUnavailable,
)
from superarm.journal.events import digest

PRIVATE_FILE = 0o600
WRITER_WAITS, READER_WAITS = 0.25, 2.0  # seconds for a lock of SQLite
NO_ROOM = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}  # what a full disk causes where a file is to be made
MARK_PREFIX, COPY_PREFIX = "superarm-mark", "superarm-copy"


def real_path(path: str | Path) -> Path:
    """Return the path without links: lock and log lie beside the real file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise JournalMismatch(f"journal of superarm must be a file, got a loop of links: {path}") from error


def sibling(journal: Path, ending: str) -> Path:
    """Return the file beside a journal whose name has this ending."""
    return journal.with_name(journal.name + ending)


# ---------------------------------------------------------------- errors


@contextmanager
def file_errors(journal: Path) -> Iterator[None]:
    """Raise JournalUnavailable, or JournalFull, in place of errors of SQLite and of the file system."""
    try:
        yield
    except JournalError:  # (which is an OSError)
        raise
    except (sqlite3.Error, OSError) as error:
        raise unavailable_error(journal, error) from error


def unavailable_error(journal: Path, error: Exception) -> JournalUnavailable:
    """Return the JournalUnavailable for an error of SQLite or of the file system."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code in NO_ROOM and disk_is_full(journal)):
        return full_error(journal)
    return JournalUnavailable(f"journal {journal} cannot be written: {error}")


def full_error(journal: Path) -> JournalFull:
    return JournalFull(f"journal {journal} cannot be written: its disk or its size limit is full")


def disk_is_full(path: Path) -> bool:
    """Return whether the disk of a file has no room at all."""
    try:
        return os.statvfs(path.parent).f_bavail == 0
    except OSError:
        return False


# ---------------------------------------------------------------- the lock


class FileLock:
    """The lock beside a journal, until it is closed; it ends with its process, however that ends."""

    def __init__(self, journal: Path) -> None:
        if journal.is_file() and journal.stat().st_nlink > 1:  # the lock goes by the name
            wanted = "a file with one name: two processes could hold it by different ones"
            got = Unquoted(f"{journal}, which has hard links")
            raise JournalLocked.must("journal", "superarm", wanted, got)
        try:
            self._file = os.open(sibling(journal, ".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            reason = f"journal {journal} cannot be opened for writing: {error.strerror}"
            raise JournalUnavailable(reason) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "an unknown process"
            os.close(self._file)
            message = f"journal of superarm must be held by no other process, got {journal}: held by {holder}"
            if holder.startswith(_process_name()):
                since = holder.removeprefix(_process_name()).strip()
                message = f"journal {journal} is open in this process already, {since}: close() what has it open first"
            raise JournalLocked(message) from error
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        with suppress(OSError):  # that is for people; the lock holds without it
            os.ftruncate(self._file, 0)
            holder = f"{_process_name()}since {since}\n"
            os.pwrite(self._file, holder.encode(), 0)

    def close(self) -> None:
        os.close(self._file)


def _process_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()} "


# ---------------------------------------------------------------- the mark


class Mark(NamedTuple):
    """The last event that was durable, and which copy of the journal had it; None if that is not known."""

    seq: int
    digest: bytes
    copy: int | None = None


def read_mark(journal: Path) -> Mark | None:
    """Return the mark; None if there is none that can be read."""
    marks, copy = [], None
    with suppress(OSError):
        for line in sibling(journal, "-mark").read_bytes().splitlines(keepends=True):
            with suppress(ValueError):
                word, number, *rest = line.decode().split()
                if word == COPY_PREFIX:
                    copy = int(number)
                    continue
                chain, _ = rest
                if _mark_line(int(number), bytes.fromhex(chain)) == line:
                    marks.append((int(number), bytes.fromhex(chain)))
    return Mark(*max(marks), copy) if marks else None


def write_mark(journal: Path, seq: int, chain: bytes, copy: int = 0) -> None:
    """Write the mark of a journal that no service has open."""
    marker = Marker(journal)
    marker.reset(seq, chain, copy)
    marker.close()


class Marker:
    """Writes the mark: two lines in turn, so that a write that was cut short leaves the other one."""

    def __init__(self, journal: Path) -> None:
        self._file = os.open(sibling(journal, "-mark"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        self._second = False

    def write(self, seq: int, chain: bytes) -> None:
        line = _mark_line(seq, chain)
        with suppress(OSError):  # the events themselves are durable; the mark lags until the next commit
            os.pwrite(self._file, line, len(line) if self._second else 0)
            self._second = not self._second

    def reset(self, seq: int, chain: bytes, copy: int = 0) -> None:
        """Set all lines: the mark may go back."""
        with suppress(OSError):
            os.pwrite(self._file, _mark_line(seq, chain) * 2 + f"{COPY_PREFIX} {copy:020d}\n".encode(), 0)

    def sync(self) -> None:
        with suppress(OSError):
            os.fsync(self._file)

    def close(self) -> None:
        self.sync()
        os.close(self._file)


def _mark_line(seq: int, chain: bytes) -> bytes:
    text = f"{MARK_PREFIX} {seq:020d} {chain.hex()}"
    return f"{text} {digest(text.encode()).hex()}\n".encode()


# ---------------------------------------------------------------- connections


def connect(
    path: Path, *, write: bool, max_mb: int | None = None, immutable_if_full: bool = False
) -> sqlite3.Connection:
    """Return a connection; with ``immutable_if_full``, on a full disk, to a file that nobody can write."""
    uri, log = f"{path.as_uri()}?mode={'rw' if write else 'ro'}", sibling(path, "-wal")
    no_room = not os.access(path.parent, os.W_OK) or (immutable_if_full and disk_is_full(path))
    if not write and no_room and not (log.exists() and log.stat().st_size):
        uri += "&immutable=1"  # SQLite could not make its index of the (empty) log
    wait = WRITER_WAITS if write else READER_WAITS
    with file_errors(path), ExitStack() as undo:
        # one thread at a time uses a connection
        opened = sqlite3.connect(uri, wait, uri=True, isolation_level=None, check_same_thread=False)
        connection = undo.enter_context(closing(opened))
        if write:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # what is erased must not stay in free pages
            if max_mb is not None:
                size = connection.execute("PRAGMA page_size").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {max_mb * 2**20 // size}")
        undo.pop_all()  # it stays open
    return connection
