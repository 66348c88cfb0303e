"""Reading a SQLite journal: what comes out is what went in, or JournalDamaged. (sqlite.py: writing it)"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from orjson import loads

from superarm.service.core import archive
from superarm.service.core.events import Event, chain_start
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.journal import Place, Snapshot
from superarm.service.core.parts import read_parts, snapshot_digest
from superarm.service.core.places import NO_LAST, Places
from superarm.service.core.schema import meta_text

__all__ = ["SqliteReader"]

COLUMNS = "seq, time, kind, id, x, context, body, content, digest"


class SqliteReader:
    """What `SqliteJournal` builds on; see `Journal` in journal.py."""

    path: Path
    seq: int
    reader: sqlite3.Connection  # sees what is durable
    writer: sqlite3.Connection  # sees the transaction under way, too
    intact: set[str]  # archives that were compared with their checksums
    _places: Places
    _waiting: dict[int, tuple[Any, ...]]  # events of the transaction under way that SQLite has not got yet

    def meta(self) -> dict[str, Any]:
        return {key: loads(value) for key, value in self.reader.execute("SELECT key, value FROM meta")}

    def archived(self) -> int:
        return self.reader.execute("SELECT max(last) FROM archives").fetchone()[0] or 0

    def digest_at(self, seq: int, *, uncommitted: bool = False) -> bytes:
        """The digest of an event; of none: where the chain begins."""
        if seq == 0:
            return self._start()
        if uncommitted and seq in self._waiting:
            return bytes(self._waiting[seq][-1])
        connection = self.writer if uncommitted else self.reader
        row = connection.execute("SELECT digest FROM events WHERE seq = ?", (seq,)).fetchone()
        row = row or self.reader.execute("SELECT digest FROM archives WHERE last = ?", (seq,)).fetchone()
        if row is not None:
            return bytes(row[0])
        for event in self._archived(seq - 1, seq):
            return event.digest
        raise self._damaged(seq, "is missing")

    def _archived(self, after: int, until: int) -> Iterator[Event]:
        sql = "SELECT file, sha256, first, last FROM archives ORDER BY last"
        for file, sha256, first, last in self.reader.execute(sql).fetchall():
            if last > after and first <= until:
                yield from archive.read(self, file, sha256, after, min(last, until))

    def unchecked(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events as they are read, out of the archives and the database."""
        until = self.seq if until is None else until
        yield from self._archived(after, until)
        after = max(after, self.archived())
        sql = f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
        for row in self.reader.execute(sql, (after, until)):
            yield Event(*row)

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        until = self.seq if until is None else until
        if after >= until:
            return
        before, expected = self.digest_at(after), after + 1
        for event in self.unchecked(after, until):
            if event.seq != expected:
                raise self._damaged(expected, "is missing")
            if not event.follows(before):
                raise self._damaged(event.seq, "is not what was written")
            before, expected = event.digest, expected + 1
            yield event
        if expected <= until:
            raise self._damaged(expected, "is missing")

    def event(self, seq: int, *, uncommitted: bool = False) -> Event:
        if uncommitted and seq in self._waiting:
            return Event(*self._waiting[seq])
        connection = self.writer if uncommitted else self.reader
        sql = f"SELECT {COLUMNS} FROM events WHERE seq = ?"
        row = connection.execute(sql, (seq,)).fetchone()
        if row is None:
            for event in self._archived(seq - 1, seq):
                return event  # the archive's own checksum has been compared
            raise self._damaged(seq, "is missing")
        event = Event(*row)
        if not event.follows(self.digest_at(seq - 1, uncommitted=uncommitted)):
            raise self._damaged(seq, "is not what was written")
        return event

    def place(self, id_: str, *, uncommitted: bool = False) -> Place | None:
        return self._places.find(id_, self.writer if uncommitted else self.reader, uncommitted)

    def open_places(
        self,
        *,
        limit: int,
        after: int = 0,
        since: int = 0,
        until: int | None = None,
        before: float | None = None,
    ) -> list[Place]:
        last = (self.event(after).time, after) if 0 < after <= self.seq else (*NO_LAST[:1], after)
        numbers = since, self.seq if until is None else until
        return self._places.waiting(self.reader, limit, last, numbers, inf if before is None else before)

    def recent(self, limit: int) -> list[Event]:
        sql = f"SELECT {COLUMNS} FROM events WHERE kind = 1 ORDER BY seq DESC LIMIT ?"
        return [Event(*row) for row in self.reader.execute(sql, (limit,))]

    def changes(self) -> list[Event]:
        found = [row[0] for row in self.reader.execute("SELECT seq FROM changes ORDER BY seq")]
        return [self.event(seq) for seq in found]

    # ------------------------------------------------------------ snapshots

    def snapshots(self) -> list[int]:
        return [row[0] for row in self.reader.execute("SELECT seq FROM snapshots ORDER BY seq")]

    def snapshot_notes(self) -> list[tuple[int, float, dict[str, str]]]:
        rows = self.reader.execute("SELECT seq, time, made_by FROM snapshots ORDER BY seq")
        return [(seq, at, loads(made_by)) for seq, at, made_by in rows]

    def snapshot(self, seq: int) -> Snapshot:
        try:
            sql = "SELECT time, totals, made_by, parts, digest FROM snapshots WHERE seq = ?"
            row = self.reader.execute(sql, (seq,)).fetchone()
            if row is None or snapshot_digest(self.digest_at(seq), seq, *row[:4]) != row[4]:
                raise ValueError("is not what was written" if row else "is missing")
            at, totals, made_by, parts, _ = row
            return Snapshot(
                seq, at, read_parts(self.reader, seq, loads(parts)), loads(totals), loads(made_by)
            )
        except (sqlite3.DatabaseError, TypeError, ValueError, AttributeError) as error:
            raise JournalDamaged(f"the snapshot after event {seq} of {self.path} {error}") from error

    # ------------------------------------------------------------ for people on call

    def size(self) -> int:
        parts = [self.path, *archive.folder(self.path).glob("*.parquet")]
        return self.log_bytes() + sum(part.stat().st_size for part in parts if part.exists())

    def log_bytes(self) -> int:
        log = self.path.with_name(self.path.name + "-wal")
        return log.stat().st_size if log.exists() else 0

    def missing_archives(self) -> tuple[str, ...]:
        listed = [row[0] for row in self.reader.execute("SELECT file FROM archives ORDER BY last")]
        return tuple(file for file in listed if not (archive.folder(self.path) / file).is_file())

    # ------------------------------------------------------------ inside

    def _start(self) -> bytes:
        return chain_start(meta_text(self.meta()))

    def _damaged(self, seq: int, how: str) -> JournalDamaged:
        return JournalDamaged(f"event {seq} of journal {self.path} {how}", event=seq)
