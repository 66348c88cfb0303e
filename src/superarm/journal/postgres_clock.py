"""The database's time, without a query each time.

Many machines write events, and their clocks differ; timeouts, retention and erasing compare the events' times
with each other and with now. So all times are the database's: each process counts on from the last query by
its own steady clock. The clock of the process itself plays no part.
"""

from __future__ import annotations

from time import monotonic

from superarm.journal.postgres_address import Connection

NOW = "extract(epoch FROM clock_timestamp())"
SLOW = 0.5  # seconds; a query that took longer is too inexact


class DatabaseClock:
    """Call it for the time. `update` sets it, on a connection; from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._offset: float | None = None
        self.update(connection)

    def __call__(self) -> float:
        assert self._offset is not None
        return monotonic() + self._offset

    def at(self, seq: int) -> float:
        """The time of event ``seq``."""
        return self()

    def due(self, timeout: float, seq: int) -> list[tuple[int, int, float]]:
        """As `FileClock.due`: all have been counted by this clock."""
        return [(0, seq, self() - timeout)]

    def update(self, connection: Connection) -> None:
        sent = monotonic()
        row = connection.execute(f"SELECT {NOW}").fetchone()
        received = monotonic()
        assert row is not None
        if self._offset is None or received - sent < SLOW:
            self._offset = float(row[0]) - (sent + received) / 2.0
