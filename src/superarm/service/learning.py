"""Learning from a journal: project its events, and write those that only time brings; keep snapshots, erase.

Of a file it is done in turns with the requests, by `LocalModel`; of a database by `SharedLearning`, in a thread of
the process that has the lease. All of it follows from the events: whatever fails, or is done twice, the next turn, or
another process, comes to the same.
"""

from __future__ import annotations

import logging
from itertools import islice
from time import monotonic, thread_time
from typing import TYPE_CHECKING

from superarm.journal.clock import DatabaseClock, SystemClock, clock_problem
from superarm.journal.erase import ERASED, Eraser
from superarm.journal.events import ERASURE, TIMEOUT, Event, OutcomeBody, dumps
from superarm.journal.projector import Projector
from superarm.journal.snapshots import take_snapshot
from superarm.journal.store import READ_AT_ONCE, Store
from superarm.service.settings import EXPIRED_AT_ONCE, RETAIN_EVERY, UPKEEP_EVERY, Settings

if TYPE_CHECKING:
    from superarm.journal.lease import Lease
    from superarm.journal.postgres import PostgresStore

log = logging.getLogger("superarm.service")

BYTES_PER_SECOND = 50e6  # of models, on their way to all processes


class Learning:
    """What learns from a journal.

    Attributes:
        projector, eraser: of the journal.
        snapshot_seq: the event of the newest snapshot that can be read.
        replayed: how many events the start has projected.
        broken_snapshots: those that could not be read.
    """

    store: Store

    def __init__(self, store: Store, settings: Settings, clock: SystemClock | DatabaseClock) -> None:
        self.store, self.settings, self.clock = store, settings, clock
        self.clock_problem = None if settings.trust_clock else clock_problem(clock(), store.head().time)
        self._retain_at = 0.0
        self.load()

    def load(self) -> None:
        """Take the newest model that can be read, and project all events since."""
        self.projector, broken = self._newest()
        self.broken_snapshots = tuple(broken)
        self.projector.on_erasure = self._erase
        self.eraser = Eraser(self.store, self.projector)
        self.snapshot_seq = max(note.seq for note in self.store.snapshots() if note.seq not in broken)
        began = self.projector.seq
        self.projector.catch_up(tick=self.tick)
        if not self.store.read_only:
            self.eraser.finish()
        self.replayed = self.projector.seq - began

    def _newest(self) -> tuple[Projector, list[int]]:
        return Projector.newest(self.store, self.settings.shadows)

    def tick(self, _: object = None) -> None:
        """Called between two steps of something long."""

    def _erase(self, erasure: Event) -> None:
        if not self.store.read_only:
            self.eraser(erasure)
            self.snapshot_seq = self.projector.seq

    # ------------------------------------------------------------ what only time brings

    def timeouts(self) -> list[Event]:
        """The timeouts that are due, at most so many."""
        timeout, default, now = self.settings.timeout, self.settings.default_outcome, self.clock()
        if timeout is None or self.clock_problem is not None:
            return []
        due = self.store.pending(EXPIRED_AT_ONCE, before=now - timeout)
        return [Event.new(now, TIMEOUT, OutcomeBody(one.seq, default), one.id) for one in due]

    def retention(self) -> list[Event]:
        """The erasure of what is too old to be kept, if there is any, and it is time to look."""
        retain = self.settings.retain
        if retain is None or monotonic() < self._retain_at or self.clock_problem is not None:
            return []
        before = self.clock() - retain
        if self.store.content_before(before):  # it is asked again until none is left
            return [Event.new(self.clock(), ERASURE, {"before": before})]
        self._retain_at = monotonic() + min(RETAIN_EVERY, retain / 2.0)
        return []

    # ------------------------------------------------------------ snapshots

    def snapshot_is_due(self) -> bool:
        return self.projector.seq - self.snapshot_seq >= self.settings.snapshot_every

    def snapshot(self) -> None:
        """Keep the whole model, so that a restart needs only the events after it."""
        if self.snapshot_seq < self.projector.seq:
            for _ in self.store.write_snapshot(take_snapshot(self.projector, self.clock())):
                self.tick()
            self.kept_snapshot(self.projector.seq)

    def kept_snapshot(self, seq: int) -> None:
        """A snapshot was kept: older ones than the last few may go."""
        self.snapshot_seq = seq
        self.store.drop_old_snapshots(self.settings.keep_snapshots)


class SharedLearning(Learning):
    """Of a journal that many share, while the lease lasts: what was projected is published."""

    store: PostgresStore

    def __init__(self, lease: Lease, store: PostgresStore, clock: DatabaseClock, settings: Settings) -> None:
        self.lease, self.tick = lease, lease.renew  # type: ignore[method-assign]
        super().__init__(store, settings, clock)
        self._upkeep_at = self._published_at = self._cost = 0.0
        self._publish()

    def _newest(self) -> tuple[Projector, list[int]]:
        """From what was published, if it is whole; else from a snapshot: the events after it give the same bits."""
        published = self.store.published()
        if published is not None:
            try:
                return Projector(self.store, published, self.settings.shadows), []
            except Exception as error:  # it is not kept as carefully as the rest
                log.warning("the published model cannot be used", extra={"reason": str(error)})
        return super()._newest()

    def turn(self) -> float:
        """Take what has come; how many seconds to wait before the next turn."""
        self.lease.renew()
        events = list(islice(self.store.events(self.projector.seq), READ_AT_ONCE))
        if events:
            self.projector.project(events)
            self.lease.renew()
            self._publish()
        if monotonic() >= self._upkeep_at:
            self._upkeep_at = monotonic() + UPKEEP_EVERY
            while timeouts := self.timeouts():
                self.store.append(timeouts)
                self.lease.renew()
            self.store.append(self.retention())
            if self.snapshot_is_due():
                self.snapshot()
            if self.eraser.problem is not None:
                self.eraser.finish()
        if len(events) == READ_AT_ONCE:
            return 0.0
        pause = max(self.settings.publish_every, 5.0 * self._cost)
        return max(0.0, min(self._published_at + pause - monotonic(), self.lease.seconds / 4.0))

    def _publish(self) -> None:
        began, projector = thread_time(), self.projector
        snapshot = take_snapshot(projector, self.clock())
        erased = {str(seq): count for seq, count in list(self.eraser.counts.items())[-20:]}
        more = {"erased": erased, "last_erasure": self.store.progress(ERASED)}
        views = {"reports": projector.reports(), "clock_problem": self.clock_problem}
        self.store.publish(snapshot, dumps(snapshot.totals | more | views))
        # what a publication costs: the processor here, and the bytes that all processes fetch
        self._cost = thread_time() - began + sum(map(len, snapshot.parts.values())) / BYTES_PER_SECOND
        self._published_at = monotonic()
