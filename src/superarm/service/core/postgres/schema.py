"""The tables of a PostgreSQL journal, their number, and the way from an older one, in one transaction.

meta        what it was made for; one row a key
format      the number of the tables, and the oldest number whose processes may still work with them
writers     each connection that writes has a number, its events are numbered in the order of its commits;
            ``taken``: up to where the learner has taken them; ``settled``: up to where all are closed
events      decisions, answers, timeouts and changes: number = writer << 40 | n
results     what the learner made of an event, where that is not the usual
batches     the one order: which events the learner took, and the model that it published after them
published   the newest model and its shadows: unlogged, since a snapshot and the order give them again
snapshots, parts   models that are kept; parts in pieces
leader      one row: the term, whose it is, when it was last heard of
processes   who serves, and with which model
rounds      a sequence that hands out blocks of rounds
"""

from __future__ import annotations

from collections.abc import Callable

from superarm.service.core.faults import JournalForeign
from superarm.service.core.postgres.connecting import Address, Connection, failures

__all__ = ["BLOCK", "FORMAT", "GRANTS", "STEPS", "check", "migrate"]

FORMAT = 1
BLOCK = 256  # rounds that a process takes at once

TABLES = f"""
CREATE SCHEMA IF NOT EXISTS superarm;
CREATE TABLE superarm.format (version int NOT NULL, oldest int NOT NULL);
CREATE TABLE superarm.meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE superarm.writers (
  writer int PRIMARY KEY, process text NOT NULL, began float8 NOT NULL,
  taken bigint NOT NULL, settled bigint NOT NULL, closed boolean NOT NULL DEFAULT false
);
CREATE TABLE superarm.events (
  number bigint PRIMARY KEY, time float8 NOT NULL, kind smallint NOT NULL, id text NOT NULL,
  x bytea, context bytea, body bytea NOT NULL, content bytea NOT NULL
);
CREATE UNIQUE INDEX events_id ON superarm.events (id, kind) WHERE kind < 4;
CREATE INDEX events_time ON superarm.events (time) WHERE kind = 1;
ALTER TABLE superarm.events ALTER x SET STORAGE EXTERNAL;
CREATE TABLE superarm.results (number bigint PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE superarm.batches (
  version bigint PRIMARY KEY, first bigint NOT NULL UNIQUE, last bigint NOT NULL UNIQUE, term bigint NOT NULL,
  time float8 NOT NULL, taken bytea NOT NULL, model bytea NOT NULL, digest bytea NOT NULL
);
CREATE UNLOGGED TABLE superarm.published (
  part text PRIMARY KEY, version bigint NOT NULL, seq bigint NOT NULL, learnt bigint NOT NULL,
  time float8 NOT NULL, data bytea NOT NULL, settings bytea NOT NULL, totals bytea NOT NULL
);
ALTER TABLE superarm.published ALTER data SET STORAGE EXTERNAL;
CREATE TABLE superarm.snapshots (
  seq bigint PRIMARY KEY, time float8 NOT NULL, totals text NOT NULL, made_by text NOT NULL,
  parts text NOT NULL, digest bytea NOT NULL, pinned boolean NOT NULL DEFAULT false
);
CREATE TABLE superarm.parts (
  seq bigint NOT NULL, part text NOT NULL, number int NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (seq, part, number)
);
ALTER TABLE superarm.parts ALTER data SET STORAGE EXTERNAL;
CREATE TABLE superarm.leader (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), term bigint NOT NULL, process text NOT NULL,
  beat float8 NOT NULL, open_from float8 NOT NULL
);
CREATE TABLE superarm.processes (
  process text PRIMARY KEY, began float8 NOT NULL, beat float8 NOT NULL, version bigint NOT NULL,
  published float8 NOT NULL, superarm text NOT NULL
);
CREATE SEQUENCE superarm.rounds MINVALUE 0 START 0 INCREMENT {BLOCK};
CREATE SEQUENCE superarm.writer_numbers AS int;
"""

# What a process that serves may do: add events, and what the learner keeps; it takes nothing away but
# features and context, models, and itself. The role `operate` owns the tables.
GRANTS = """
GRANT USAGE ON SCHEMA superarm TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA superarm TO {role};
GRANT INSERT ON superarm.events, superarm.results, superarm.batches, superarm.meta TO {role};
GRANT UPDATE (x, context) ON superarm.events TO {role};
GRANT INSERT, UPDATE ON superarm.writers, superarm.leader, superarm.snapshots, superarm.parts TO {role};
GRANT INSERT, UPDATE, DELETE ON superarm.published, superarm.processes TO {role};
GRANT DELETE ON superarm.snapshots, superarm.parts TO {role};
GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA superarm TO {role};
"""

# from a number to the next: what to run, and the oldest number whose processes may go on beside it
STEPS: dict[int, tuple[Callable[[Connection], None], int]] = {}


def check(connection: Connection, where: object) -> bool:
    """Whether there are tables; refuses those that this superarm cannot work with."""
    found = connection.execute("SELECT to_regclass('superarm.format')").fetchone()
    if found is None or found[0] is None:
        return False
    row = connection.execute("SELECT version, oldest FROM superarm.format").fetchone()
    version, oldest = row or (0, 0)
    if version < FORMAT:
        wanted = f"of format {FORMAT} (superarm migrate {where} makes it one)"
        raise JournalForeign.must("journal", "superarm", wanted, f"format {version}")
    if oldest > FORMAT:
        wanted = f"one whose format {FORMAT} knows (install a newer superarm)"
        raise JournalForeign.must("journal", "superarm", wanted, f"format {version}")
    return True


def migrate(address: Address) -> tuple[int, int]:
    """Make the tables, or bring them to today's number, in one transaction: the number before and now."""
    connecting = address.connect("superarm migrate", patience=600.0)
    with connecting as connection, failures(address), connection.transaction():
        # two that begin at the same moment: the second one waits, and finds the tables
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('superarm tables'))")
        found = connection.execute("SELECT to_regclass('superarm.format')").fetchone()
        if found is None or found[0] is None:
            connection.execute(TABLES)
            connection.execute("INSERT INTO superarm.format VALUES (%s, %s)", (FORMAT, FORMAT))
            return 0, FORMAT
        row = connection.execute("SELECT version FROM superarm.format FOR UPDATE").fetchone()
        was = 0 if row is None else int(row[0])
        if was > FORMAT or any(step not in STEPS for step in range(was, FORMAT)):
            wanted = f"of a released format, up to {FORMAT}"
            raise JournalForeign.must("journal", "superarm migrate", wanted, f"format {was}")
        for step in range(was, FORMAT):
            run, oldest = STEPS[step]
            run(connection)
            connection.execute("UPDATE superarm.format SET version = %s, oldest = %s", (step + 1, oldest))
        return was, FORMAT
