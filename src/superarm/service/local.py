"""The model of a service with a journal of its own: it projects what it has written. (shared.py: many processes)"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from superarm.journal.clock import SystemClock
from superarm.journal.events import Event
from superarm.journal.projector import Projector
from superarm.journal.records import Records
from superarm.journal.store import Store
from superarm.service.learning import Learning
from superarm.service.settings import Settings


class LocalModel(Learning):
    """Decides and learns in one process. `SharedModel` has the same methods."""

    shared = False
    # what many processes have in their place
    patience: float | None = None
    next_round: Callable[[], int] | None = None
    processes: list[dict[str, Any]] | None = None

    def __init__(self, store: Store, settings: Settings) -> None:
        self.records = Records()  # shared with the request handler
        steady = settings.steady or (time.monotonic if settings.clock is time.time else settings.clock)
        super().__init__(store, settings, SystemClock(settings.clock, steady))
        settings.check(self.projector.learner)

    def _newest(self) -> tuple[Projector, list[int]]:
        projector, broken = super()._newest()
        self.records.clear()
        projector.records = self.records
        return projector, broken

    def serving(self) -> Projector:
        """The model that decides, and its totals: the newest."""
        return self.projector

    @property
    def seq(self) -> int:
        """The last event of the newest model."""
        return self.projector.seq

    def appended(self, events: Sequence[Event]) -> None:
        """Project durable events."""
        self.projector.project(events)

    def catch_up(self) -> None:
        """Project what is durable, after a failure that may have left more than was known."""
        self.projector.catch_up()

    def erased(self, seq: int) -> tuple[int, bool]:
        """How many decisions an erasure was about, and whether nothing of them is left."""
        return self.eraser.counts.get(seq, 0), self.eraser.problem is None

    def erasing(self) -> str | None:
        """Why an erasure is not finished; None if all are."""
        return self.eraser.problem

    def trouble(self) -> tuple[str, ...]:
        """What is wrong with the model, one sentence each."""
        return () if self.clock_problem is None else (self.clock_problem,)

    def reports(self) -> list[dict[str, Any]]:
        """Estimated hit rates: the model's, and its shadows'."""
        return self.projector.reports()

    async def read(self, view: Callable[[], Any]) -> Any:
        """The result of a view."""
        return view()

    def refresh(self) -> None:
        """Does nothing: the model in memory is the newest."""

    def close(self) -> None:
        """Does nothing: there is nothing to close."""
