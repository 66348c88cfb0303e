"""The database's time, without asking it each time.

Many machines write events, and their clocks differ; timeouts, retention and erasing compare the events' times
with each other and with now. So all times are the database's: each process counts on from its last answer by
its own steady clock. What the process's calendar says, or that it is set, plays no part.
"""

from __future__ import annotations

from time import monotonic

from superarm.journal.postgres_address import Connection

__all__ = ["NOW", "DatabaseClock"]

NOW = "extract(epoch FROM clock_timestamp())"
SLOW = 0.5  # seconds; an answer that took longer tells too little of when it was given


class DatabaseClock:
    """Call it for the time. `learn` sets it, on a connection; from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._offset: float | None = None
        self.learn(connection)

    def __call__(self) -> float:
        assert self._offset is not None
        return monotonic() + self._offset

    def learn(self, connection: Connection) -> None:
        sent = monotonic()
        row = connection.execute(f"SELECT {NOW}").fetchone()
        received = monotonic()
        assert row is not None
        if self._offset is None or received - sent < SLOW:
            self._offset = float(row[0]) - (sent + received) / 2.0
