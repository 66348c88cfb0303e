"""Move a journal from a file to a database: events, digests and snapshots, in one transaction.

Both have the same events in the same order, so there is nothing to compute. The file is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from superarm.errors import InvalidInput
from superarm.journal.events import DECISION
from superarm.journal.postgres import execute_all
from superarm.journal.postgres_address import Address, database_errors
from superarm.journal.postgres_schema import BLOCK, has_journal, make_tables
from superarm.journal.snapshots import learner_from, load_class
from superarm.journal.sqlite import SqliteStore
from superarm.journal.statements import CLEAN, COLUMNS, ERASED, meta_statements, snapshot_statements

KINDS = ["int8", "float8", "int2", "text", "bytea", "bytea", "bytea", "bytea", "bytea", "int8"]


def move(
    path: str | Path,
    address: Address,
    *,
    learner: str | None = None,
    tick: Callable[[int], object] | None = None,
) -> int:
    """Move a journal that no service holds to an empty database; how many events."""
    source = SqliteStore(path)  # holds the lock: no service can write it meanwhile
    try:
        load_class(source.meta(), learner)
        with address.connect("superarm moves") as connection, database_errors(address):
            if has_journal(connection, address):
                wanted = "a database without a superarm journal"
                raise InvalidInput.must("TO", "superarm move", wanted, str(address))
        make_tables(address)
        connecting = address.connect("superarm moves", patience=0.0)
        with connecting as connection, database_errors(address), connection.transaction():
            execute_all(connection, meta_statements(source.meta()))
            rounds = 0
            with connection.cursor().copy(f"COPY events ({COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(KINDS)
                for event in source.events():
                    copy.write_row(event.values)
                    if event.kind == DECISION:
                        rounds = max(rounds, event.body.round + 1)
                    if tick is not None:
                        tick(1)
            head, after = source.head(), 0
            connection.execute("INSERT INTO head VALUES (true, %s, %s, %b)", head)
            while waiting := source.pending(5_000, after):
                connection.cursor().executemany("INSERT INTO pending VALUES (%s, %s, %s)", waiting)
                after = waiting[-1].seq
            for info in source.snapshots():
                snapshot = source.snapshot(info.seq)
                chain = source.digest_at(info.seq)
                execute_all(connection, snapshot_statements(snapshot, chain, pinned=info.pinned))
                rounds = max(rounds, learner_from(snapshot.parts["model"]).round)
            for key in (ERASED, CLEAN):
                connection.execute("INSERT INTO progress VALUES (%s, %s)", (key, source.progress(key)))
            connection.execute("SELECT setval('rounds', %s, false)", (-(-rounds // BLOCK) * BLOCK,))
            return head.seq
    finally:
        source.close()
