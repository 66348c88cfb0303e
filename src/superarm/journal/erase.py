"""Erasing features and context of decisions, wherever the journal keeps them.

An erasure is an event. Projecting it takes three steps, before the events after it:

    1. a snapshot of now, since nothing can be replayed across an erased event
    2. one transaction: contents gone from the events, and snapshots dropped that stand so near to an erased
       event that two of them would reveal its row
    3. nothing of it left on the disk (`Store.scrub`); while that fails the erasure is unfinished, and tried again

What is left of a decision is its number, time, id, what was shown and with what propensity, its outcome, and
the digest of what was erased: the chain still verifies.
"""

from __future__ import annotations

import logging
from itertools import pairwise

from superarm.journal.errors import JournalUnavailable
from superarm.journal.events import Event
from superarm.journal.projector import Projector
from superarm.journal.snapshots import take_snapshot
from superarm.journal.store import Store

log = logging.getLogger("superarm.service")

NEAR = 100  # events: two snapshots with fewer between them may reveal a single row
ERASED, SCRUBBED = "erased", "scrubbed"  # progress: the last erasure that was made, and that left nothing


class Eraser:
    """Makes the erasures of a projector."""

    def __init__(self, store: Store, projector: Projector) -> None:
        self.store, self.projector = store, projector
        projector.erase_content = None if store.read_only else self
        self.counts: dict[int, int] = {}  # decisions erased, by their erasures, in this process
        self.problem: str | None = None  # why the last one is not finished

    def __call__(self, erasure: Event) -> None:
        """Erase; a failure to leave nothing behind is kept for `finish`."""
        if erasure.seq <= self.store.progress(ERASED):
            return
        for _ in self.store.write_snapshot(take_snapshot(self.projector, erasure.time)):
            pass
        count = self.store.erase(erasure, self._revealing(erasure.seq))
        self.store.set_progress(ERASED, erasure.seq)
        self.projector.records.clear()
        self.counts[erasure.seq] = count
        log.info("erased", extra={"count": count, "event_no": erasure.seq})
        self.finish()

    def finish(self) -> bool:
        """Leave nothing of it on the disk; whether that is so."""
        done = self.store.progress(ERASED)
        try:
            if done > self.store.progress(SCRUBBED):
                self.store.scrub()
                self.store.set_progress(SCRUBBED, done)
        except JournalUnavailable as error:
            self.problem = f"what was erased is still on the disk: {error}"
            return False
        self.problem = None
        return True

    def _revealing(self, newest: int) -> list[int]:
        """Snapshots to drop: of two with few events between them, the later; of the newest, the one before."""
        seqs = [info.seq for info in self.store.snapshots()]
        near = [(a, b) for a, b in pairwise(seqs) if b - a < NEAR]
        return sorted({b if b != newest else a for a, b in near} - {0})
