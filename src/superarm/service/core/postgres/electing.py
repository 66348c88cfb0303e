"""Who learns: the process whose connection holds an advisory lock, for a term.

The lock ends with the connection: a process that is killed, or loses its way to the database, has lost it
at once. One that is paused keeps its connection: so the holder's heart must beat (`leader.beat`, by the
database's clock), and whoever finds it still for longer than the lease ends that connection. The next
one counts the term up. Each transaction of the learner's holds the row with the term: a process that
wakes up finds its connection closed, or its term over, and nothing of what it had in hand is written.
"""

from __future__ import annotations

import logging
from time import monotonic

from superarm.service.core.postgres import schema
from superarm.service.core.postgres.clock import NOW
from superarm.service.core.postgres.connecting import Connection
from superarm.service.core.postgres.tables import LOCKS

__all__ = ["Deposed", "Office", "stand"]

log = logging.getLogger("superarm.service")

LEARNER = 0  # the lock (LOCKS, 0)


class Deposed(Exception):
    """Another process learns by now."""


def stand(connection: Connection, process: str, lease: float) -> Office | None:
    """Stand for the office, on a connection that would hold it; None while another process has it."""
    sql = f"SELECT {NOW} - beat > %s, process FROM leader"
    row = connection.execute(sql, (lease,)).fetchone()
    if row is None:  # nobody has ever learnt
        connection.execute(f"INSERT INTO leader VALUES (true, 0, '', {NOW}, 0.0) ON CONFLICT DO NOTHING")
    elif row[0] and row[1]:
        gone = connection.execute(END, (LOCKS, LEARNER)).fetchone()
        if gone is not None and gone[0]:
            log.warning("the learner was still for too long", extra={"who": row[1], "lease": lease})
    found = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (LOCKS, LEARNER)).fetchone()
    if found is None or not found[0]:
        return None
    sql = f"UPDATE leader SET term = term + 1, process = %s, beat = {NOW} RETURNING term"
    row = connection.execute(sql, (process,)).fetchone()
    assert row is not None
    return Office(connection, int(row[0]), lease)


END = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND pid <> pg_backend_pid()"""


class Office:
    """The right to learn, while it lasts."""

    def __init__(self, connection: Connection, term: int, lease: float) -> None:
        self.connection, self.term, self.lease = connection, term, lease
        self._beaten = monotonic()

    def beat(self) -> None:
        """Say that it is alive, if that is due; also between two steps of something long."""
        if monotonic() - self._beaten > self.lease / 4.0:
            self.hold()

    def hold(self) -> None:
        """In a transaction: the term is this one, and stays it until the commit; the tables are known."""
        sql = f"""UPDATE leader SET beat = {NOW} WHERE term = %s
        AND (SELECT version >= %s AND oldest <= %s FROM format) RETURNING term"""
        known = schema.FORMAT
        if self.connection.execute(sql, (self.term, known, known)).fetchone() is None:
            schema.check(self.connection, "the database")
            raise Deposed
        self._beaten = monotonic()

    def resign(self) -> None:
        self.connection.execute("SELECT pg_advisory_unlock(%s, %s)", (LOCKS, LEARNER))
