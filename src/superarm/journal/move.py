"""Move a journal from a file to a database: events, digests and snapshots, in one transaction.

Both have the same events in the same order, so there is nothing to compute. The file is left as it is.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from superarm._progress import Progress, with_progress
from superarm.errors import InvalidInput
from superarm.journal.create import import_user_learner
from superarm.journal.events import DECISION
from superarm.journal.postgres import PostgresStore, execute_all
from superarm.journal.postgres_connection import Address, Connection, database_errors
from superarm.journal.postgres_schema import ROUND_BLOCK, make_tables
from superarm.journal.snapshots import learner_from_bytes
from superarm.journal.sqlite import SqliteStore
from superarm.journal.statements import (
    COLUMNS,
    ERASED,
    meta_statements,
    snapshot_statements,
)

COLUMN_TYPES = ["int8", "float8", "int2", "text", "bytea", "bytea", "bytea", "bytea", "bytea", "int8"]


def move(
    path: str | Path,
    to: str,
    *,
    learner: str | None = None,
    progress: Progress = None,
) -> int:
    """Move a journal that no service holds to a database without one; return how many events it has.

    ``progress`` is as of `superarm.journal.replay.replay`.
    """
    address = Address(to)
    with closing(SqliteStore(path)) as source:  # holds the lock: no service can write it meanwhile
        import_user_learner(source.meta(), learner)
        if PostgresStore.exists(to):
            wanted = "a database without a superarm journal"
            raise InvalidInput.must("TO", "superarm move", wanted, str(address))
        make_tables(address)
        connecting = address.connect("superarm move", statement_timeout=0.0)
        with connecting as connection, database_errors(address), connection.transaction():
            execute_all(connection, meta_statements(source.meta()))
            rounds = max(_copy_events(source, connection, progress), _copy_snapshots(source, connection))
            connection.execute("INSERT INTO progress VALUES (%s, %s)", (ERASED, source.stored_number(ERASED)))
            first_round = -(-rounds // ROUND_BLOCK) * ROUND_BLOCK
            connection.execute("SELECT setval('rounds', %s, false)", (first_round,))
        return source.head().seq


def _copy_events(source: SqliteStore, connection: Connection, progress: Progress) -> int:
    """Copy all events, the last event and the pending decisions; return the first round that no decision has."""
    rounds, after = 0, 0
    with connection.cursor().copy(f"COPY events ({COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(COLUMN_TYPES)
        for event in with_progress(source.events(), progress, None, "events"):
            copy.write_row(event.values)
            if event.kind == DECISION:
                rounds = max(rounds, event.body.round + 1)
    connection.execute("INSERT INTO head VALUES (true, %s, %s, %b)", source.head())
    while waiting := source.pending(5_000, after):
        connection.cursor().executemany("INSERT INTO pending VALUES (%s, %s, %s)", waiting)
        after = waiting[-1].seq
    return rounds


def _copy_snapshots(source: SqliteStore, connection: Connection) -> int:
    """Copy all snapshots; return the first round that no model in them has reached."""
    rounds = 0
    for info in source.snapshots():
        snapshot = source.snapshot(info.seq)
        statements = snapshot_statements(snapshot, source.digest_at(info.seq), pinned=info.pinned)
        execute_all(connection, statements)
        rounds = max(rounds, learner_from_bytes(snapshot.parts["model"]).round)
    return rounds
