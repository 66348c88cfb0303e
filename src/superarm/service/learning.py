"""Learning from a journal: project its events, and write those that only time brings; keep snapshots, erase.

Of a file it is done in turns with the requests (`LocalModel`); of a database in a thread of the process that has the
lease (`SharedLearning`). All of it follows from the events: whatever fails, or is done twice, the next turn, or
another process, comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from superarm.journal.clock import clock_problem
from superarm.journal.erase import Eraser
from superarm.journal.events import ERASURE, TIMEOUT, Event, OutcomeBody
from superarm.journal.projector import Projector
from superarm.journal.snapshots import take_snapshot
from superarm.journal.store import Store
from superarm.service.settings import Settings

RETAIN_EVERY = 3600.0  # seconds between two looks for what is too old to be kept
EXPIRED_AT_ONCE = 500  # decisions that are closed by one commit


class Learning:
    """What learns from a journal.

    Attributes:
        projector, eraser: of the journal.
        replayed: how many events the start has projected.
        broken_snapshots: those that could not be read.
        clock_problem: why nothing may expire or be erased by the clock; None if it may.
    """

    store: Store

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self.store, self.settings, self.clock = store, settings, clock
        self.clock_problem = None if settings.trust_clock else clock_problem(clock(), store.head().time)
        self._retain_at = 0.0
        self.load()

    def load(self) -> None:
        """Take the newest model that can be read, and project all events since."""
        self.projector, broken = self._newest()
        self.broken_snapshots = tuple(broken)
        self.eraser = Eraser(self.store, self.projector)
        start = self.projector.seq
        self.projector.catch_up(tick=self.tick)
        if not self.store.read_only:
            self.eraser.finish()
        self.replayed = self.projector.seq - start

    def _newest(self) -> tuple[Projector, list[int]]:
        return Projector.newest(self.store, self.settings.shadows)

    def tick(self, _: object = None) -> None:
        """Called between two steps of something long."""

    def append(self, events: Sequence[Event]) -> None:
        """Write events that only time brings."""
        self.store.append(events)

    # ------------------------------------------------------------ what only time brings

    def upkeep(self) -> bool:
        """Write timeouts and erasures that are due, and finish erasing; whether there is more to do at once."""
        events = self._timeouts()
        full = len(events) == EXPIRED_AT_ONCE
        if not full:
            events += self._retention()
        self.append(events)
        if self.eraser.problem is not None:
            self.eraser.finish()
        return full

    def _timeouts(self) -> list[Event]:
        """The timeouts that are due, at most so many."""
        timeout, default, now = self.settings.timeout, self.settings.default_outcome, self.clock()
        if timeout is None or self.clock_problem is not None:
            return []
        due = self.store.pending(EXPIRED_AT_ONCE, before=now - timeout)
        return [Event.new(now, TIMEOUT, OutcomeBody(decision.seq, default), decision.id) for decision in due]

    def _retention(self) -> list[Event]:
        """The erasure of what is too old to be kept, if there is any, and it is time to look."""
        retain = self.settings.retain
        if retain is None or monotonic() < self._retain_at or self.clock_problem is not None:
            return []
        before = self.clock() - retain
        if self.store.has_content_before(before):  # it is asked again until none is left
            return [Event.new(self.clock(), ERASURE, {"before": before})]
        self._retain_at = monotonic() + min(RETAIN_EVERY, retain / 2.0)
        return []

    # ------------------------------------------------------------ snapshots

    def snapshot_is_due(self) -> bool:
        return self.projector.seq - self.store.newest_snapshot() >= self.settings.snapshot_every

    def snapshot(self) -> None:
        """Keep the whole model, so that a restart needs only the events after it."""
        if self.store.newest_snapshot() < self.projector.seq:
            for _ in self.store.write_snapshot(take_snapshot(self.projector, self.clock())):
                self.tick()
            self.store.drop_old_snapshots(self.settings.keep_snapshots)
