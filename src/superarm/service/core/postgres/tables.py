"""Rows in and out of the tables: writers, events, batches, snapshots, what is published. (schema.py)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import starmap
from select import POLLIN, poll
from struct import Struct
from typing import Any, NamedTuple

from orjson import dumps, loads

from superarm.service.core.events import DECISION, DIGEST_BYTES, content_digest
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.journal import Snapshot
from superarm.service.core.parts import describe, pieces, snapshot_digest
from superarm.service.core.postgres.clock import NOW
from superarm.service.core.postgres.connecting import Connection
from superarm.service.core.postgres.schema import check

__all__ = [
    "WAITING",
    "Batch",
    "Kept",
    "Published",
    "Row",
    "Writer",
    "batch_digest",
    "batch_rows",
    "batches",
    "check_writable",
    "drop_snapshots",
    "in_order",
    "kept",
    "last_batch",
    "load_published",
    "meta_of",
    "notes_of",
    "read_snapshot",
    "snapshot_seqs",
    "write_snapshot",
]

SHIFT = 40  # number = writer << 40 | n
LOCKS = 0x5A4  # our part of the advisory locks: (LOCKS, 0) the learner's, (LOCKS, writer) each writer's
COLUMNS = "number, time, kind, id, x, context, body, content"
# what is kept, and not taken by the learner yet
WAITING = f"""
SELECT e.* FROM superarm.writers w JOIN superarm.events e
ON e.number > w.taken AND e.number < (w.writer::bigint + 1) << {SHIFT} WHERE NOT w.closed"""
_HEAD = Struct("<qdB")


class Row(NamedTuple):
    """One event."""

    number: int
    time: float
    kind: int
    id: str
    x: bytes | None
    context: bytes | None
    text: bytes
    content: bytes

    @property
    def body(self) -> dict[str, Any]:
        return loads(self.text)  # type: ignore[no-any-return]

    @property
    def writer(self) -> int:
        return self.number >> SHIFT

    @property
    def intact(self) -> bool:
        """Whether features and context are what was written, or were erased."""
        return self.x is None or content_digest(self.x, self.context) == self.content


class Kept(NamedTuple):
    """A decision, and what has come of it: each with whether the learner has taken it, and what it noted."""

    decision: Row
    outcome: tuple[Row, bool, dict[str, Any] | None] | None
    timeout: tuple[Row, bool, dict[str, Any] | None] | None


class Batch(NamedTuple):
    """A piece of the one order, and the model after it."""

    version: int
    first: int
    last: int
    term: int
    time: float
    taken: list[list[int]]  # [writer's number before, last number] of each writer, in their order
    model: bytes  # the digest of the model file that was published
    digest: bytes  # of all of it, and of the batch before


class Published(NamedTuple):
    version: int
    seq: int
    learnt: int
    time: float
    parts: dict[str, bytes]
    totals: dict[str, Any]


class Writer:
    """A connection that writes events. Its numbers grow with its commits, so nothing can come late between.

    One whose commit may or may not have happened is never used again: the next one has another number.
    An advisory lock tells the learner that it is alive.
    """

    def __init__(self, connection: Connection, process: str) -> None:
        self.connection = connection
        row = connection.execute("SELECT nextval('writer_numbers')").fetchone()
        assert row is not None
        self.writer = int(row[0])
        connection.execute("SELECT pg_advisory_lock(%s, %s)", (LOCKS, self.writer))
        start = self.writer << SHIFT
        connection.execute(
            f"INSERT INTO writers VALUES (%s, %s, {NOW}, %s, %s)", (self.writer, process, start, start)
        )
        self.number = start

    def rows(self, events: Iterable[tuple[float, int, str, bytes | None, bytes | None, bytes]]) -> list[Row]:
        """Events as rows with numbers: decisions first, each kind by id, so that no two writers can wait
        for each other."""
        made = []
        for at, kind, id_, x, context, text in sorted(events, key=lambda event: (event[1], event[2])):
            self.number += 1
            content = b"" if kind != DECISION else content_digest(x or b"", context)
            made.append(Row(self.number, at, kind, id_, x, context, text, content))
        return made

    def insert(self, rows: Sequence[Row]) -> set[int]:
        """Write rows, in one statement that commits by itself; the numbers of those that were new."""
        return insert(self.connection, rows)

    @property
    def gone(self) -> bool:
        """Whether the server has ended the connection: an idle one has nothing to read but that."""
        if self.connection.closed:
            return True
        waiting = poll()
        waiting.register(self.connection.fileno(), POLLIN)
        return bool(waiting.poll(0))

    def close(self) -> None:
        self.connection.close()


INSERT = f"""
INSERT INTO events ({COLUMNS})
SELECT * FROM unnest(%b::bigint[], %b::float8[], %b::smallint[], %b::text[], %b::bytea[], %b::bytea[],
                     %b::bytea[], %b::bytea[])
ON CONFLICT DO NOTHING RETURNING number"""


def insert(connection: Connection, rows: Sequence[Row]) -> set[int]:
    """Write rows, in one statement; the numbers of those that were new."""
    columns: Any = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in Row._fields]
    return {number for (number,) in connection.execute(INSERT, columns, binary=True).fetchall()}


def check_writable(connection: Connection, where: object, refused: Sequence[Row] = ()) -> None:
    """Write nothing, and find whether this role could write: rights are looked at also for no rows.

    Whether there is room is found with rows that once found none: they are written, and taken back.
    """
    check(connection, where)
    insert(connection, ())
    if refused:
        with connection.transaction(force_rollback=True):
            insert(connection, refused)


def kept(connection: Connection, ids: Sequence[str]) -> dict[str, Kept]:
    """These decisions, with answers and timeouts."""
    sql = """
    SELECT e.number, e.time, e.kind, e.id, e.x, e.context, e.body, e.content, e.number <= w.taken, r.body
    FROM events e JOIN writers w ON w.writer = e.number >> 40 LEFT JOIN results r ON r.number = e.number
    WHERE e.kind < 4 AND e.id = ANY(%s)"""
    found: dict[str, dict[int, tuple[Row, bool, dict[str, Any] | None]]] = {}
    for *columns, taken, note in connection.execute(sql, (list(ids),), binary=True).fetchall():
        row = Row(*columns)
        found.setdefault(row.id, {})[row.kind] = row, taken, None if note is None else loads(note)
    return {
        id_: Kept(kinds[DECISION][0], kinds.get(2), kinds.get(3))
        for id_, kinds in found.items()
        if DECISION in kinds
    }


# ---------------------------------------------------------------- the order


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The order inside of a batch: decisions, then the rest; of a past that was moved here, its own."""
    return sorted(rows, key=lambda row: (row.kind != DECISION and row.number >> SHIFT > 0, row.number))


def batch_digest(
    before: bytes, first: int, taken: list[list[int]], model: bytes, rows: Iterable[Row]
) -> bytes:
    """Of a batch: the chain of these is the order."""
    chain = blake2b(before + dumps([first, taken]) + model, digest_size=DIGEST_BYTES)
    for number, at, kind, id_, _, _, text, content in rows:
        chain.update(b"".join((_HEAD.pack(number, at, kind), id_.encode(), content, text)))
    return chain.digest()


def batch_rows(connection: Connection, batch: Batch) -> list[Row]:
    """The events of a batch, in order."""
    sql = f"""
    SELECT {COLUMNS} FROM unnest(%s::bigint[], %s::bigint[]) AS range (before, until)
    JOIN events ON number > before AND number <= until"""
    befores, untils = [one[0] for one in batch.taken], [one[1] for one in batch.taken]
    return in_order(starmap(Row, connection.execute(sql, (befores, untils), binary=True).fetchall()))


def notes_of(connection: Connection, rows: Sequence[Row]) -> dict[int, dict[str, Any]]:
    """What the learner noted of these events, by their numbers."""
    sql = "SELECT number, body FROM results WHERE number = ANY(%s)"
    found = connection.execute(sql, ([row.number for row in rows],), binary=True)
    return {number: loads(body) for number, body in found}


def _batch(row: Sequence[Any]) -> Batch:
    version, first, last, term, at, taken, model, digest = row
    return Batch(version, first, last, term, at, loads(taken), model, digest)


def batches(connection: Connection, after: int = 0, at_once: int = 200) -> Iterator[Batch]:
    """All batches after a version."""
    while True:
        sql = "SELECT * FROM batches WHERE version > %s ORDER BY version LIMIT %s"
        found = connection.execute(sql, (after, at_once), binary=True).fetchall()
        yield from map(_batch, found)
        if len(found) < at_once:
            return
        after = found[-1][0]


def last_batch(connection: Connection) -> Batch | None:
    sql = "SELECT * FROM batches ORDER BY version DESC LIMIT 1"
    row = connection.execute(sql, binary=True).fetchone()
    return None if row is None else _batch(row)


def batch_ending(connection: Connection, seq: int) -> Batch | None:
    """The batch that ends with an event."""
    row = connection.execute("SELECT * FROM batches WHERE last = %s", (seq,), binary=True).fetchone()
    return None if row is None else _batch(row)


# ---------------------------------------------------------------- models


def meta_of(connection: Connection, where: object) -> dict[str, Any]:
    """What the journal was made for; empty before that."""
    if not check(connection, where):
        return {}
    return {key: loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}


def snapshot_seqs(connection: Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT seq FROM snapshots ORDER BY seq")]


def _chain(connection: Connection, seq: int) -> bytes:
    """What a snapshot's digest begins with: that of the batch it stands after."""
    row = connection.execute("SELECT digest FROM batches WHERE last = %s", (seq,)).fetchone()
    return b"superarm" if row is None else bytes(row[0])


def write_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    """Keep a model, in the transaction under way."""
    seq, at, parts, totals, made_by = snapshot
    texts = [dumps(value).decode() for value in (totals, made_by, describe(parts))]
    digest = snapshot_digest(_chain(connection, seq), seq, at, *texts)
    connection.execute(
        "INSERT INTO snapshots VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (seq, at, *texts, digest),
    )
    for part, data in parts.items():
        for number, piece in enumerate(pieces(data)):
            connection.execute(
                "INSERT INTO parts VALUES (%s, %s, %s, %b) ON CONFLICT DO NOTHING", (seq, part, number, piece)
            )


def read_snapshot(connection: Connection, seq: int, where: object) -> Snapshot:
    sql = "SELECT time, totals, made_by, parts, digest FROM snapshots WHERE seq = %s"
    row = connection.execute(sql, (seq,), binary=True).fetchone()
    damage = f"the snapshot after event {seq} of {where}"
    if row is None:
        raise JournalDamaged(f"{damage} is missing")
    at, totals, made_by, told, digest = row
    if snapshot_digest(_chain(connection, seq), seq, at, totals, made_by, told) != digest:
        raise JournalDamaged(f"{damage} is not what was written")
    parts = {}
    for name, described in loads(told).items():
        sql = "SELECT data FROM parts WHERE seq = %s AND part = %s ORDER BY number"
        data = b"".join(piece for (piece,) in connection.execute(sql, (seq, name), binary=True))
        if describe({name: data})[name] != described:
            raise JournalDamaged(f"{damage} is not what was written: {name}")
        parts[name] = data
    return Snapshot(seq, at, parts, loads(totals), loads(made_by))


def drop_snapshots(connection: Connection, seqs: Iterable[int]) -> None:
    gone = [seq for seq in seqs if seq]
    connection.execute("DELETE FROM snapshots WHERE seq = ANY(%s) AND NOT pinned", (gone,))
    connection.execute("DELETE FROM parts p WHERE NOT EXISTS (SELECT FROM snapshots s WHERE s.seq = p.seq)")


def load_published(connection: Connection) -> Published | None:
    """The newest model and its shadows; None if the database has lost it in a crash."""
    rows = connection.execute("SELECT * FROM published", binary=True).fetchall()
    parts = {row[0]: row[5] for row in rows}
    if "model" not in parts or len({row[1] for row in rows}) != 1:
        return None
    part, version, seq, learnt, at, _, _, totals = next(row for row in rows if row[0] == "model")
    assert part == "model"
    return Published(version, seq, learnt, at, parts, loads(totals))


def publish(connection: Connection, new: Published, settings: dict[str, Any]) -> None:
    """Let everybody have it, when the transaction under way commits."""
    for part, data in new.parts.items():
        texts = (dumps(settings), dumps(new.totals)) if part == "model" else (b"", b"")
        connection.execute(PUBLISH, (part, *new[:4], data, *texts))
    connection.execute("DELETE FROM published WHERE version < %s", (new.version,))
    connection.execute("SELECT pg_notify('superarm', %s)", (str(new.version),))


PUBLISH = """
INSERT INTO published VALUES (%s, %s, %s, %s, %s, %b, %b, %b)
ON CONFLICT (part) DO UPDATE SET version = excluded.version, seq = excluded.seq, learnt = excluded.learnt,
  time = excluded.time, data = excluded.data, settings = excluded.settings, totals = excluded.totals"""
