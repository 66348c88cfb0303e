"""The process that learns, on a journal that many share: project, publish; expire, erase, keep snapshots.

All of it follows from the events: whatever fails, or is done twice, the next turn, or another process, comes to
the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic, thread_time

from superarm.journal.clock import clock_problem
from superarm.journal.erase import ERASED, Eraser
from superarm.journal.events import ERASURE, TIMEOUT, Event, OutcomeBody, dumps
from superarm.journal.lease import Lease
from superarm.journal.postgres import PostgresStore
from superarm.journal.projector import Projector
from superarm.journal.snapshots import SnapshotDraft, made_by, model_bytes
from superarm.journal.store import READ_AT_ONCE, Snapshot
from superarm.service.settings import EXPIRED_AT_ONCE, RETAIN_EVERY, UPKEEP_EVERY, Settings

log = logging.getLogger("superarm.service")

BYTES_PER_SECOND = 50e6  # of models, on their way to all processes


class Learning:
    """While the lease lasts.

    Args:
        lease: the right to learn.
        store: the journal, for this thread alone.
        clock: the database's.
        settings: of the service.
    """

    def __init__(
        self, lease: Lease, store: PostgresStore, clock: Callable[[], float], settings: Settings
    ) -> None:
        self.lease, self.store, self.clock, self.settings = lease, store, clock, settings
        self.clock_problem = None if settings.trust_clock else clock_problem(clock(), store.head().time)
        self.projector = self._newest(settings.shadows)
        self.eraser = Eraser(store, self.projector)
        self.projector.on_erasure = self.eraser
        self.projector.catch_up(tick=lease.renew)
        self.snapshot_seq = max(note.seq for note in store.snapshots())
        self._upkeep_at = self._retain_at = self._published_at = self._cost = 0.0
        self._publish()

    def _newest(self, shadows: Sequence[str]) -> Projector:
        """From what was published, if it is whole; else from a snapshot: the events after it give the same bits."""
        published = self.store.published()
        if published is not None:
            try:
                return Projector(self.store, published, shadows)
            except Exception as error:  # it is not kept as carefully as the rest
                log.warning("the published model cannot be used", extra={"reason": str(error)})
        return Projector.newest(self.store, shadows)[0]

    def turn(self) -> float:
        """Take what has come; how many seconds to wait before the next turn."""
        self.lease.renew()
        before = self.projector.seq
        events = list(islice(self.store.events(before), READ_AT_ONCE))
        if events:
            self.projector.project(events)
            self.lease.renew()
            self._publish()
        if monotonic() >= self._upkeep_at:
            self._upkeep_at = monotonic() + UPKEEP_EVERY
            self._expire()
            self._retain()
            self._snapshot()
            if self.eraser.problem is not None:
                self.eraser.finish()
        if len(events) == READ_AT_ONCE:
            return 0.0
        pause = max(self.settings.publish_every, 5.0 * self._cost)
        return max(0.0, min(self._published_at + pause - monotonic(), self.lease.seconds / 4.0))

    def _publish(self) -> None:
        began, projector = thread_time(), self.projector
        parts = {"model": model_bytes(projector.learner)}
        parts |= {name: shadow.to_bytes() for name, shadow in projector.shadows.items()}
        erased = {str(seq): count for seq, count in list(self.eraser.counts.items())[-20:]}
        totals = projector.totals() | {"reports": projector.reports(), "erased": erased}
        totals |= {"last_erasure": self.store.progress(ERASED), "clock_problem": self.clock_problem}
        self.store.publish(Snapshot(projector.seq, self.clock(), parts, {}, made_by()), dumps(totals))
        # what a publication costs: the processor here, and the bytes that all processes fetch
        self._cost = thread_time() - began + sum(map(len, parts.values())) / BYTES_PER_SECOND
        self._published_at = monotonic()

    def _expire(self) -> None:
        timeout = self.settings.timeout
        if timeout is None or self.clock_problem is not None:
            return
        now = self.clock()
        while due := self.store.pending(EXPIRED_AT_ONCE, before=now - timeout):
            timeouts = [
                Event.new(now, TIMEOUT, OutcomeBody(decision.seq, self.settings.default_outcome), decision.id)
                for decision in due
            ]
            self.store.append(timeouts)
            self.lease.renew()

    def _retain(self) -> None:
        retain = self.settings.retain
        if retain is None or self.clock_problem is not None or monotonic() < self._retain_at:
            return
        before = self.clock() - retain
        if self.store.content_before(before):
            self.store.append([Event.new(self.clock(), ERASURE, {"before": before})])
        self._retain_at = monotonic() + min(RETAIN_EVERY, retain / 2.0)

    def _snapshot(self) -> None:
        newest = max(self.snapshot_seq, self.store.progress(ERASED))
        if self.projector.seq - newest < self.settings.snapshot_every:
            return
        for _ in self.store.write_snapshot(SnapshotDraft(self.projector, self.clock()).make()):
            self.lease.renew()
        self.snapshot_seq = self.projector.seq
        self.store.drop_old_snapshots(self.settings.keep_snapshots)
