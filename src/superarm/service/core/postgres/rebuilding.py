"""The newest model: as it was published, or from the last snapshot and the order after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from superarm.service.core.events import CHANGE, DECISION, TIMEOUT, Event, digest, to_decision
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.journal import Snapshot
from superarm.service.core.postgres.connecting import Connection
from superarm.service.core.postgres.ordered import Ordered
from superarm.service.core.postgres.tables import (
    COLUMNS,
    Row,
    batch_ending,
    batch_rows,
    batches,
    kept,
    last_batch,
    load_published,
    notes_of,
    read_snapshot,
    snapshot_seqs,
)
from superarm.service.core.shadows import Shadow, make_shadows
from superarm.service.core.snapshots import learner_from

__all__ = ["Past", "newest"]


class Past:
    """What a model asks of its journal, on a connection."""

    def __init__(self, connection: Connection, where: object) -> None:
        self.connection, self.where = connection, where

    def snapshots(self) -> list[int]:
        return snapshot_seqs(self.connection)

    def snapshot(self, seq: int) -> Snapshot:
        return read_snapshot(self.connection, seq, self.where)

    def event(self, number: int) -> Event:
        """An event of a past that was moved here: its number is that of the journal it came from."""
        row = self.connection.execute(f"SELECT {COLUMNS} FROM events WHERE number = %s", (number,)).fetchone()
        if row is None:
            raise JournalDamaged(f"event {number} of {self.where} is missing", event=number)
        return Event(*Row(*row), b"")

    def lookup(self, ids: Sequence[str]) -> dict[str, Any]:
        return kept(self.connection, ids)


def newest(
    connection: Connection,
    where: object,
    *,
    shadows: Sequence[str] = (),
    tick: Callable[[], object] = lambda: None,
) -> Ordered:
    """The model after the last batch; ``tick`` is called between the steps of it."""
    past = Past(connection, where)
    batch, now = last_batch(connection), load_published(connection)
    current = batch is not None and now is not None and now.version == batch.version
    if batch is not None and now is not None and current and digest(now.parts["model"]) == batch.model:
        start = Snapshot(now.seq, now.time, now.parts, now.totals, {})
        model, after = Ordered(past, start, past.lookup), batch.version
    else:
        start = _snapshot(past)
        at = batch_ending(connection, start.seq)
        model, after = Ordered(past, start, past.lookup), 0 if at is None else at.version
    model.shadows = _shadows(connection, shadows, model, start, tick)
    for later in batches(connection, after):
        tick()
        model.take(batch_rows(connection, later), later.taken)
        if model.seq != later.last:
            raise JournalDamaged(f"events up to {later.last} of {where} are missing", event=later.last)
    return model


def _snapshot(past: Past) -> Snapshot:
    for seq in reversed(past.snapshots()):
        try:
            return past.snapshot(seq)
        except JournalDamaged:  # an older one, and more of the order, give the same bits
            continue
    raise JournalDamaged(f"{past.where} has no snapshot that can be read")


def _shadows(
    connection: Connection,
    specs: Sequence[str],
    model: Ordered,
    start: Snapshot,
    tick: Callable[[], object],
) -> dict[str, Shadow]:
    """Those of the snapshot go on; new ones learn from all that was taken before it."""
    if not specs:
        return {}
    made = make_shadows(specs, model.learner)
    old = {
        name: Shadow.from_bytes(made[name].spec, start.parts[name]) for name in made if name in start.parts
    }
    new = [shadow.spec for name, shadow in made.items() if name not in old]
    if new:
        first = learner_from(read_snapshot(connection, 0, "the journal").parts["model"])
        fresh = make_shadows(new, first)
        _teach(connection, fresh, start.seq, tick)
        old |= fresh
    return {name: old[name] for name in made}


def _teach(
    connection: Connection, shadows: dict[str, Shadow], until: int, tick: Callable[[], object]
) -> None:
    frozen = False
    for batch in batches(connection):
        if batch.last > until:
            return
        tick()
        rows = batch_rows(connection, batch)
        notes = notes_of(connection, rows)
        closing = [row.id for row in rows if row.kind not in (DECISION, CHANGE)]
        decisions = kept(connection, closing) if closing else {}
        for row in rows:
            body = row.body
            if row.kind == CHANGE:
                frozen = body["what"] == "freeze" or (frozen and body["what"] != "resume")
                for shadow in shadows.values():
                    shadow.change(body)
            elif row.kind != DECISION and not frozen and decisions[row.id].decision.x is not None:
                known = decisions[row.id]
                decision = to_decision(known.decision.x, known.decision.body, "")
                late = bool(notes.get(row.number, {}).get("late"))
                default = None if known.timeout is None else known.timeout[0].body["hit"]
                told = {"label": None, **body, "late": late, "default": default if late else None}
                for shadow in shadows.values():
                    shadow.outcome(decision, told, timeout=row.kind == TIMEOUT)
