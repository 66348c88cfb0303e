"""Ages of events, although the clock may be set in between.

Events carry the time of the clock. A clock that jumps must neither switch timeouts off nor expire everything
at once: so ages are counted by the steady clock of the process. Each time the two drift
apart, a new era begins, and a decision's age is counted by the offset of its era. A decision from before
this process was made before it began, whatever its time says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

DRIFT = 1.0  # seconds by which the two clocks may part before a new era begins
JUMP = 86_400.0  # seconds by which the clock may be set while it runs, before nothing is erased by it


class Era(NamedTuple):
    first: int  # the first event of it
    offset: float  # time minus steady time


class FileClock:
    """The clock of a journal in a file, after event ``seq``: call it for the time. (postgres_clock.py: a database's)"""

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
