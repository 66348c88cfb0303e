"""The journal: one SQLite file that holds every event in the order in which the learner saw it.

    meta        what it was made for: learner, labels, number of features, set size
    events      decisions, outcomes and timeouts, numbered from 1
    decisions   where each id stands: its event, whether it is open, the event that closed it;
                an index of the events up to the one that meta calls "indexed", the rest is in memory
    snapshots   the whole learner (the bytes that Learner.save writes) and totals after an event
    archives    Parquet files beside the journal that hold the oldest events (see archive.py)

Write-ahead log, synchronous=FULL: `commit` returns after the log has reached the disk. One process
at a time may write; a lock file beside the journal says who.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from superarm.service.core.events import DECISION, TIMEOUT, Event
from superarm.service.core.fastjson import dumps, loads
from superarm.service.core.faults import JournalDown, JournalForeign, JournalHeld

__all__ = ["OPEN", "Journal", "Place", "Snapshot"]

FORMAT = 1
OPEN, ANSWERED, EXPIRED, LATE = 0, 1, 2, 3
STATES = ("pending", "answered", "expired", "answered late")

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,
  x BLOB, body BLOB NOT NULL
);
CREATE TABLE decisions (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, state INTEGER NOT NULL, closed INTEGER
) WITHOUT ROWID;
CREATE INDEX open_decisions ON decisions (seq, time) WHERE state = 0;
CREATE TABLE snapshots (
  seq INTEGER PRIMARY KEY, time REAL NOT NULL, model BLOB NOT NULL, stats TEXT NOT NULL
);
CREATE TABLE archives (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, file TEXT NOT NULL);
CREATE TABLE probe (filler BLOB);
"""


class Snapshot(NamedTuple):
    seq: int
    time: float
    model: bytes
    stats: dict[str, Any]


class Place(NamedTuple):
    """Where a decision stands."""

    id: str
    seq: int
    time: float
    state: int
    closed: int | None  # the event that closed it


class Journal:
    """An open journal.

    Args:
        path: the file; made if it is missing, unless ``read_only``.
        read_only: look, and take no lock: also while a service runs on it.
        max_mb: the size in megabytes beyond which it counts as full; None: the disk is the limit.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, max_mb: int | None = None) -> None:
        self.path, self.read_only, self.max_mb = Path(path), read_only, max_mb
        self.dirty = False  # whether a transaction is under way
        self.seq, self.time = 0, 0.0
        self._staged: dict[str, Place] = {}  # what the transaction under way has moved
        self._fresh: dict[str, Place] = {}  # what is on the disk as events, but not in the table yet
        self._indexed = False  # whether the transaction brings the table up to date
        self._lock: Any = None
        self._retired: set[sqlite3.Connection] = set()
        if read_only and not self.path.is_file():
            raise JournalForeign.must("journal", "superarm", "an existing file", str(path))
        if not read_only:
            self._take()
        try:
            self.writer = self.reader = self._connect()
            if not read_only:
                self.reader = self._connect(write=False)
            self._check_format()
            if read_only:  # one moment of the journal, also if a service goes on writing
                self.reader.execute("BEGIN")
            self._find_end()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ opening

    def reopen(self) -> None:
        """New connections: one that was opened while the file could not be written stays that way."""
        if self._lock is None:
            self._take()
        self.read_only = False
        writer, old = self._connect(), {self.writer, self.reader}
        self.writer, self.reader = writer, self._connect(write=False)
        # somebody may be looking through the old ones at this moment: they close next time
        self._retire(old)
        self.dirty = False
        self._find_end()

    def _take(self) -> None:
        """Be the one holder. The lock is the kernel's: it ends with the process, however that ends."""
        path = self.path.with_name(self.path.name + ".lock")
        try:
            self._lock = path.open("a+")
        except OSError as error:
            raise JournalDown(
                f"journal {self.path} cannot be opened for writing: {error.strerror}", 503
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "an unknown process"
            self._lock.close()
            self._lock = None
            wanted = "held by no other process"
            raise JournalHeld(
                f"journal of superarm must be {wanted}, got {self.path}: held by {holder}"
            ) from error
        self._lock.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self._lock.write(f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
        self._lock.flush()

    def _connect(self, *, write: bool | None = None) -> sqlite3.Connection:
        write = not self.read_only if write is None else write
        uri = f"{self.path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
        if not write and not os.access(self.path.resolve().parent, os.W_OK) and not self._log().exists():
            uri += "&immutable=1"  # a read-only disk: SQLite could not make its index of the (empty) log
        try:
            # one thread at a time uses a connection: the loop, or the thread that commits for it
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10
            )
        except sqlite3.DatabaseError as error:
            raise self.down(error) from error
        try:
            if write:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                if self.max_mb is not None:
                    size = connection.execute("PRAGMA page_size").fetchone()[0]
                    connection.execute(f"PRAGMA max_page_count = {self.max_mb * 2**20 // size}")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise self.down(error) from error
        return connection

    def _log(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    def _check_format(self) -> None:
        try:
            tables = {row[0] for row in self.writer.execute("SELECT name FROM sqlite_master")}
            if not tables and not self.read_only:
                self.writer.executescript(f"BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {FORMAT};COMMIT;")
                self._sync_directory()
                return
            version = self.writer.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.OperationalError as error:
            raise self.down(error) from error
        except sqlite3.DatabaseError as error:
            raise JournalForeign.must("journal", "superarm", "a superarm journal", str(self.path)) from error
        if not {"meta", "events", "decisions", "snapshots"} <= tables:
            raise JournalForeign.must("journal", "superarm", "a superarm journal", str(self.path))
        if version > FORMAT:
            wanted = f"of format {FORMAT} at most (install a newer superarm)"
            raise JournalForeign.must("journal", "superarm", wanted, version)

    def _sync_directory(self) -> None:
        """A new file is only there after a power cut if its directory has reached the disk too."""
        directory = os.open(self.path.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _find_end(self) -> None:
        """The last event, and where the decisions stand that the table does not know yet."""
        row = self.writer.execute("SELECT seq, time FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        last = self.writer.execute("SELECT max(last) FROM archives").fetchone()[0] or 0
        self.seq, self.time = row or (last, 0.0)
        self._staged, self._indexed = {}, False
        self._fresh = {}
        for event in self.events(self._last_indexed()):
            if event.kind == DECISION:
                place = Place(event.id, event.seq, event.time, OPEN, None)
            else:
                before = self.place(event.id)
                assert before is not None
                late = before.state == EXPIRED
                state = EXPIRED if event.kind == TIMEOUT else LATE if late else ANSWERED
                place = before._replace(state=state, closed=event.seq)
            self._fresh[event.id] = place

    def _last_indexed(self) -> int:
        row = self.reader.execute("SELECT value FROM meta WHERE key = 'indexed'").fetchone()
        return int(row[0]) if row else 0

    def down(self, error: sqlite3.DatabaseError) -> JournalDown:
        """The refusal for an error of SQLite."""
        full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        why = "its disk or its size limit is full" if full else str(error)
        return JournalDown(f"journal {self.path} cannot be written: {why}", 507 if full else 503)

    def _retire(self, connections: set[sqlite3.Connection]) -> None:
        for connection in self._retired - connections:
            connection.close()
        self._retired = connections

    def close(self) -> None:
        for name in ("reader", "writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        self._retire(set())
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ writing

    def write(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """One statement in the transaction under way; it begins here if there is none."""
        try:
            if not self.dirty:
                self.writer.execute("BEGIN IMMEDIATE")
                self.dirty = True
            return self.writer.execute(sql, values)
        except sqlite3.DatabaseError as error:
            raise self.down(error) from error

    def append(self, at: float, kind: int, x: bytes | None, text: bytes, place: Place) -> int:
        """A further event, after which decision ``place.id`` stands there. Its number."""
        seq = self.seq + 1
        self.write("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (seq, at, kind, place.id, x, text))
        self._staged[place.id] = place
        self.seq, self.time = seq, at
        return seq

    def index(self) -> None:
        """Bring the table of decisions up to date with the events: many rows at once cost less."""
        rows = sorted({**self._fresh, **self._staged}.values())
        sql = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
        self.write("INSERT OR REPLACE INTO meta VALUES ('indexed', ?)", (str(self.seq),))
        try:
            self.writer.executemany(f"{sql} SET state = excluded.state, closed = excluded.closed", rows)
        except sqlite3.DatabaseError as error:
            raise self.down(error) from error
        self._staged, self._indexed = {}, True

    def commit(self) -> None:
        """Return when all that was written is on the disk."""
        if self.dirty:
            try:
                self.writer.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                raise self.down(error) from error
            self.dirty = False
            if self._indexed:
                self._fresh = {}
            self._fresh.update(self._staged)
            self._staged, self._indexed = {}, False

    def rollback(self) -> None:
        """As if nothing had been written since the last commit."""
        self.dirty = False
        self._staged, self._indexed = {}, False
        try:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
            self._find_end()
        except sqlite3.DatabaseError as error:
            raise self.down(error) from error

    def probe(self) -> None:
        """Try whether a good deal can be written; leave nothing behind."""
        try:
            self.write("INSERT INTO probe VALUES (zeroblob(262144))")
            self.commit()
            self.write("DELETE FROM probe")
            self.commit()
        except JournalDown:
            self.rollback()
            raise

    def put_snapshot(self, model: bytes, stats: dict[str, Any]) -> None:
        values = (self.seq, self.time or time.time(), model, dumps(stats).decode())
        self.index()  # events up to a snapshot may move to an archive
        self.write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", values)

    def put_meta(self, meta: dict[str, Any]) -> None:
        for key, value in meta.items():
            self.write("INSERT INTO meta VALUES (?, ?)", (key, dumps(value).decode()))

    # ------------------------------------------------------------ reading

    def meta(self) -> dict[str, Any]:
        """What the journal was made for; empty if it is new."""
        found = {key: loads(value) for key, value in self.reader.execute("SELECT key, value FROM meta")}
        found.pop("indexed", None)
        return found

    def snapshots(self) -> list[int]:
        """The event numbers of the kept snapshots, oldest first."""
        return [row[0] for row in self.reader.execute("SELECT seq FROM snapshots ORDER BY seq")]

    def snapshot(self, seq: int) -> Snapshot:
        row = self.reader.execute("SELECT * FROM snapshots WHERE seq = ?", (seq,)).fetchone()
        return Snapshot(row[0], row[1], row[2], loads(row[3]))

    def archived(self) -> int:
        """The number of the last event that has moved to an archive."""
        return self.reader.execute("SELECT max(last) FROM archives").fetchone()[0] or 0

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """All events after a number, in order, out of the archives and the journal."""
        from superarm.service.core import archive

        until = self.seq if until is None else until
        for file, first, last in self.reader.execute(
            "SELECT file, first, last FROM archives ORDER BY last"
        ).fetchall():
            if last > after and first <= until:
                yield from archive.read(archive.folder(self.path) / file, after, min(last, until))
        after = max(after, self.archived())  # (no compaction runs meanwhile: it takes turns with us)
        sql = "SELECT seq, time, kind, id, x, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
        for row in self.reader.execute(sql, (after, until)):
            yield Event(*row)

    def event(self, seq: int, *, uncommitted: bool = False) -> Event:
        """One event, wherever it is by now."""
        connection = self.writer if uncommitted else self.reader
        row = connection.execute(
            "SELECT seq, time, kind, id, x, body FROM events WHERE seq = ?", (seq,)
        ).fetchone()
        return Event(*row) if row else next(self.events(seq - 1, seq))

    def place(self, id_: str, *, uncommitted: bool = False) -> Place | None:
        """Where a decision stands, or None if there is no such."""
        known = self._staged.get(id_) if uncommitted else None
        if known is None and not (uncommitted and self._indexed):
            known = self._fresh.get(id_)
        if known is not None:
            return known
        connection = self.writer if uncommitted else self.reader
        row = connection.execute("SELECT * FROM decisions WHERE id = ?", (id_,)).fetchone()
        return Place(*row) if row else None

    def open_places(self, *, limit: int, after: int = 0, before: float | None = None) -> list[Place]:
        """Decisions without an answer, oldest first, made before a time, after an event."""
        sql = "SELECT * FROM decisions INDEXED BY open_decisions WHERE state = 0 AND seq > ? AND time < ?"
        before = float("inf") if before is None else before
        cursor = self.reader.execute(f"{sql} ORDER BY seq", (after, before))
        known = (place for row in cursor if (place := Place(*row)).id not in self._fresh)
        new = (p for p in self._fresh.values() if p.state == OPEN and p.seq > after and p.time < before)
        return list(islice(chain(known, new), limit))

    def recent(self, limit: int) -> list[Event]:
        """The newest decisions, newest first."""
        sql = "SELECT seq, time, kind, id, x, body FROM events WHERE kind = 1 ORDER BY seq DESC LIMIT ?"
        return [Event(*row) for row in self.reader.execute(sql, (limit,))]

    def size(self) -> int:
        """Bytes on the disk: the journal, its log, and the archives."""
        from superarm.service.core.archive import folder

        parts = [self.path, self._log(), *folder(self.path).glob("*.parquet")]
        return sum(part.stat().st_size for part in parts if part.exists())
