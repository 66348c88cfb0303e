"""The lease: the process whose connection holds an advisory lock learns.

The lock ends with the connection: a process that is killed, or loses the database, has lost it at once.
One that is paused keeps its connection: so it must renew the lease (``beat``, by the database's clock), and another
process that finds it older than the lease ends that connection. Two that learn at the same time would come to the
same bits, and publish the same models: the lease saves work, and correctness does not depend on it.
"""

from __future__ import annotations

import logging
from time import monotonic

from superarm.journal.clock import NOW
from superarm.journal.postgres_address import Connection
from superarm.journal.postgres_schema import LOCKS

log = logging.getLogger("superarm.service")


class LeaseLost(Exception):
    """Another process has the lease by now."""


def try_acquire(connection: Connection, process: str, seconds: float) -> Lease | None:
    """The lease, on the connection that will hold it; None while another process has it."""
    row = connection.execute(f"SELECT {NOW} - beat > %s, process FROM lease", (seconds,)).fetchone()
    if row is None:  # no process has ever learnt
        connection.execute(f"INSERT INTO lease VALUES (true, 0, '', {NOW}) ON CONFLICT DO NOTHING")
    elif row[0] and row[1]:
        ended = connection.execute(TERMINATE_HOLDER, (LOCKS,)).fetchone()
        if ended is not None and ended[0]:
            log.warning("the learner's lease has expired", extra={"process": row[1], "lease": seconds})
    acquired = connection.execute("SELECT pg_try_advisory_lock(%s, 0)", (LOCKS,)).fetchone()
    if acquired is None or not acquired[0]:
        return None
    sql = f"UPDATE lease SET term = term + 1, process = %s, beat = {NOW} RETURNING term"
    row = connection.execute(sql, (process,)).fetchone()
    assert row is not None
    return Lease(connection, int(row[0]), seconds)


TERMINATE_HOLDER = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s AND objid = 0 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND pid <> pg_backend_pid()"""


class Lease:
    """The right to learn, while it lasts."""

    def __init__(self, connection: Connection, term: int, seconds: float) -> None:
        self.connection, self.term, self.seconds = connection, term, seconds
        self._renewed_at = monotonic()

    def renew(self) -> None:
        """Renew the lease, if that is due."""
        if monotonic() - self._renewed_at > self.seconds / 4.0:
            sql = f"UPDATE lease SET beat = {NOW} WHERE term = %s RETURNING term"
            if self.connection.execute(sql, (self.term,)).fetchone() is None:
                raise LeaseLost
            self._renewed_at = monotonic()

    def release(self) -> None:
        self.connection.execute("SELECT pg_advisory_unlock(%s, 0)", (LOCKS,))
