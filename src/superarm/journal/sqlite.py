"""A journal in one SQLite file. (store.py: what each method promises)

Write-ahead log, synchronous=FULL: `append` returns after the log has reached the disk. One process at a time may
write, and a mark outside of the log says how far it had come (sqlite_files.py); both are checked before anything is
written (sqlite_checks.py).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from orjson import dumps

from superarm._files import atomic_path, delete_leftovers, sync
from superarm._types import JsonObject
from superarm.journal.errors import JournalMismatch, JournalReplaced, JournalUnavailable, OtherEventsFirst
from superarm.journal.events import DECISION, OUTCOME, TIMEOUT, Event, chain_start, next_chain_digest
from superarm.journal.sqlite_checks import (
    COPY_ID,
    check_format,
    check_log,
    check_mark,
    check_nothing_left,
    lost_end,
    unreadable_error,
)
from superarm.journal.sqlite_files import (
    PRIVATE_FILE,
    FileLock,
    Marker,
    connect,
    disk_is_full,
    file_errors,
    full_error,
    read_mark,
    real_path,
    sibling,
    unavailable_error,
    write_mark,
)
from superarm.journal.statements import (
    DROP_ORPHANED_PARTS,
    FORMAT,
    IN_INDEX,
    TABLES,
    Statement,
    new_journal_statements,
)
from superarm.journal.store import PROBE_BYTES, JournalStore, LastEvent, Snapshot

COLUMN_TYPES = dict.fromkeys(("integer", "small", "number", "flag"), "INTEGER")
COLUMN_TYPES |= {"text": "TEXT", "real": "REAL", "blob": "BLOB", "without_rowid": " WITHOUT ROWID"}
PROBE_TABLE = "CREATE TABLE probe (filler BLOB);"  # empty: to try whether anything can be written


class Files(NamedTuple):
    """Which files the journal, its log and its lock are, by device and inode."""

    ids: tuple[tuple[int, int], ...]  # device and inode of the journal, its log and its lock
    time: int  # of the journal itself: only commits and `purge_erased` change these two
    size: int


class SqliteStore(JournalStore):
    """An open journal in a file.

    Args:
        path: the file. Links are followed once, here: lock and log are beside the real file.
        read_only: take no lock, also while a service writes it; it reads one moment of the journal.
        max_mb: the size in megabytes beyond which it counts as full; None: the disk is the limit.
        accept_loss: open it although the mark says that its last events are lost.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        max_mb: int | None = None,
        accept_loss: bool = False,
    ) -> None:
        self.path, self.read_only, self.max_mb = real_path(path), read_only, max_mb
        self.name = str(self.path)
        self._log_path = sibling(self.path, "-wal")
        self._lock: FileLock | None = None
        self._marker: Marker | None = None
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._reader_lock = Lock()
        self._files: Files | None = None  # as this process has left them
        self._data_version: int | None = None  # changes when another connection writes; None: not known
        if not self.path.is_file():
            wanted = "a regular file" if self.path.exists() else "an existing file"
            raise JournalMismatch.must("journal", "superarm", wanted, str(path))
        if not read_only:
            self._lock = FileLock(self.path)
        try:
            self._open(accept_loss)
        except BaseException:
            self.close()
            raise

    def _open(self, accept_loss: bool) -> None:
        """Look at the journal before anything is written: one whose end is lost is left exactly as it is."""
        self._reader = connect(self.path, write=False, immutable_if_full=self.read_only)
        check_format(self._reader, self.path)
        if self.read_only:
            self._reader.execute("BEGIN")
        self._head = self.last_event()
        if read_mark(self.path) is None:  # (opening it for writing makes a new one)
            self.warnings = (
                f"journal {self.path} had no {self.path.name}-mark that can be read when it was opened: whether "
                "its last events were lost cannot be known",
            )
        if not accept_loss:
            check_mark(self)
        if not self.read_only:
            check_log(self, any_copy=accept_loss)
            self._begin_writing()

    # ------------------------------------------------------------ opening and closing

    @classmethod
    def exists(cls, journal: str | Path) -> bool:
        return Path(journal).exists()

    @classmethod
    def create(cls, journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
        path = real_path(journal)
        check_nothing_left(path)
        lock = FileLock(path)
        chain = chain_start(meta)
        try:
            if path.exists():
                return False
            delete_leftovers(path)
            with atomic_path(path) as part:
                os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
                with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                    connection.execute("PRAGMA synchronous = FULL")
                    tables = TABLES.format(**COLUMN_TYPES) + PROBE_TABLE
                    connection.executescript(f"BEGIN;{tables}PRAGMA user_version = {FORMAT};")
                    for sql, values in new_journal_statements(meta, chain, first):
                        connection.execute(sql, values)
                    connection.execute("COMMIT")
                    # now, under the temporary name: a crash in it would leave something to roll back
                    connection.execute("PRAGMA journal_mode = WAL")
            with suppress(OSError):  # without a mark there is a warning
                write_mark(path, 0, chain)
            return True
        except (sqlite3.Error, OSError) as error:
            raise JournalUnavailable(f"journal {path} cannot be made: {error}") from error
        finally:
            lock.close()

    def _begin_writing(self) -> None:
        self._connect_writer()
        with file_errors(self.path):
            self._marker = Marker(self.path)
        self._marker.reset(self._head.seq, self._head.digest, self.stored_number(COPY_ID))
        delete_leftovers(self.path)
        self._execute_all([(DROP_ORPHANED_PARTS, ())])  # (with a write, the log is there)
        if disk_is_full(self.path):  # (the write above may still have fitted into the log)
            raise full_error(self.path)

    def _connect_writer(self) -> None:
        writer = connect(self.path, write=True, max_mb=self.max_mb)
        if self._writer is not None:
            self._writer.close()
        self._writer = writer
        with file_errors(self.path):
            self._data_version = self._read_data_version()

    def _files_now(self) -> Files:
        """Return the files under the names of the journal, its log and its lock."""
        journal, log, lock = (os.stat(f"{self.name}{end}") for end in ("", "-wal", ".lock"))  # noqa: PTH116
        ids = tuple((file.st_dev, file.st_ino) for file in (journal, log, lock))
        return Files(ids, journal.st_mtime_ns, journal.st_size)

    def _update_files(self) -> None:
        """Remember the files as this process has left them, unless one was replaced or deleted: `check` finds that."""
        with suppress(OSError):
            files = self._files_now()
            if self._files is None or files.ids == self._files.ids:
                self._files = files

    def _read_data_version(self) -> int:
        assert self._writer is not None
        return int(self._writer.execute("PRAGMA data_version").fetchone()[0])

    def check(self) -> None:
        if self._files is None:
            return
        try:
            same = self._files_now() == self._files
            if same and self._data_version is not None:
                same = self._read_data_version() == self._data_version
        except FileNotFoundError:
            same = False
        except (OSError, sqlite3.Error) as error:
            self._data_version = None
            raise unavailable_error(self.path, error) from error
        if not same:
            raise JournalReplaced(
                f"journal {self.path}, its log or its lock was replaced, written by another process or deleted while "
                "the service runs: stop it, put the file in its place, and start it"
            )

    def reopen(self) -> None:
        """Open new connections: one that was opened while the file could not be written stays that way."""
        self.check()
        if self._lock is None:
            self._lock = FileLock(self.path)
        reader = connect(self.path, write=False)
        try:
            check_format(reader, self.path)
        except BaseException:  # the one at hand may still read
            reader.close()
            raise
        with self._reader_lock:  # another thread may be reading
            if self._reader is not None:
                self._reader.close()
            self._reader = reader
        self._head = self.last_event()
        if self._marker is None:
            check_mark(self)
            check_log(self)
            self._begin_writing()
        else:
            self._connect_writer()
            with suppress(JournalUnavailable):  # the log may be what cannot grow: begin it anew
                self.purge_erased()
        self.read_only = False
        self._execute_all([("INSERT INTO probe VALUES (zeroblob(?))", (PROBE_BYTES,))])
        self._execute_all([("DELETE FROM probe", ())])

    def close(self) -> None:
        with self._reader_lock:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader, self._writer, self._data_version = None, None, None
        if self._marker is not None:
            self._marker.close()
            self._marker = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ writing

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection that writes."""
        if self._writer is None:
            raise self._not_writable()
        try:
            with file_errors(self.path):
                yield self._writer
        except JournalUnavailable as error:
            if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                self._data_version = None  # a failure may change it
            raise
        finally:
            self._update_files()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one transaction: it is durable after the block, or, if that fails, not done."""
        self.check()
        with self._writing() as writer:
            try:
                writer.execute("BEGIN IMMEDIATE")
                yield writer
                writer.execute("COMMIT")
            finally:
                with suppress(sqlite3.Error):  # reopen() begins anew
                    if writer.in_transaction:
                        writer.execute("ROLLBACK")

    def head(self) -> LastEvent:
        return self._head

    def append(self, events: Sequence[Event], *, only_after: int | None = None) -> list[Event]:
        seq, _, chain = self._head
        if only_after not in (None, seq):
            raise OtherEventsFirst
        if not events:
            return []
        for event in events:
            event.seq = seq = seq + 1
            event.chain_digest = chain = next_chain_digest(chain, seq, event.own_digest())
        rows = [event.values for event in events]
        waiting = [(event.seq, event.time, event.id) for event in events if event.kind == DECISION]
        done = [(event.body.target_seq,) for event in events if event.kind in (OUTCOME, TIMEOUT)]
        with self._transaction() as writer:
            writer.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            writer.executemany("INSERT INTO pending VALUES (?, ?, ?)", waiting)
            writer.executemany("DELETE FROM pending WHERE seq = ?", done)
        self._head = LastEvent(seq, events[-1].time, chain)
        if self._marker is not None:
            self._marker.write(seq, chain)
        self.check()  # what is not under the journal's name must not be acknowledged
        return []

    def write_snapshot(self, snapshot: Snapshot, keep: int = 0) -> None:
        super().write_snapshot(snapshot, keep)
        if self._marker is not None:
            self._marker.sync()

    def purge_erased(self) -> None:
        with self._writing() as writer:
            busy = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            # else a power cut may bring back what it held; (SQLite has no locks on this file to be lost)
            sync(self._log_path)
        if busy:
            raise JournalUnavailable(
                f"the log of journal {self.path} cannot be emptied while another process reads it"
            )

    def _execute_all(self, statements: Iterable[Statement]) -> list[int]:
        with self._transaction() as writer:
            return [writer.execute(sql, values).rowcount for sql, values in statements]

    # ------------------------------------------------------------ reading

    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._reader_lock:  # views run in other threads than the writer
                if self._reader is None:
                    raise JournalUnavailable(f"journal {self.path} is closed")
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            raise unavailable_error(self.path, error) from error
        except sqlite3.Error as error:
            raise unreadable_error(self.path, error) from error

    def _having_ids(self, ids: Sequence[str]) -> Statement:
        return f"e.id IN (SELECT value FROM json_each(?)) AND {IN_INDEX}", (dumps(list(ids)).decode(),)

    # ------------------------------------------------------------ for people on call

    def integrity(self) -> Iterator[str]:
        """Yield faults that SQLite finds in the file."""
        for (problem,) in self._select("PRAGMA integrity_check(20)"):
            if problem != "ok":
                yield f"the database is damaged: {problem}"

    def problems(self) -> Iterator[str]:
        yield from self.integrity()
        if (lost := lost_end(self)) is not None:
            yield f"the journal {lost}"

    def size(self) -> int:
        try:
            return self.log_bytes() + self.path.stat().st_size
        except OSError as error:  # it is somewhere else now
            raise JournalUnavailable(f"journal {self.path} cannot be found: {error.strerror}") from error

    def log_bytes(self) -> int:
        return self._log_path.stat().st_size if self._log_path.exists() else 0
