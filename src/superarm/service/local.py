"""The model of a service with a journal of its own: it projects what it has written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from superarm.journal.clock import Ages, clock_problem
from superarm.journal.erase import Eraser
from superarm.journal.events import Event
from superarm.journal.projector import Projector
from superarm.journal.records import DecisionRecord, Records, was_learnt
from superarm.journal.snapshots import SnapshotDraft
from superarm.journal.stats import Stats
from superarm.journal.store import Pending, Store
from superarm.learners import Learner
from superarm.service.handler import ServingModel
from superarm.service.metrics import Metric, gauge
from superarm.service.settings import Settings

JUMP = 86_400.0  # seconds by which the clock may be set while it runs, before nothing is erased by it


class LocalModel:
    """Decides and learns in one process. (shared.py: many processes)"""

    shared = False
    # what many processes have in their place
    patience: float | None = None
    next_round: Callable[[], int] | None = None
    processes: list[dict[str, Any]] | None = None

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings, self.clock = store, settings, settings.clock
        self._last = store.head().time
        self.records = Records()  # shared with the request handler
        self.reload()
        self.steady = settings.steady or (time.monotonic if self.clock is time.time else self.clock)
        self.ages = Ages(self.clock, self.steady, store.head().seq)
        self._offset = self.clock() - self.steady()

    def reload(self) -> None:
        """The newest snapshot that can be read, and all events since."""
        self.projector, broken = Projector.newest(self.store, self.settings.shadows)
        self.projector.on_erasure = self._erase
        self.records.clear()
        self.projector.records = self.records
        self.broken_snapshots = tuple(broken)
        self.snapshot_seq = self.projector.seq
        self.eraser = Eraser(self.store, self.projector)
        self.projector.catch_up()
        if not self.store.read_only:
            self.eraser.finish()
        self.replayed = self.projector.seq - self.snapshot_seq

    def _erase(self, erasure: Event) -> None:
        if not self.store.read_only:
            self.eraser(erasure)
            self.snapshot_seq = self.projector.seq

    def model(self) -> ServingModel:
        projector = self.projector
        disabled, frozen = frozenset(projector.settings.disabled), projector.settings.frozen
        return ServingModel(projector.seq, projector.stats.learnt, projector.learner, disabled, frozen)

    def appended(self, events: Sequence[Event]) -> None:
        """Project durable events."""
        self.projector.project(events)

    def catch_up(self) -> None:
        """Project what is durable, after a failure that may have left more than was known."""
        self.projector.catch_up()

    def was_learnt(self, event: Event, record: DecisionRecord) -> bool | None:
        """Whether an outcome or a timeout has moved the model; None if it has not been projected yet."""
        projector = self.projector
        if event.seq > projector.seq:
            return None
        return was_learnt(event, record, projector.settings, projector.refused)

    def erased(self, seq: int) -> tuple[int, bool]:
        """How many decisions an erasure was about, and whether nothing of them is left."""
        return self.eraser.counts.get(seq, 0), self.eraser.problem is None

    def now(self) -> float:
        """The time of the next event."""
        return self.ages.now(self.store.head().seq + 1)

    def due(self, timeout: float, limit: int) -> list[Pending]:
        """Decisions that have waited longer."""
        overdue: list[Pending] = []
        for since, until, before in list(self.ages.due(timeout, self.store.head().seq)):
            overdue += self.store.pending(limit - len(overdue), since, until, before)
        return overdue

    def clock_problem(self) -> str | None:
        """Why nothing may expire or be erased by the clock; None if it may."""
        if self.settings.trust_clock:
            return None
        if self._last and clock_problem(self.clock(), self._last) is None:
            self._last = 0.0  # it was plausible once: from here on the steady clock counts
        return clock_problem(self.clock(), self._last)

    def clock_jump(self) -> str | None:
        """Why nothing is erased by age, although the clock was right at the start."""
        jump = self.clock() - self.steady() - self._offset
        if self.settings.trust_clock or abs(jump) <= JUMP:
            return None
        return f"the clock was set by {jump / 86_400.0:.0f} days: nothing is erased by age until a restart"

    def draft(self) -> SnapshotDraft:
        """A snapshot of now."""
        return SnapshotDraft(self.projector, self.clock())

    # ------------------------------------------------------------ for views

    async def read(self, view: Callable[[], Any]) -> Any:
        """The result of a view."""
        return view()

    @property
    def learner(self) -> Learner:
        return self.projector.learner

    @property
    def stats(self) -> Stats:
        return self.projector.stats

    @property
    def refused(self) -> dict[int, list[str | None]]:
        return self.projector.refused

    @property
    def seq(self) -> int:
        return self.projector.seq

    def reports(self) -> list[dict[str, Any]]:
        return self.projector.reports()

    def erasing(self) -> str | None:
        return self.eraser.problem

    def trouble(self) -> tuple[str, ...]:
        """Why nothing is erased by age; empty if it is."""
        sentences = (self.clock_problem(), self.clock_jump())
        return tuple(sentence for sentence in sentences if sentence is not None)

    def metrics(self) -> list[Metric]:
        return [
            gauge("wal_bytes", "The write-ahead log.", self.store.log_bytes()),
            gauge("broken_snapshots", "Snapshots that could not be read.", len(self.broken_snapshots)),
        ]

    def refresh(self) -> None:
        """Does nothing: the model in memory is the newest."""

    def close(self) -> None:
        """Does nothing: there is nothing to close."""
