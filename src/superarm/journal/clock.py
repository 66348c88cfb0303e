"""The time of events: by the clock of the one process that writes a file, or by the database's for all processes.

Between two looks at that clock a steady one counts, so a system clock that is set while a service runs neither stops
timeouts nor expires everything at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLEW = 0.1  # seconds by which the time follows a system clock that was set, in each second
MAX_QUERY_SECONDS = 0.5  # seconds; a query for the time that took longer is too inexact
# seconds that a start may come after, or before, the last event
MAX_AHEAD, MAX_BEHIND = 30 * 86_400.0, 3_600.0


def steady_seconds() -> float:
    """Return seconds that only ever grow, and go on while the machine is suspended, where the system can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SystemClock:
    """A clock for a process that is alone on its journal: a call returns the seconds since 1970.

    Args:
        system: the time, which may be set meanwhile.
        steady: seconds that only ever grow.
    """

    def __init__(
        self, system: Callable[[], float] = time.time, steady: Callable[[], float] = steady_seconds
    ) -> None:
        self._system, self._steady = system, steady
        self._read_at = steady()
        self._offset = system() - self._read_at

    def __call__(self) -> float:
        now = self._steady()
        most = SLEW * (now - self._read_at)
        self._offset += min(max(self._system() - now - self._offset, -most), most)
        self._read_at = now
        return now + self._offset


class DatabaseClock:
    """The database's time, without a query each time: call it. `update` sets it; from any thread.

    Many machines write events, and their clocks differ; so all times are the database's: each process counts on from
    the last query by its own steady clock. The clock of the process itself plays no part.

    Args:
        query: returns the time of the database.
    """

    def __init__(self, query: Callable[[], float]) -> None:
        self._query = query
        self._offset, _ = self._measure()

    def __call__(self) -> float:
        return steady_seconds() + self._offset

    def update(self) -> None:
        """Ask the database for the time; an answer that took long is not used."""
        offset, seconds = self._measure()
        if seconds < MAX_QUERY_SECONDS:
            self._offset = offset

    def _measure(self) -> tuple[float, float]:
        """Return by how much the database's time is ahead of the steady clock, and how long the answer took."""
        sent = steady_seconds()
        answer = self._query()
        received = steady_seconds()
        return answer - (sent + received) / 2.0, received - sent


def clock_problem(now: float, last: float) -> str | None:
    """Return why nothing may expire or be erased by a clock; None if it may.

    Args:
        now: its time, at the start.
        last: the time of the journal's last event; 0 if there is none.
    """
    if last == 0.0 or -MAX_BEHIND <= now - last <= MAX_AHEAD:
        return None
    hours = abs(now - last) / 3_600.0
    distance = f"{hours:.0f} hours" if hours < 48.0 else f"{hours / 24.0:.0f} days"
    direction = "after" if now > last else "before"
    return (
        f"the clock is {distance} {direction} the last event: nothing expires and nothing is erased by age, "
        "and events are timed from the last one on, until "
        "the service is started with the right time, or with --trust-clock"
    )
