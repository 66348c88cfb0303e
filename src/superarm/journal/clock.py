"""The times and ages of events: by the clock of a file's one process, or by the database's for all.

Events carry the time of the clock, which may be set in between. A clock that jumps must neither switch timeouts off
nor expire everything at once: so ages are counted by the steady clock of the process. Each time the two drift apart, a
new era begins, and a decision's age is counted by the offset of its era. A decision from before this process was made
before it began, whatever its time says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from superarm.journal.postgres_address import Connection

DRIFT = 1.0  # seconds by which the two clocks may part before a new era begins
SLOW = 0.5  # seconds; a query for the time that took longer is too inexact
NOW = "extract(epoch FROM clock_timestamp())"  # in PostgreSQL
JUMP = 86_400.0  # seconds by which the clock may be set while it runs, before nothing is erased by it


class Era(NamedTuple):
    first: int  # the first event of it
    offset: float  # time minus steady time


class FileClock:
    """The clock of a journal in a file, after event ``seq``: call it for the time."""

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float], seq: int) -> None:
        self.clock, self.steady = clock, steady
        self._began = clock()
        self._offset = offset = self._began - steady()
        self._eras = [Era(0, offset), Era(seq + 1, offset)]
        self._last = -inf

    def __call__(self) -> float:
        return self.clock()

    def at(self, seq: int) -> float:
        """The time of event ``seq``, never less than that of the event before it in its era."""
        at = self.clock()
        offset = at - self.steady()
        if abs(offset - self._eras[-1].offset) > DRIFT:
            self._eras.append(Era(seq, offset))
            self._last = at
        self._last = at if at > self._last else self._last
        return self._last

    def due(self, timeout: float, seq: int) -> Iterator[tuple[int, int, float]]:
        """(after, until, before): events in these numbers and from before that time have waited so long."""
        now = self.steady()
        ends = [era.first - 1 for era in self._eras[1:]] + [seq]
        for i, (era, end) in enumerate(zip(self._eras, ends, strict=True)):
            before = now + era.offset - timeout
            if i == 0 and self._began < before:
                before = inf
            if end >= era.first:
                yield max(era.first - 1, 0), end, before

    def jump(self) -> str | None:
        """Why nothing is erased by age, although the clock was right at the start; None if it is."""
        seconds = self.clock() - self.steady() - self._offset
        if abs(seconds) <= JUMP:
            return None
        days = seconds / 86_400.0
        return f"the clock was set by {days:.0f} days: nothing is erased by age until a restart"


class DatabaseClock:
    """The database's time, without a query each time: call it. `update` sets it, on a connection; from any thread.

    Many machines write events, and their clocks differ; so all times are the database's: each process counts on from
    the last query by its own steady clock. The clock of the process itself plays no part.
    """

    def __init__(self, connection: Connection) -> None:
        self._offset: float | None = None
        self.update(connection)

    def __call__(self) -> float:
        assert self._offset is not None
        return monotonic() + self._offset

    def at(self, seq: int) -> float:
        return self()

    def due(self, timeout: float, seq: int) -> list[tuple[int, int, float]]:
        return [(0, seq, self() - timeout)]

    def update(self, connection: Connection) -> None:
        sent = monotonic()
        row = connection.execute(f"SELECT {NOW}").fetchone()
        received = monotonic()
        assert row is not None
        if self._offset is None or received - sent < SLOW:
            self._offset = float(row[0]) - (sent + received) / 2.0


AHEAD, BEHIND = 30 * 86_400.0, 3_600.0  # seconds that a start may come after, or before, the last event


def clock_problem(now: float, last: float) -> str | None:
    """Why nothing may expire or be erased by this clock; None if it may.

    Args:
        now: its time.
        last: the time of the journal's last event; 0 if there is none.
    """
    if last == 0.0 or -BEHIND <= now - last <= AHEAD:
        return None
    days = abs(now - last) / 86_400.0
    where = "after" if now > last else "before"
    return (
        f"the clock is {days:.0f} days {where} the last event: nothing expires and nothing is erased by age until "
        "it is set right, or the service is started with --trust-clock"
    )
