"""A journal in one SQLite file. (schema.py: its tables)

Write-ahead log, synchronous=FULL: `commit` returns after the log has reached the disk. One process at a
time may write (holder.py); a mark outside of the log tells how far it had come (mark.py). No statement is
ever run outside of a transaction that this file has begun: when SQLite takes one back by itself, as
it does when the disk is full, all later writes fail until `rollback`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from superarm.service.core import archive
from superarm.service.core.events import (
    CHANGE,
    DECISION,
    TIMEOUT,
    content_digest,
    link,
)
from superarm.service.core.faults import JournalDamaged, JournalDown, JournalForeign
from superarm.service.core.files import clear_parts, sync_file
from superarm.service.core.holder import Hold
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Place
from superarm.service.core.mark import Marker, read_mark
from superarm.service.core.parts import write_snapshot
from superarm.service.core.places import PUT, Places
from superarm.service.core.schema import check_format, connect, down
from superarm.service.core.sqlite_reading import SqliteReader

__all__ = ["SqliteJournal"]

INDEX_EVERY = 2_000  # events


class SqliteJournal(SqliteReader):
    """An open journal; see `Journal` in journal.py.

    Args:
        path: the file. Links are followed once, here: lock, log and archives are beside the real file.
        read_only: look, and take no lock: also while a service runs on it.
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
        self.path, self.read_only, self.max_mb = Path(path).resolve(), read_only, max_mb
        self.name = str(self.path)
        self.dirty = False  # whether there is anything to commit
        self._begun = False  # whether SQLite has a transaction under way
        self._waiting: dict[int, tuple[Any, ...]] = {}  # events on their way to it
        self._indexed = 0  # the last event that the table of decisions knows
        self.seq, self.time, self._head = 0, 0.0, b""
        self._places = Places()
        self.intact: set[str] = set()  # archives that were compared with their checksums
        self._lock: Any = None
        self._marker: Marker | None = None
        self._retired: set[sqlite3.Connection] = set()
        if not self.path.is_file():
            raise JournalForeign.must("journal", "superarm", "an existing file", str(path))
        if not read_only:
            self._lock = Hold(self.path)
        try:
            # looking first: a journal whose end is lost is left exactly as it is
            self.writer = self.reader = connect(self.path, write=False)
            check_format(self.reader, self.path)
            if read_only:  # one moment of the journal, also if a service goes on writing
                self.reader.execute("BEGIN")
            self._find_end()
            self._check_mark(accept_loss)
            if not read_only:
                self._begin_writing()
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._unreadable(error) from error
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ opening

    def _begin_writing(self) -> None:
        self.writer = connect(self.path, write=True, max_mb=self.max_mb)
        try:
            self._marker = Marker(self.path)
        except OSError as error:
            raise down(self.path, error) from error
        self._marker.begin(self.seq, self._head)
        clear_parts(self.path)
        archive.tidy(self)

    def reopen(self) -> None:
        """New connections: one that was opened while the file could not be written stays that way."""
        if self._lock is None:
            self._lock = Hold(self.path)
        self.read_only = False
        old = {self.writer, self.reader}
        writer, reader = connect(self.path, write=True, max_mb=self.max_mb), connect(self.path, write=False)
        self.writer, self.reader = writer, reader
        # somebody may be looking through the old ones at this moment: they close next time
        self._retire(old)
        self.dirty = self._begun = False
        self._waiting = {}
        try:
            self._find_end()
        except sqlite3.DatabaseError as error:
            raise down(self.path, error) from error
        if self._marker is None:
            self._begin_writing()

    def _check_mark(self, accept_loss: bool) -> None:
        mark = read_mark(self.path)
        if mark is None or accept_loss:
            return
        if mark.seq > self.seq:
            raise JournalDamaged(
                f"journal {self.path} has lost its last events: {mark.seq:,} were durable, it ends after "
                f"{self.seq:,}. Go back to a backup, or accept it: superarm verify --accept-loss"
            )
        if mark.seq == self.seq and mark.digest != self._head:
            raise JournalDamaged(
                f"journal {self.path} ends with another event {mark.seq:,} than the one that was durable. "
                "Go back to a backup, or accept it: superarm verify --accept-loss"
            )

    def _find_end(self) -> None:
        """The last event, and where the decisions stand that the table does not know yet."""
        sql = "SELECT seq, time, digest FROM events ORDER BY seq DESC LIMIT 1"
        row = self.reader.execute(sql).fetchone()
        if row is None:
            row = self.reader.execute("SELECT last, 0.0, digest FROM archives ORDER BY last DESC").fetchone()
        self.seq, self.time, self._head = row or (0, 0.0, self._start())
        done = self.reader.execute("SELECT value FROM progress WHERE key = 'indexed'").fetchone()
        self._indexed = done[0] if done else 0
        fresh: dict[str, Place] = {}
        for event in self.events(self._indexed):
            if event.kind == DECISION:
                fresh[event.id] = Place(event.id, event.seq, event.time, OPEN, None)
            elif event.kind != CHANGE:
                before = fresh.get(event.id)
                if before is None:
                    sql = "SELECT * FROM decisions WHERE id = ?"
                    found = self.reader.execute(sql, (event.id,)).fetchone()
                    if found is None:
                        raise self._damaged(event.seq, "answers a decision that is not there")
                    before = Place(*found)
                state = LATE if before.state == EXPIRED else ANSWERED
                state = EXPIRED if event.kind == TIMEOUT else state
                fresh[event.id] = before._replace(state=state, closed=event.seq)
        self._places.replaced(fresh)

    def _unreadable(self, error: Exception) -> JournalDamaged | JournalDown:
        if isinstance(error, sqlite3.OperationalError):
            return down(self.path, error)
        return JournalDamaged(f"journal {self.path} cannot be read: {error}")

    def _retire(self, connections: set[sqlite3.Connection]) -> None:
        for connection in self._retired - connections:
            connection.close()
        self._retired = connections

    def close(self) -> None:
        for name in ("reader", "writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        self._retire(set())
        if self._marker is not None:
            self._marker.sync()
            self._marker.close()
            self._marker = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ writing

    def write(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """One statement in the transaction under way, after the events so far."""
        try:
            self._begin()
            return self.writer.execute(sql, values)
        except sqlite3.Error as error:
            raise down(self.path, error) from error

    def _begin(self) -> None:
        """Have a transaction that holds all events so far."""
        self.dirty = True
        if not self._begun:
            self.writer.execute("BEGIN IMMEDIATE")
            self._begun = True
        elif not self.writer.in_transaction:
            raise sqlite3.OperationalError("an earlier failure has taken the transaction back")
        if self._waiting:
            rows = self._waiting.values()
            self.writer.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            changes = [(row[0],) for row in rows if row[2] == CHANGE]
            self.writer.executemany("INSERT INTO changes VALUES (?)", changes)
            self._waiting = {}

    def append(
        self, at: float, kind: int, x: bytes | None, context: bytes | None, text: bytes, place: Place | None
    ) -> int:
        # the row waits in memory: SQLite gets many at once, in the thread that commits
        seq, id_ = self.seq + 1, "" if place is None else place.id
        content = b"" if x is None else content_digest(x, context)
        digest = link(self._head, seq, at, kind, id_, content, text)
        self._waiting[seq] = (seq, at, kind, id_, x, context, text, content, digest)
        if place is not None:
            self._places.staged[id_] = place
        self.seq, self.time, self._head, self.dirty = seq, at, digest, True
        return seq

    def index(self) -> None:
        """Bring the table of decisions up to date with the events."""
        self.write("INSERT OR REPLACE INTO progress VALUES ('indexed', ?)", (self.seq,))
        try:
            self.writer.executemany(PUT, self._places.rows())
        except sqlite3.Error as error:
            raise down(self.path, error) from error
        self._places.written()
        self._indexed = self.seq

    def put_part(self, seq: int, name: str, number: int, data: bytes) -> None:
        self.write("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", (number, seq, name, data))

    def put_snapshot(
        self, seq: int, at: float, totals: dict[str, Any], made_by: dict[str, str], parts: dict[str, Any]
    ) -> None:
        self.index()  # events up to a snapshot may move to an archive
        write_snapshot(self.write, self.digest_at(seq, uncommitted=True), seq, at, totals, made_by, parts)
        self.write("DELETE FROM chunks WHERE seq NOT IN (SELECT seq FROM snapshots)")  # of jobs that failed

    def drop_snapshots(self, seqs: Iterable[int]) -> None:
        for seq in seqs:
            self.write("DELETE FROM snapshots WHERE seq = ?", (seq,))
            self.write("DELETE FROM chunks WHERE seq = ?", (seq,))

    def pin_snapshot(self, seq: int) -> None:
        self.write("UPDATE snapshots SET pinned = 1 WHERE seq = ?", (seq,))

    def commit(self) -> None:
        if self.dirty:
            try:
                self._begin()
                if self.seq - self._indexed >= INDEX_EVERY:
                    self.index()
                self.writer.execute("COMMIT")
            except sqlite3.Error as error:
                raise down(self.path, error) from error
            if self._marker is not None:
                self._marker.put(self.seq, self._head)
            self._places.committed()
            self.dirty = self._begun = False

    def rollback(self) -> None:
        self.dirty = self._begun = False
        self._waiting = {}
        try:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
            self._find_end()
        except sqlite3.Error as error:
            raise down(self.path, error) from error

    def probe(self) -> None:
        try:
            self.write("INSERT INTO probe VALUES (zeroblob(262144))")
            self.commit()
            self.write("DELETE FROM probe")
            self.commit()
        except JournalDown:
            self.rollback()
            raise

    def sync_mark(self) -> None:
        if self._marker is not None:
            self._marker.sync()

    def empty_log(self) -> None:
        """Move all of the log into the file, and leave nothing in it."""
        try:
            busy = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            # else a power cut may bring back what it held; (SQLite has no locks on this file to be lost)
            sync_file(self.path.with_name(self.path.name + "-wal"))
        except (sqlite3.Error, OSError) as error:
            raise down(self.path, error) from error
        if busy:
            raise JournalDown(f"the log of journal {self.path} cannot be emptied while somebody reads in it")
