"""The tables of a PostgreSQL journal, and their number. (docs/scale.md: what the role of a service may do with them)

Beside the tables that all journals have (statements.py):

format      the number of the tables
head        one row: the last event. Whoever appends holds it, in one call of `append`, so the order is one, without
            holes, and a client that is paused does not hold it
rounds      a sequence that hands out blocks of rounds
"""

from __future__ import annotations

from superarm.errors import Unquoted
from superarm.journal.errors import JournalMismatch
from superarm.journal.postgres_connection import Address, Connection, database_errors
from superarm.journal.statements import FORMAT, TABLES, check_format_number

ROUND_BLOCK = 256  # rounds that a process takes at once
ADVISORY_LOCK = 0x5A4  # our part of the advisory locks

TYPES = {"text": "text", "integer": "bigint", "small": "smallint", "number": "int", "flag": "boolean"}
TYPES |= {"real": "float8", "blob": "bytea", "without_rowid": ""}
OWN_TABLES = f"""
CREATE TABLE superarm.format (version int NOT NULL);
CREATE TABLE superarm.head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), seq bigint NOT NULL, time float8 NOT NULL, digest bytea NOT NULL
) WITH (fillfactor = 10);
ALTER TABLE superarm.events ALTER x SET STORAGE EXTERNAL;
ALTER TABLE superarm.events ALTER body SET STORAGE EXTERNAL;
ALTER TABLE superarm.parts ALTER data SET STORAGE EXTERNAL;
CREATE SEQUENCE superarm.rounds MINVALUE 0 START 0 INCREMENT {ROUND_BLOCK};

-- Events get their numbers and digests here, in one call that no pause of a client can stretch.
-- A number of NULL says that the id has such an event already. (events.py: next_chain_digest)
CREATE FUNCTION superarm.append(
  times float8[], kinds smallint[], ids text[], xs bytea[], contexts bytea[], bodies bytea[], contents bytea[],
  owns bytea[], target_seqs bigint[]
) RETURNS TABLE (numbers bigint[], digests bytea[]) LANGUAGE plpgsql AS $$
DECLARE
  last superarm.head; taken boolean[];
BEGIN
  SELECT * INTO STRICT last FROM superarm.head FOR UPDATE;
  SELECT array_agg(EXISTS (SELECT FROM superarm.events e WHERE e.id = g.id AND e.kind = g.kind AND e.kind < 4)
                   ORDER BY g.i)
    INTO taken FROM unnest(ids, kinds) WITH ORDINALITY g (id, kind, i);
  FOR i IN 1 .. coalesce(array_length(kinds, 1), 0) LOOP
    IF NOT taken[i] THEN
      last.seq := last.seq + 1;
      last.digest := substring(sha256(last.digest || int8send(last.seq) || owns[i]) FROM 1 FOR 16);
      last.time := times[i];
      numbers[i] := last.seq;
      digests[i] := last.digest;
    ELSE
      numbers[i] := NULL;
      digests[i] := NULL;
    END IF;
  END LOOP;
  INSERT INTO superarm.events
    SELECT g.seq, g.time, g.kind, g.id, g.x, g.context, g.body, g.content, g.digest, NULL
    FROM unnest(numbers, times, kinds, ids, xs, contexts, bodies, contents, digests)
      g (seq, time, kind, id, x, context, body, content, digest) WHERE g.seq IS NOT NULL;
  INSERT INTO superarm.pending SELECT g.seq, g.time, g.id
    FROM unnest(numbers, times, kinds, ids) g (seq, time, kind, id) WHERE g.seq IS NOT NULL AND g.kind = 1;
  DELETE FROM superarm.pending p USING unnest(numbers, target_seqs) g (seq, target_seq)
    WHERE g.seq IS NOT NULL AND p.seq = g.target_seq;
  UPDATE superarm.head SET seq = last.seq, time = last.time, digest = last.digest;
  RETURN NEXT;
END $$;
"""


def check_database(connection: Connection, address: object) -> bool:
    """Return whether there are tables; refuse those, and databases, that this superarm cannot work with."""
    encoding = connection.execute("SHOW server_encoding").fetchone()
    if encoding is None or encoding[0] != "UTF8":
        wanted = "one that can hold every text: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        raise JournalMismatch.must(
            "database", "superarm", wanted, Unquoted(f"{encoding and encoding[0]} in {address}")
        )
    table = connection.execute("SELECT to_regclass('superarm.format')").fetchone()
    if table is None or table[0] is None:
        return False
    row = connection.execute("SELECT version FROM superarm.format").fetchone()
    check_format_number(0 if row is None else int(row[0]), address)
    return True


def make_tables(address: Address) -> bool:
    """Create the tables, if they are missing, in one transaction; return whether they are new."""
    connecting = address.connect("superarm migrate", statement_timeout=600.0)
    with connecting as connection, database_errors(address), connection.transaction():
        # two that begin at the same moment: the second one waits, and finds the tables
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('superarm tables'))")
        if check_database(connection, address):
            return False
        # (the connection's search_path is that schema)
        connection.execute("CREATE SCHEMA IF NOT EXISTS superarm;" + TABLES.format(**TYPES) + OWN_TABLES)
        connection.execute("INSERT INTO superarm.format VALUES (%s)", (FORMAT,))
        return True
