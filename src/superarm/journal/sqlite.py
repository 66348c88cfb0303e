"""A journal in one SQLite file. (sqlite_schema.py: its tables; store.py: what each method promises)

Write-ahead log, synchronous=FULL: `append` returns after the log has reached the disk. One process at a time may
write (lock.py); a mark outside of the log tells how far it had come (mark.py).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any

from orjson import loads

from superarm.journal.errors import JournalDamaged, JournalDown, JournalForeign
from superarm.journal.events import DECISION, OUTCOME, TIMEOUT, Event, chain_start, link
from superarm.journal.files import clear_parts, sync_file
from superarm.journal.lock import FileLock
from superarm.journal.mark import Marker, is_damaged, read_mark
from superarm.journal.sqlite_log import COPY, check_log, check_mark, foreign_log, log_of
from superarm.journal.sqlite_schema import check_format, connect, down
from superarm.journal.store import (
    Head,
    Pending,
    Snapshot,
    SnapshotNote,
    checked_events,
    checked_rows,
    checked_snapshot,
    damaged,
    pieces,
    snapshot_digest,
    snapshot_texts,
)

__all__ = ["SqliteStore"]

COLUMNS = "seq, time, kind, id, x, context, body, content, digest, erased"
FOUND_AT_ONCE = 256  # ids
CLEAN = "clean"  # up to this event no decision has content any more
Values = Sequence[Any]


class SqliteStore:
    """An open journal.

    Args:
        path: the file. Links are followed once, here: lock and log are beside the real file.
        read_only: look, and take no lock: also while a service runs on it; one moment of it.
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
        self._log_path = log_of(self.path)
        self._lock: FileLock | None = None
        self._marker: Marker | None = None
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._retired: list[sqlite3.Connection] = []
        self._one = Lock()
        self._files: list[tuple[int, int]] = []  # what each name stood for when it was opened
        if not self.path.is_file():
            raise JournalForeign.must("journal", "superarm", "an existing file", str(path))
        if not read_only:
            self._lock = FileLock(self.path)
        try:
            # looking first: a journal whose end is lost is left exactly as it is
            self._reader = connect(self.path, write=False)
            check_format(self._reader, self.path)
            if read_only:
                self._reader.execute("BEGIN")
            self._head = self._find_head()
            if not accept_loss:
                check_mark(self.path, self._head)
            if not read_only:
                check_log(self, any_copy=accept_loss)
                self._begin_writing()
        except sqlite3.Error as error:
            self.close()
            raise self._unreadable(error) from error
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ opening and closing

    def _begin_writing(self) -> None:
        self._writer = connect(self.path, write=True, max_mb=self.max_mb)
        try:
            self._marker = Marker(self.path)
        except OSError as error:
            raise down(self.path, error) from error
        self._marker.begin(self._head.seq, self._head.digest, self.progress(COPY))
        clear_parts(self.path)
        self._transaction(lambda writer: writer.execute("DELETE FROM probe"))  # the log is there now
        self._files = self._named()

    def _named(self) -> list[tuple[int, int]]:
        """Which files stand under the names of the journal, its log and its lock."""
        told = [os.stat(f"{self.name}{end}") for end in ("", "-wal", ".lock")]  # noqa: PTH116
        return [(one.st_dev, one.st_ino) for one in told]

    def check(self) -> None:
        if not self._files:
            return
        try:
            same = self._named() == self._files
        except FileNotFoundError:
            same = False
        except OSError as error:
            raise down(self.path, error) from error
        if not same:
            raise JournalDown(
                f"journal {self.path}, its log or its lock was replaced or deleted under the running service: "
                "stop it, put the file in its place, and start it"
            )

    def reopen(self) -> None:
        """New connections: one that was opened while the file could not be written stays that way."""
        self.check()
        if self._lock is None:
            self._lock = FileLock(self.path)
        old = [one for one in (self._reader, self._writer) if one is not None]
        reader = connect(self.path, write=False)
        try:
            self._writer, self._reader = connect(self.path, write=True, max_mb=self.max_mb), reader
        except BaseException:
            reader.close()
            raise
        # somebody may be looking through the old ones at this moment: they close next time
        for connection in self._retired:
            connection.close()
        self._retired, self.read_only = old, False
        self._head = self._find_head()
        if self._marker is None:
            self._begin_writing()

    def close(self) -> None:
        for connection in (self._reader, self._writer, *self._retired):
            if connection is not None:
                connection.close()
        self._reader, self._writer, self._retired = None, None, []
        if self._marker is not None:
            self._marker.sync()
            self._marker.close()
            self._marker = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ------------------------------------------------------------ writing

    def _transaction(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do something in one transaction; durable when this returns, or not done."""
        writer = self._writer
        if writer is None:
            raise JournalDown(f"journal {self.path} was opened to be read only")
        try:
            writer.execute("BEGIN IMMEDIATE")
            found = work(writer)
            writer.execute("COMMIT")
            return found
        except sqlite3.Error as error:
            try:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # reopen() begins anew
            raise down(self.path, error) from error

    def head(self) -> Head:
        return self._head

    def append(self, events: Sequence[Event]) -> list[Event]:
        seq, _, chain = self._head
        rows: list[tuple[Any, ...]] = []
        waiting: list[tuple[Any, ...]] = []
        done: list[tuple[int]] = []
        for event in events:
            seq += 1
            event.seq, kind = seq, event.kind
            event.digest = chain = link(chain, seq, event.own())
            rows.append(event.values)
            if kind == DECISION:
                waiting.append((seq, event.time, event.id))
            elif kind in (OUTCOME, TIMEOUT):
                done.append((event.body.of,))

        def write(writer: sqlite3.Connection) -> None:
            writer.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            if waiting:
                writer.executemany("INSERT INTO pending VALUES (?, ?, ?)", waiting)
            if done:
                writer.executemany("DELETE FROM pending WHERE seq = ?", done)

        if events:
            self._transaction(write)
            self._head = Head(seq, events[-1].time, chain)
            if self._marker is not None:
                self._marker.put(seq, chain)
            self.check()  # what is not under the journal's name must not be acknowledged
        return []

    def write_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        seq, texts = snapshot.seq, snapshot_texts(snapshot)
        for part, number, data in pieces(snapshot.parts):
            values = (seq, part, number, data)
            self._write("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", values)
            yield
        own = snapshot_digest(self.digest_at(seq), seq, snapshot.time, *texts)

        def finish(writer: sqlite3.Connection) -> None:
            sql = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, 0)"
            writer.execute(sql, (seq, snapshot.time, *texts, own))
            writer.execute(
                "DELETE FROM chunks WHERE seq NOT IN (SELECT seq FROM snapshots)"
            )  # of jobs that failed

        self._transaction(finish)
        if self._marker is not None:
            self._marker.sync()

    def drop_snapshots(self, seqs: Iterable[int]) -> None:
        gone = [(seq,) for seq in seqs]
        self._transaction(lambda writer: _drop(writer, gone))

    def pin_snapshot(self, seq: int) -> None:
        self._write("UPDATE snapshots SET pinned = 1 WHERE seq = ?", (seq,))

    def set_progress(self, key: str, value: int) -> None:
        self._write("INSERT OR REPLACE INTO progress VALUES (?, ?)", (key, value))

    def erase(self, erasure: Event, drop: Sequence[int]) -> int:
        body = erasure.body
        forget = (
            "UPDATE events SET x = NULL, context = NULL, erased = ? WHERE kind = 1 AND x IS NOT NULL AND "
        )

        def write(writer: sqlite3.Connection) -> int:
            if body.get("ids") is None:
                sql = forget + "seq < ? AND time < ? AND seq > ?"
                values = (erasure.seq, erasure.seq, body["before"], self.progress(CLEAN))
                count = writer.execute(sql, values).rowcount
                sql = "SELECT min(seq) FROM events WHERE kind = 1 AND x IS NOT NULL AND seq > ?"
                first = writer.execute(sql, values[-1:]).fetchone()[0]
                clean = (first or self._head.seq + 1) - 1
                writer.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (CLEAN, clean))
            else:
                sql = forget + "seq < ? AND id = ?"
                count = sum(
                    writer.execute(sql, (erasure.seq, erasure.seq, id_)).rowcount for id_ in body["ids"]
                )
            _drop(writer, [(seq,) for seq in drop])
            return count

        return int(self._transaction(write))

    def scrub(self) -> None:
        assert self._writer is not None
        try:
            busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            # else a power cut may bring back what it held; (SQLite has no locks on this file to be lost)
            sync_file(self._log_path)
        except (sqlite3.Error, OSError) as error:
            raise down(self.path, error) from error
        if busy:
            raise JournalDown(f"the log of journal {self.path} cannot be emptied while somebody reads in it")

    def probe(self) -> None:
        self._write("INSERT INTO probe VALUES (zeroblob(262144))")
        self._write("DELETE FROM probe")

    def _write(self, sql: str, values: Values = ()) -> None:
        self._transaction(lambda writer: writer.execute(sql, values))

    # ------------------------------------------------------------ reading

    def _select(self, sql: str, values: Values = ()) -> list[Any]:
        if self._reader is None:
            raise JournalDown(f"journal {self.path} is closed")
        try:
            with self._one:  # those who look run beside the thread that writes
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> JournalDamaged | JournalDown:
        if isinstance(error, sqlite3.OperationalError):
            return down(self.path, error)
        return foreign_log(self.path, error)

    def _find_head(self) -> Head:
        rows = self._select("SELECT seq, time, digest FROM events ORDER BY seq DESC LIMIT 1")
        return Head(*rows[0]) if rows else Head(0, 0.0, chain_start(self.meta()))

    def meta(self) -> dict[str, Any]:
        return {key: loads(value) for key, value in self._select("SELECT key, value FROM meta")}

    def progress(self, key: str) -> int:
        rows = self._select("SELECT value FROM progress WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else 0

    def digest_at(self, seq: int) -> bytes:
        if seq == 0:
            return chain_start(self.meta())
        rows = self._select("SELECT digest FROM events WHERE seq = ?", (seq,))
        if not rows:
            raise damaged(self, seq, "is missing")
        return bytes(rows[0][0])

    def unchecked(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        assert self._reader is not None
        until = self._head.seq if until is None else until
        sql = f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
        try:
            for row in self._reader.execute(sql, (after, until)):
                yield Event(*row)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        return checked_events(self, after, until)

    def find(self, ids: Sequence[str]) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for start in range(0, len(ids), FOUND_AT_ONCE):
            some = ids[start : start + FOUND_AT_ONCE]
            among = f"e.id IN ({', '.join('?' * len(some))})"
            events = self._checked(f"{among} AND e.kind < 4", some)
            for event in events + self._checked(f"{among} AND e.kind IN (4, 5)", some):
                found.setdefault(event.id, []).append(event)
        return found

    def changes(self, after: int = 0) -> list[Event]:
        return self._checked("e.kind > 5 AND e.seq > ?", (after,))

    def _checked(self, where: str, values: Values) -> list[Event]:
        """Events, each with the digest before it, in order."""
        columns = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
        sql = (
            f"SELECT {columns}, p.digest FROM events e LEFT JOIN events p ON p.seq = e.seq - 1 WHERE {where}"
        )
        return checked_rows(self, self._select(sql, values))

    def pending(
        self, limit: int, after: int = 0, until: int | None = None, before: float | None = None
    ) -> list[Pending]:
        sql = "SELECT seq, time, id FROM pending WHERE seq > ? AND seq <= ? AND time < ? ORDER BY seq LIMIT ?"
        last = self._head.seq if until is None else until
        rows = self._select(sql, (after, last, inf if before is None else before, limit))
        return [Pending(*row) for row in rows]

    def recent(self, limit: int) -> list[Event]:
        sql = f"SELECT {COLUMNS} FROM events WHERE kind = {DECISION} ORDER BY seq DESC LIMIT ?"
        return [Event(*row) for row in self._select(sql, (limit,))]

    def content_before(self, time: float) -> bool:
        first = self.progress(CLEAN)
        sql = "SELECT 1 FROM events WHERE kind = 1 AND seq > ? AND x IS NOT NULL AND time < ? LIMIT 1"
        return bool(self._select(sql, (first, time)))

    def snapshots(self) -> list[SnapshotNote]:
        rows = self._select("SELECT seq, time, made_by, pinned FROM snapshots ORDER BY seq")
        return [SnapshotNote(seq, at, loads(made_by), bool(pinned)) for seq, at, made_by, pinned in rows]

    def snapshot(self, seq: int) -> Snapshot:
        sql = "SELECT time, totals, made_by, parts, digest FROM snapshots WHERE seq = ?"
        row = next(iter(self._select(sql, (seq,))), None)
        sql = "SELECT data FROM chunks WHERE seq = ? AND part = ? ORDER BY number"
        return checked_snapshot(
            self, seq, row, lambda name: b"".join(r[0] for r in self._select(sql, (seq, name)))
        )

    # ------------------------------------------------------------ for people on call

    def integrity(self) -> Iterator[str]:
        """What SQLite finds wrong with the file."""
        for (found,) in self._select("PRAGMA integrity_check(20)"):
            if found != "ok":
                yield f"the database is damaged: {found}"

    def problems(self) -> Iterator[str]:
        yield from self.integrity()
        mark, seq = read_mark(self.path), self._head.seq
        if mark is None:
            if is_damaged(self.path):
                yield f"the mark {self.path}-mark is damaged (the next start writes it anew)"
        elif mark.seq > seq:
            yield f"the last events are lost: {mark.seq} were durable, the journal ends after {seq}"
        elif self.digest_at(mark.seq) != mark.digest:
            yield f"event {mark.seq} is not the one that was durable"

    def size(self) -> int:
        return self.log_bytes() + self.path.stat().st_size

    def log_bytes(self) -> int:
        return self._log_path.stat().st_size if self._log_path.exists() else 0


def _drop(writer: sqlite3.Connection, seqs: Sequence[tuple[int]]) -> None:
    writer.executemany("DELETE FROM snapshots WHERE seq = ? AND NOT pinned", seqs)
    writer.execute("DELETE FROM chunks WHERE seq NOT IN (SELECT seq FROM snapshots)")
