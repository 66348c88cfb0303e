"""A SQLite journal's past comes along: its events in their order, its snapshots, and its model as it is.

The events become those of writer 0, under the numbers they have. Their order is that of one process, which
decided and learnt in turn: a replay of them is what it was in their own journal, and the shared order goes
on after them. All of it is one transaction; the file is left as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from orjson import dumps

from superarm.errors import InvalidInput
from superarm.service.core.events import Event, digest
from superarm.service.core.journal import Snapshot
from superarm.service.core.model import Model, load_class
from superarm.service.core.postgres.connecting import Address, Connection, failures
from superarm.service.core.postgres.schema import BLOCK, check, migrate
from superarm.service.core.postgres.tables import COLUMNS, Row, batch_digest, meta_of, write_snapshot
from superarm.service.core.snapshots import made_by, model_bytes
from superarm.service.core.sqlite import SqliteJournal

__all__ = ["move"]

AT_ONCE = 20_000  # events of a batch


def move(
    path: str | Path,
    address: Address,
    *,
    learner: str | None = None,
    tick: Callable[[int], object] | None = None,
) -> int:
    """Bring the past of a journal that nobody serves to an empty database; how many events."""
    source = SqliteJournal(path)  # holds it: no service can write it meanwhile
    try:
        load_class(source.meta(), learner)
        with address.connect("superarm moves") as connection, failures(address):
            if check(connection, address) and meta_of(connection, address):
                wanted = "a database without a superarm journal"
                raise InvalidInput.must("TO", "superarm move", wanted, str(address))
        migrate(address)
        connecting = address.connect("superarm moves", patience=0.0)
        with connecting as connection, failures(address), connection.transaction():
            return _Move(source, connection, tick).run()
    finally:
        source.close()


class _Move:
    def __init__(
        self, source: SqliteJournal, connection: Connection, tick: Callable[[int], object] | None
    ) -> None:
        self.source, self.connection, self.tick = source, connection, tick

    def run(self) -> int:
        source, connection = self.source, self.connection
        for key, value in source.meta().items():
            connection.execute("INSERT INTO meta VALUES (%s, %s)", (key, dumps(value).decode()))
        model = Model(source, source.snapshot(0))
        write_snapshot(connection, source.snapshot(0))
        kept = [seq for seq in source.snapshots() if seq]
        chain, before = b"superarm", 0
        for version, until in enumerate(self._ends(kept), 1):
            rows = self._copy(before, until)
            model.catch_up(until=until, tick=self.tick)
            data = model_bytes(model.learner)
            taken = [[before, until]]
            chain = batch_digest(chain, before + 1, taken, digest(data), rows)
            order = (version, before + 1, until, 0, rows[-1].time, dumps(taken), digest(data), chain)
            connection.execute("INSERT INTO batches VALUES (%s, %s, %s, %s, %s, %b, %b, %b)", order)
            if until in kept or until == source.seq:
                notes = source.snapshot(until) if until in kept else None
                parts = {"model": data} if notes is None else notes.parts
                totals = {**model.totals(), "positions": {"0": until}}
                made = made_by() if notes is None else notes.made_by
                at = rows[-1].time if notes is None else notes.time
                write_snapshot(connection, Snapshot(until, at, parts, totals, made))
            before = until
        name = f"moved from {source.path.name}"
        own = (name, time.time(), source.seq)
        connection.execute("INSERT INTO writers VALUES (0, %s, %s, %s, 0, true)", own)
        start = -(-model.learner.round // BLOCK) * BLOCK
        connection.execute("SELECT setval('rounds', %s, false)", (start,))
        return source.seq

    def _ends(self, kept: list[int]) -> list[int]:
        """Where the batches end: at every snapshot, and between them where nothing was erased."""
        ends = {*kept, self.source.seq} - {0}
        if not any(event.erased for event in self.source.events()):
            ends |= set(range(AT_ONCE, self.source.seq, AT_ONCE))
        return sorted(ends)

    def _copy(self, after: int, until: int) -> list[Row]:
        rows = [_row(event) for event in self.source.events(after, until)]
        with self.connection.cursor().copy(f"COPY events ({COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "float8", "int2", "text", "bytea", "bytea", "bytea", "bytea"])
            for row in rows:
                copy.write_row(row)
        return rows


def _row(event: Event) -> Row:
    return Row(
        event.seq, event.time, event.kind, event.id, event.x, event.context, event.text, event.content
    )  # fmt: skip
