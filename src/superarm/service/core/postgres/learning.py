"""The process that learns: takes events in one order, learns, publishes; expires, erases, keeps snapshots.

A turn: read what the writers have committed since the last one, make it happen to the model (ordered.py),
and in one transaction write down the order, what was out of the usual, how far each writer was taken,
and the model. If that fails, the model in memory is worth nothing: the next turn begins with what the
database has. The order between writers is free until then, but for one thing: an answer comes after its
decision.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise, starmap
from time import monotonic, thread_time
from typing import Any

from orjson import dumps

from superarm.service.core.erasing import NEAR, RETAIN_EVERY
from superarm.service.core.events import CHANGE, DECISION, TIMEOUT, digest
from superarm.service.core.journal import Snapshot
from superarm.service.core.postgres.clock import NOW
from superarm.service.core.postgres.connecting import Connection
from superarm.service.core.postgres.electing import Office
from superarm.service.core.postgres.ordered import Ordered
from superarm.service.core.postgres.rebuilding import newest
from superarm.service.core.postgres.tables import (
    COLUMNS,
    LOCKS,
    SHIFT,
    Published,
    Row,
    Writer,
    batch_digest,
    drop_snapshots,
    in_order,
    last_batch,
    publish,
    snapshot_seqs,
    write_snapshot,
)
from superarm.service.core.snapshots import made_by, model_bytes

__all__ = ["Learning", "Settings"]

log = logging.getLogger("superarm.service")

AT_ONCE = 4_000  # events of a batch
EVERY = 0.1  # seconds between two publications, or five times what one costs
BYTES_PER_SECOND = 50e6  # of models, on their way to all processes
EXPIRE_EVERY, SETTLE_EVERY = 0.5, 5.0  # seconds; the second without a timeout
SETTLED_AT_ONCE = 500  # decisions of a writer
IN_FLIGHT = 60.0  # seconds that may lie between a decision's time and its being taken, at most

# contexts teach nothing, and may be large
NEEDED = COLUMNS.replace("context", "NULL::bytea AS context")
FRESH = f"""
SELECT {COLUMNS} FROM writers w CROSS JOIN LATERAL (
  SELECT {NEEDED} FROM events e
  WHERE e.number > w.taken AND e.number < (w.writer::bigint + 1) << {SHIFT} ORDER BY e.number LIMIT %s
) e WHERE NOT w.closed"""


class Settings:
    """What the process that learns was asked to do."""

    def __init__(
        self,
        *,
        timeout: float | None = None,
        default: bool | None = None,
        retain: float | None = None,
        shadows: Sequence[str] = (),
        snapshot_every: int = 50_000,
        keep_snapshots: int = 3,
        every: float = EVERY,
    ) -> None:
        self.timeout, self.default, self.retain, self.shadows = timeout, default, retain, tuple(shadows)
        self.snapshot_every, self.keep_snapshots, self.every = snapshot_every, keep_snapshots, every


class Learning:
    """One term of office."""

    def __init__(self, office: Office, settings: Settings, process: str, where: object) -> None:
        self.office, self.settings = office, settings
        self.connection: Connection = office.connection
        # along the index of their numbers: a plan that sorts events reads all that wait, for each batch
        self.connection.execute("SET enable_sort = off")
        self.connection.execute("SET enable_bitmapscan = off")
        self.writer = Writer(self.connection, process)
        self.model: Ordered = newest(self.connection, where, shadows=settings.shadows, tick=office.beat)
        batch = last_batch(self.connection)
        self.version, self._digest = (0, b"superarm") if batch is None else (batch.version, batch.digest)
        self._snapshot_seq = max(snapshot_seqs(self.connection), default=0)
        self._upkeep_at = self._retain_at = 0.0
        self._published_at = 0.0
        self._cost = 0.0
        self.turns = 0
        self._publish_again()

    # ------------------------------------------------------------ turns

    def turn(self) -> float:
        """Take what has come; how many seconds to wait before the next turn."""
        self.office.beat()
        full = self._take()
        if monotonic() >= self._upkeep_at:
            self._expire()
            self._close_writers()
            self._retain()
            every = SETTLE_EVERY if self.settings.timeout is None else EXPIRE_EVERY
            self._upkeep_at = monotonic() + every
        if full:
            return 0.0
        pause = max(self.settings.every, 5.0 * self._cost)
        return max(0.0, min(self._published_at + pause - monotonic(), self.office.lease / 4.0))

    def _take(self) -> bool:
        """One batch; whether there may be more."""
        found = list(starmap(Row, self.connection.execute(FRESH, (AT_ONCE,), binary=True).fetchall()))
        full = len(found) >= AT_ONCE
        rows, taken = self._cut(found)
        if not rows:
            return False
        first = self.model.seq + 1
        notes = self.model.take(rows, taken)
        self.office.beat()
        began = thread_time()
        parts = {"model": model_bytes(self.model.learner)}
        parts |= {name: shadow.to_bytes() for name, shadow in self.model.shadows.items()}
        self.office.beat()
        model = digest(parts["model"])
        chain = batch_digest(self._digest, first, taken, model, rows)
        made = [row for row in rows if row.kind == CHANGE and not notes.get(row.number, {}).get("refused")]
        erasures = [row for row in made if row.body["what"] == "erase"]
        pins = [row.body["to"] for row in made if row.body["what"] == "go_back"]
        with self.connection.transaction():
            self.office.hold()
            now = self._now()
            version = self.version + 1
            order = (version, first, self.model.seq, self.office.term, now, dumps(taken), model, chain)
            self.connection.execute("INSERT INTO batches VALUES (%s, %s, %s, %s, %s, %b, %b, %b)", order)
            self.connection.execute(
                "UPDATE writers SET taken = t.until FROM unnest(%s::int[], %s::bigint[]) t (writer, until) "
                "WHERE writers.writer = t.writer",
                ([until >> SHIFT for _, until in taken], [until for _, until in taken]),
            )
            for row in erasures:
                notes[row.number]["erased"] = self._erase(row.body)
            for number, note in notes.items():
                self.connection.execute("INSERT INTO results VALUES (%s, %b)", (number, dumps(note)))
            totals = self.model.totals()
            self._publish(version, now, parts, totals)
            if pins:
                self.connection.execute("UPDATE snapshots SET pinned = true WHERE seq = ANY(%s)", (pins,))
            if erasures or self.model.seq - self._snapshot_seq >= self.settings.snapshot_every:
                write_snapshot(self.connection, Snapshot(self.model.seq, now, parts, totals, made_by()))
                self._drop_old(bool(erasures))
        if snapshot_seqs(self.connection)[-1:] == [self.model.seq]:
            self._snapshot_seq = self.model.seq
        if erasures:
            self.model.forget()
        self.version, self._digest = version, chain
        # what a publication costs: the processor here, and the bytes that everybody fetches
        self._cost = thread_time() - began + sum(map(len, parts.values())) / BYTES_PER_SECOND
        self._published_at = monotonic()
        self.turns += 1
        return full

    def _cut(self, found: list[Row]) -> tuple[list[Row], list[list[int]]]:
        """What to take of it, in order, and the range of each writer: answers wait for their decisions."""
        by_writer: dict[int, list[Row]] = {}
        for row in sorted(found):
            by_writer.setdefault(row.writer, []).append(row)
        positions = self.model.positions
        most = max(1, AT_ONCE // max(1, len(by_writer)))
        if len(found) > AT_ONCE:
            by_writer = {writer: rows[:most] for writer, rows in by_writer.items()}
        here = {row.id for row in found if row.kind == DECISION}
        again = any(row.kind not in (DECISION, CHANGE) and not self._has(row.id, here) for row in found)
        again = again or len(found) > AT_ONCE
        while again:
            again = False
            ends = {writer: rows[-1].number for writer, rows in by_writer.items() if rows}
            for writer, rows in by_writer.items():
                for at, row in enumerate(rows):
                    if row.kind in (DECISION, CHANGE):
                        continue
                    of = row.body["of"]
                    before = positions.get(of >> SHIFT, of >> SHIFT << SHIFT)
                    if of > max(before, ends.get(of >> SHIFT, 0)):
                        by_writer[writer], again = rows[:at], True
                        break
        taken = [
            [positions.get(writer, writer << SHIFT), rows[-1].number]
            for writer, rows in by_writer.items()
            if rows
        ]
        return in_order(row for rows in by_writer.values() for row in rows), sorted(taken)

    def _has(self, id_: str, here: set[str]) -> bool:
        """Whether a decision has been taken, or is among these, without a look into the answer."""
        return id_ in here or self.model.has(id_)

    def _publish(self, version: int, at: float, parts: dict[str, bytes], totals: dict[str, Any]) -> None:
        model = self.model
        new = Published(version, model.seq, model.stats.learnt, at, parts, totals)
        publish(self.connection, new, {**model.settings.to_dict(), "erasures": model.erasures})

    def _publish_again(self) -> None:
        """A new term, or a database that has lost what was published: everybody can have it."""
        parts = {"model": model_bytes(self.model.learner)}
        parts |= {name: shadow.to_bytes() for name, shadow in self.model.shadows.items()}
        with self.connection.transaction():
            self.office.hold()
            self._publish(self.version, self._now(), parts, self.model.totals())

    def _now(self) -> float:
        row = self.connection.execute(f"SELECT {NOW}").fetchone()
        assert row is not None
        return float(row[0])

    # ------------------------------------------------------------ upkeep

    def _expire(self) -> None:
        """Close decisions that have waited too long; and remember up to where all are closed."""
        now, limit = self._now(), self.settings.timeout
        open_from, events = now - IN_FLIGHT, []
        marks: dict[int, int] = {}
        stuck: set[int] = set()
        for writer, number, id_, at, closed in self.connection.execute(
            UNSETTLED, (SETTLED_AT_ONCE,)
        ).fetchall():
            due = limit is not None and at < now - limit
            if due and not closed:
                body = dumps({"of": number, "hit": self.settings.default})
                events.append((now, TIMEOUT, id_, None, None, body))
            elif not closed:
                stuck.add(writer)
                open_from = min(open_from, at)
            if writer not in stuck:
                marks[writer] = number
        if events:
            self.writer.insert(self.writer.rows(events))
        self.connection.execute(
            "UPDATE writers SET settled = t.until FROM unnest(%s::int[], %s::bigint[]) t (writer, until) "
            "WHERE writers.writer = t.writer",
            (list(marks), list(marks.values())),
        )
        self.connection.execute("UPDATE leader SET open_from = %s", (open_from,))

    def _close_writers(self) -> None:
        """Writers that are gone, and all of whose events are taken, need not be asked any more."""
        gone = [row[0] for row in self.connection.execute(GONE, (LOCKS,))]
        if gone:  # in a statement after that one: whatever they have committed is to be seen by now
            self.connection.execute(CLOSE, (gone,))
            self.connection.execute(f"DELETE FROM processes WHERE beat < {NOW} - 60.0")

    def _retain(self) -> None:
        retain = self.settings.retain
        if retain is not None and monotonic() >= self._retain_at:
            now = self._now()
            body = dumps({"what": "erase", "ids": None, "before": now - retain})
            self.writer.insert(self.writer.rows([(now, CHANGE, "", None, None, body)]))
            self._retain_at = monotonic() + min(RETAIN_EVERY, retain / 2.0)

    def _erase(self, change: dict[str, Any]) -> int:
        """In the transaction that takes the change: replay goes over it by way of its snapshot."""
        where, value = (
            ("id = ANY(%s)", change["ids"]) if change["ids"] is not None else ("time < %s", change["before"])
        )
        sql = f"UPDATE events SET x = NULL, context = NULL WHERE kind = 1 AND x IS NOT NULL AND {where}"
        count = self.connection.execute(sql, (value,)).rowcount
        log.info("erased", extra={"count": count})
        return count

    def _drop_old(self, erased: bool) -> None:
        seqs = [seq for seq in snapshot_seqs(self.connection) if seq]
        keep = self.settings.keep_snapshots
        gone = set(seqs[:-keep]) if keep else set()
        if erased:
            near = [(a, b) for a, b in pairwise(seqs) if b - a < NEAR]
            gone |= {b if b != seqs[-1] else a for a, b in near}
        drop_snapshots(self.connection, gone)


UNSETTLED = """
SELECT w.writer, d.number, d.id, d.time, EXISTS (SELECT FROM events c WHERE c.id = d.id AND c.kind IN (2, 3))
FROM writers w CROSS JOIN LATERAL (
  SELECT number, id, time FROM events
  WHERE number > w.settled AND number <= w.taken AND kind = 1 ORDER BY number LIMIT %s
) d WHERE w.settled < w.taken ORDER BY d.number"""

GONE = """
SELECT writer FROM writers w WHERE NOT closed AND NOT EXISTS (
  SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = w.writer AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""

CLOSE = f"""
UPDATE writers w SET closed = true WHERE writer = ANY(%s) AND NOT EXISTS (
  SELECT FROM events e WHERE e.number > w.taken AND e.number < (w.writer::bigint + 1) << {SHIFT})"""
