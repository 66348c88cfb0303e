"""A journal in PostgreSQL, that many processes append to. (postgres_schema.py: tables; store.py: the promises)

One connection writes, a few read; all waits are bounded (postgres_address.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import inf
from select import POLLIN, poll
from typing import Any

from orjson import loads

from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.events import DECISION, Event, chain_start
from superarm.journal.postgres_address import Address, Connection, failures, psycopg
from superarm.journal.postgres_schema import check, put_meta
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

__all__ = ["PostgresStore"]

# a database that is away is told by us: once, in one line
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

NAMES = "seq, time, kind, id, x, context, body, content, digest, erased"
APPEND = """SELECT numbers, digests FROM append(
  %b::float8[], %b::smallint[], %b::text[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[],
  %b::bigint[])"""
READ_AT_ONCE = 4_000


class PostgresStore:
    """An open journal.

    Args:
        where: its address, ``postgresql://user@host/name``.
        read_only: one moment of it, for replay, verify and export.
        patience: seconds that a statement may take before it counts as failed.
    """

    def __init__(self, where: str | Address, *, read_only: bool = False, patience: float = 5.0) -> None:
        self.address = where if isinstance(where, Address) else Address(where, patience=patience)
        self.name, self.read_only = str(self.address), read_only
        self._writer: Connection | None = None
        self._no_room_for: list[
            Event
        ] = []  # what a full disk has refused: it is full until these can be written
        self._moment: Connection | None = None
        self._pool = self.address.pool()
        try:
            if read_only:
                self._moment = self.address.connect("superarm reads", patience=0.0)
                self._moment.autocommit = False
                self._moment.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            with self._reading() as connection:
                if not check(connection, self.address) or not self.meta():
                    wanted = "a superarm journal (superarm serve with --labels makes one)"
                    raise JournalForeign.must("journal", "superarm", wanted, self.name)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        source = nullcontext(self._moment) if self._moment is not None else self._pool.connection()
        with failures(self.address), source as connection:
            yield connection

    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as connection:
            return connection.execute(sql, values, binary=True).fetchall()

    def close(self) -> None:
        for connection in (self._writer, self._moment):
            if connection is not None:
                connection.close()
        self._writer = None
        self._pool.close()

    # ------------------------------------------------------------ writing

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The connection that writes. After a failure it is not known what was written: it is dropped."""
        if self.read_only:
            raise JournalDown(f"journal {self.name} was opened to be read only")
        try:
            with failures(self.address):
                if self._writer is not None and _gone(self._writer):
                    self._writer.close()
                    self._writer = None
                if self._writer is None:
                    self._writer = self.address.connect("superarm writes")
                yield self._writer
        except BaseException:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            raise

    def _write(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self.writing() as connection:
            return connection.execute(sql, values).rowcount

    def append(self, events: Sequence[Event]) -> list[Event]:
        if not events:
            return []
        with self.writing() as connection:
            try:
                row = connection.execute(APPEND, _columns(events), binary=True).fetchone()
            except psycopg.errors.DiskFull:
                self._no_room_for = list(events)
                raise
        assert row is not None
        lost = []
        for event, seq, digest in zip(events, *row, strict=True):
            if seq is None:
                lost.append(event)
            else:
                event.seq, event.digest = seq, digest
        return lost

    def write_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        seq, texts = snapshot.seq, snapshot_texts(snapshot)
        for piece in pieces(snapshot.parts):
            self._write("INSERT INTO parts VALUES (%s, %s, %s, %b) ON CONFLICT DO NOTHING", (seq, *piece))
            yield
        own = snapshot_digest(self.digest_at(seq), seq, snapshot.time, *texts)
        sql = "INSERT INTO snapshots VALUES (%s, %s, %s, %s, %s, %b) ON CONFLICT DO NOTHING"
        self._write(sql, (seq, snapshot.time, *texts, own))

    def drop_snapshots(self, seqs: Iterable[int]) -> None:
        with self.writing() as connection, connection.transaction():
            _drop(connection, list(seqs))

    def pin_snapshot(self, seq: int) -> None:
        self._write("UPDATE snapshots SET pinned = true WHERE seq = %s", (seq,))

    def set_progress(self, key: str, value: int) -> None:
        sql = "INSERT INTO progress VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._write(sql, (key, value))

    def erase(self, erasure: Event, drop: Sequence[int]) -> int:
        body = erasure.body
        where, value = (
            ("time < %s", body["before"]) if body.get("ids") is None else ("id = ANY(%s)", body["ids"])
        )
        sql = f"""UPDATE events SET x = NULL, context = NULL, erased = %s
        WHERE kind = 1 AND x IS NOT NULL AND seq < %s AND {where}"""
        with self.writing() as connection, connection.transaction():
            count = connection.execute(sql, (erasure.seq, erasure.seq, value)).rowcount
            _drop(connection, list(drop))
        return int(count)

    def scrub(self) -> None:
        """Nothing: what the pages and the log of the database still have is for VACUUM and for its backups."""

    def probe(self) -> None:
        with self.writing() as connection:
            check(connection, self.address)
            if self._no_room_for:  # there is room when these can be written; they are taken back
                with connection.transaction(force_rollback=True):
                    connection.execute(APPEND, _columns(self._no_room_for), binary=True)
                self._no_room_for = []
            else:
                connection.execute(APPEND, _columns(()), binary=True)

    def reopen(self) -> None:
        """Nothing: the next use opens what is needed."""

    def check(self) -> None:
        self.probe()

    # ------------------------------------------------------------ reading

    def meta(self) -> dict[str, Any]:
        return {key: loads(value) for key, value in self._select("SELECT key, value FROM meta")}

    def head(self) -> Head:
        return Head(*self._select("SELECT seq, time, digest FROM head")[0])

    def progress(self, key: str) -> int:
        rows = self._select("SELECT value FROM progress WHERE key = %s", (key,))
        return int(rows[0][0]) if rows else 0

    def digest_at(self, seq: int) -> bytes:
        if seq == 0:
            return chain_start(self.meta())
        rows = self._select("SELECT digest FROM events WHERE seq = %s", (seq,))
        if not rows:
            raise damaged(self, seq, "is missing")
        return bytes(rows[0][0])

    def unchecked(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        until = self.head().seq if until is None else until
        sql = f"SELECT {NAMES} FROM events WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT {READ_AT_ONCE}"
        while after < until:
            rows = self._select(sql, (after, until))
            for row in rows:
                yield Event(*row)
            if len(rows) < READ_AT_ONCE:
                return
            after = rows[-1][0]

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        return checked_events(self, after, until)

    def find(self, ids: Sequence[str]) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        if ids:
            among = list(ids)
            events = self._checked("e.id = ANY(%s) AND e.kind < 4", among)
            for event in events + self._checked("e.id = ANY(%s) AND e.kind IN (4, 5)", among):
                found.setdefault(event.id, []).append(event)
        return found

    def changes(self, after: int = 0) -> list[Event]:
        return self._checked("e.kind > 5 AND e.seq > %s", after)

    def _checked(self, where: str, value: Any) -> list[Event]:
        """Events, each with the digest before it, in order."""
        columns = ", ".join(f"e.{name}" for name in NAMES.split(", "))
        sql = (
            f"SELECT {columns}, p.digest FROM events e LEFT JOIN events p ON p.seq = e.seq - 1 WHERE {where}"
        )
        return checked_rows(self, self._select(sql, (value,)))

    def pending(
        self, limit: int, after: int = 0, until: int | None = None, before: float | None = None
    ) -> list[Pending]:
        sql = "SELECT seq, time, id FROM pending WHERE seq > %s AND seq <= %s AND time < %s ORDER BY seq LIMIT %s"
        last = (1 << 62) if until is None else until
        return [
            Pending(*row)
            for row in self._select(sql, (after, last, inf if before is None else before, limit))
        ]

    def recent(self, limit: int) -> list[Event]:
        sql = f"SELECT {NAMES} FROM events WHERE kind = {DECISION} ORDER BY seq DESC LIMIT %s"
        return [Event(*row) for row in self._select(sql, (limit,))]

    def content_before(self, time: float) -> bool:
        return bool(
            self._select(
                "SELECT 1 FROM events WHERE kind = 1 AND x IS NOT NULL AND time < %s LIMIT 1", (time,)
            )
        )

    def snapshots(self) -> list[SnapshotNote]:
        rows = self._select("SELECT seq, time, made_by, pinned FROM snapshots ORDER BY seq")
        return [SnapshotNote(seq, at, loads(made_by), pinned) for seq, at, made_by, pinned in rows]

    def snapshot(self, seq: int) -> Snapshot:
        sql = "SELECT time, totals, made_by, parts, digest FROM snapshots WHERE seq = %s"
        row = next(iter(self._select(sql, (seq,))), None)
        sql = "SELECT data FROM parts WHERE seq = %s AND part = %s ORDER BY number"
        return checked_snapshot(
            self, seq, row, lambda name: b"".join(r[0] for r in self._select(sql, (seq, name)))
        )

    # ------------------------------------------------------------ what many processes need

    def published(self, newer_than: int = -1, time: float = 0.0) -> Snapshot | None:
        """The newest model, its shadows and totals, if it knows more events, or as many and is younger."""
        sql = """SELECT part, seq, time, data, totals FROM published
        WHERE seq > %s OR seq = %s AND time > %s::float8"""
        rows = self._select(sql, (newer_than, newer_than, time))
        parts = {row[0]: row[3] for row in rows}
        if "model" not in parts or len({row[1] for row in rows}) != 1:
            return None
        _, seq, at, _, totals = next(row for row in rows if row[0] == "model")
        return Snapshot(seq, at, parts, loads(totals), {})

    def publish(self, snapshot: Snapshot, totals: bytes) -> None:
        """Let everybody have it; one that knows fewer events than the last does not count."""
        with self.writing() as connection, connection.transaction():
            for part, data in snapshot.parts.items():
                values = (part, snapshot.seq, snapshot.time, data, totals if part == "model" else b"")
                connection.execute(PUBLISH, values)
            connection.execute("DELETE FROM published WHERE seq < %s", (snapshot.seq,))
            connection.execute("SELECT pg_notify('superarm', %s)", (str(snapshot.seq),))

    def next_rounds(self) -> int:
        """The first of a block of rounds for this process."""
        with self.writing() as connection:
            row = connection.execute("SELECT nextval('rounds')").fetchone()
        assert row is not None
        return int(row[0])

    # ------------------------------------------------------------ for people on call

    def problems(self) -> Iterator[str]:
        last = self._select("SELECT seq, time, digest FROM events ORDER BY seq DESC LIMIT 1")
        if last and Head(*last[0]) != self.head():
            yield f"the last event is {last[0][0]}, and {self.head().seq} was written last"

    def size(self) -> int:
        sql = """SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'superarm'::regnamespace AND relkind = 'r'"""
        return int(self._select(sql)[0][0] or 0)

    def log_bytes(self) -> int:
        return 0


PUBLISH = """
INSERT INTO published VALUES (%s, %s, %s, %b, %b) ON CONFLICT (part) DO UPDATE
SET seq = excluded.seq, time = excluded.time, data = excluded.data, totals = excluded.totals
WHERE published.seq <= excluded.seq"""


def create(address: Address, meta: dict[str, Any], first: Snapshot) -> bool:
    """A new journal with its first snapshot, in a database with tables; False if another process was faster."""
    with address.connect("superarm creates") as connection, failures(address), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('superarm journal'))")
        if connection.execute("SELECT 1 FROM meta").fetchone() is not None:
            return False
        put_meta(connection, meta)
        put_snapshot(connection, first, chain_start(meta), pinned=True)
        return True


def put_snapshot(connection: Connection, snapshot: Snapshot, chain: bytes, *, pinned: bool) -> None:
    """Keep a snapshot, in the transaction under way."""
    for piece in pieces(snapshot.parts):
        connection.execute("INSERT INTO parts VALUES (%s, %s, %s, %b)", (snapshot.seq, *piece))
    texts = snapshot_texts(snapshot)
    own = snapshot_digest(chain, snapshot.seq, snapshot.time, *texts)
    values = (snapshot.seq, snapshot.time, *texts, own, pinned)
    connection.execute("INSERT INTO snapshots VALUES (%s, %s, %s, %s, %s, %b, %s)", values)


def _columns(events: Sequence[Event]) -> list[Any]:
    abouts = [event.body.of if event.kind in (2, 3) else None for event in events]
    return [
        [event.time for event in events],
        [event.kind for event in events],
        [event.id for event in events],
        [event.x for event in events],
        [event.context for event in events],
        [event.text for event in events],
        [event.content for event in events],
        [event.own() for event in events],
        abouts,
    ]


def _drop(connection: Connection, seqs: list[int]) -> None:
    connection.execute("DELETE FROM snapshots WHERE seq = ANY(%s) AND NOT pinned", (seqs,))
    connection.execute(
        "DELETE FROM parts WHERE seq = ANY(%s) AND seq NOT IN (SELECT seq FROM snapshots)", (seqs,)
    )


def _gone(connection: Connection) -> bool:
    """Whether the server has ended the connection: an idle one has nothing to read but that."""
    if connection.closed:
        return True
    waiting = poll()
    waiting.register(connection.fileno(), POLLIN)
    return bool(waiting.poll(0))
