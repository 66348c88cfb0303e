"""The shared journal as others read it: replay and export in its order, the dashboard by its newest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orjson import loads

from superarm.service.core.events import DECISION, OUTCOME, Event
from superarm.service.core.faults import JournalForeign
from superarm.service.core.journal import OPEN, Place, Snapshot
from superarm.service.core.postgres.connecting import Address, Connection, failures
from superarm.service.core.postgres.tables import (
    COLUMNS,
    SHIFT,
    WAITING,
    Row,
    batch_rows,
    batches,
    kept,
    last_batch,
    meta_of,
    read_snapshot,
    snapshot_seqs,
)

__all__ = ["PostgresJournal"]

# a database that is away is told by us: once, in one line
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class PostgresJournal:
    """A shared journal, to look at: what of `Journal` (journal.py) makes sense here.

    Numbers of events (``seq``) are those of the one order; events that nobody has taken yet have none.
    """

    read_only, dirty = True, False

    def __init__(self, address: Address) -> None:
        self.address, self.name = address, str(address)
        self._pool = address.pool()
        with self.reading() as connection:
            if not meta_of(connection, address):
                raise JournalForeign.must("journal", "superarm", "a superarm journal", self.name)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection, for a moment."""
        with failures(self.address), self._pool.connection() as connection:
            yield connection

    def close(self) -> None:
        self._pool.close()

    def meta(self) -> dict[str, Any]:
        with self.reading() as connection:
            return meta_of(connection, self.address)

    @property
    def seq(self) -> int:
        """The number of the last event that was taken."""
        with self.reading() as connection:
            batch = last_batch(connection)
        return 0 if batch is None else batch.last

    # ------------------------------------------------------------ in order

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events in the one order, from the beginning of the batch after ``after`` on; then what waits."""
        with self.reading() as connection:
            row = connection.execute("SELECT max(version) FROM batches WHERE last <= %s", (after,)).fetchone()
            for batch in batches(connection, (row[0] if row else None) or 0):
                for seq, event in enumerate(batch_rows(connection, batch), batch.first):
                    if until is not None and seq > until:
                        return
                    yield Event(seq, *event[1:], b"")
            if until is None:  # what is acknowledged, and not taken yet: without a number
                sql = f"SELECT {COLUMNS} FROM ({WAITING}) e ORDER BY time, number"
                for event in map(Row._make, connection.execute(sql, binary=True).fetchall()):
                    yield Event(0, *event[1:], b"")

    def archived(self) -> int:
        return 0

    def snapshots(self) -> list[int]:
        with self.reading() as connection:
            return snapshot_seqs(connection)

    def snapshot_notes(self) -> list[tuple[int, float, dict[str, str]]]:
        with self.reading() as connection:
            found = connection.execute("SELECT seq, time, made_by FROM snapshots ORDER BY seq").fetchall()
        return [(seq, at, loads(made_by)) for seq, at, made_by in found]

    def snapshot(self, seq: int) -> Snapshot:
        with self.reading() as connection:
            return read_snapshot(connection, seq, self.name)

    # ------------------------------------------------------------ by id and by time

    def open_places(self, *, limit: int, after: int = 0) -> list[Place]:
        """Decisions without an answer, oldest first: ``after`` is the number of the last one before."""
        sql = f"""
        SELECT d.id, d.number, d.time FROM events d
        WHERE d.kind = {DECISION} AND d.time >= coalesce((SELECT open_from FROM leader), 0.0)
          AND (d.time, d.number) >
            (coalesce((SELECT time FROM events WHERE number = %(after)s), 0.0), %(after)s::bigint)
          AND NOT EXISTS (SELECT FROM events c WHERE c.id = d.id AND c.kind IN ({OUTCOME}, 3))
        ORDER BY d.time, d.number LIMIT %(limit)s"""
        with self.reading() as connection:
            found = connection.execute(sql, {"after": after, "limit": limit}).fetchall()
        return [Place(id_, number, at, OPEN, None) for id_, number, at in found]

    def recent(self, limit: int) -> list[Row]:
        """The newest decisions, newest first."""
        sql = f"SELECT {COLUMNS} FROM events WHERE kind = {DECISION} ORDER BY time DESC LIMIT %s"
        with self.reading() as connection:
            return [Row(*row) for row in connection.execute(sql, (limit,), binary=True)]

    def kept(self, ids: list[str]) -> dict[str, Any]:
        with self.reading() as connection:
            return kept(connection, ids)

    def changes(self) -> list[dict[str, Any]]:
        """What operators have changed, oldest first; not what was refused."""
        sql = """
        SELECT e.number, e.time, e.body, r.body FROM events e LEFT JOIN results r USING (number)
        WHERE e.kind = 4 ORDER BY e.time, e.number"""
        with self.reading() as connection:
            found = connection.execute(sql, binary=True).fetchall()
        made = []
        for number, at, body, result in found:
            note = {"seq": number} if number >> SHIFT == 0 else {} if result is None else loads(result)
            if "seq" in note and not note.get("refused"):
                told, extra = loads(body), {"erased": note["erased"]} if "erased" in note else {}
                if isinstance(
                    told.get("ids"), list
                ):  # as many as they were: whose they are is nobody's to see
                    told["ids"] = len(told["ids"])
                made.append({"seq": note["seq"], "time": at, **told, **extra})
        return sorted(made, key=lambda change: change["seq"])

    # ------------------------------------------------------------ for people on call

    def size(self) -> int:
        """Bytes in the database."""
        sql = """SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'superarm'::regnamespace AND relkind = 'r'"""
        with self.reading() as connection:
            row = connection.execute(sql).fetchone()
        return 0 if row is None else int(row[0] or 0)
