"""The model that a service decides with: learnt in this process, or by one of many processes (shared.py)."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from superarm._types import JsonObject
from superarm.journal.clock import SystemClock
from superarm.journal.errors import JournalUnavailable
from superarm.journal.events import Event
from superarm.journal.projector import Projector
from superarm.journal.records import DecisionRecord, Records
from superarm.journal.store import Store
from superarm.journal.totals import Totals
from superarm.learners import Learner
from superarm.service.learning import Learning
from superarm.service.settings import Settings

log = logging.getLogger("superarm.service")


class ModelState(Protocol):
    """A learner and its totals, after event ``seq``."""

    seq: int
    learner: Learner
    totals: Totals


class ServedModel(ABC):
    """The model of a service; what has a body here needs none where one process does everything.

    Attributes:
        shared: whether other processes write the same journal.
        records: pending decisions in memory.
        broken_snapshots: those that could not be read.
        replayed: how many events the start has projected.
        processes: all that serve on a shared journal.
    """

    shared: bool
    store: Store
    settings: Settings
    records: Records
    clock: Callable[[], float]
    broken_snapshots: tuple[int, ...] = ()
    replayed = 0
    processes: list[JsonObject] | None = None

    @abstractmethod
    def serving(self) -> ModelState:
        """The model that decides, and its totals."""

    @property
    @abstractmethod
    def seq(self) -> int:
        """The last event of the newest model here."""

    @abstractmethod
    def apply(self, events: Sequence[Event]) -> None:
        """Take in events that are durable."""

    @abstractmethod
    def load(self) -> None:
        """Begin anew from the journal, after a failure that may have left more there than is known."""

    @abstractmethod
    def erased(self, seq: int) -> tuple[int, bool]:
        """How many decisions an erasure was about, and whether nothing of them is left."""

    @abstractmethod
    def reports(self) -> list[JsonObject]:
        """Estimated hit rates: the model's, and its shadows'."""

    @abstractmethod
    def trouble(self) -> tuple[str, ...]:
        """What is wrong, one sentence each."""

    @property
    def snapshot_seq(self) -> int:
        """The event of the newest snapshot."""
        return self.store.newest_snapshot()

    def was_learnt(self, record: DecisionRecord) -> bool | None:
        """Whether its outcome or timeout has moved the model; None if it has none, or it was not projected yet."""
        event, serving = record.outcome or record.timeout, self.serving()
        return None if event is None or event.seq > serving.seq else serving.totals.was_learnt(event, record)

    def unfinished_erasure(self) -> str | None:
        """Why an erasure is not finished; None if all are."""
        return None

    def upkeep(self) -> bool:
        """Write what only time brings, and finish erasing; whether there is more to do at once."""
        return False

    def snapshot_is_due(self) -> bool:
        return False

    def next_round(self) -> int | None:
        """A round that no other decision has; None if the model itself counts them."""
        return None

    async def read(self, view: Callable[[], Any]) -> Any:
        """The result of a view."""
        return view()

    def refresh(self) -> None:  # noqa: B027
        """Get the newest totals for a view."""

    def close(self) -> None:  # noqa: B027
        """End what runs beside the turns."""


class LocalModel(Learning, ServedModel):
    """The model of the one process that writes a file: it projects what it has written."""

    shared = False

    def __init__(self, store: Store, settings: Settings) -> None:
        super().__init__(store, settings, settings.clock or SystemClock())
        settings.check(self.projector.learner)

    def load(self) -> None:
        super().load()
        self.records = self.projector.records

    def serving(self) -> Projector:
        return self.projector

    @property
    def seq(self) -> int:
        return self.projector.seq

    def append(self, events: Sequence[Event]) -> None:
        super().append(events)
        self.apply(events)

    def apply(self, events: Sequence[Event]) -> None:
        try:
            self.projector.project(events)
        except JournalUnavailable:  # erasing could not be written: the rest is projected when it can be
            raise
        except Exception:  # a bug, or an interrupt, in the midst of it: start again from a snapshot
            log.exception("projection failed")
            self.load()

    def erased(self, seq: int) -> tuple[int, bool]:
        return self.eraser.counts.get(seq, 0), self.eraser.problem is None

    def unfinished_erasure(self) -> str | None:
        return self.eraser.problem

    def trouble(self) -> tuple[str, ...]:
        return () if self.clock_problem is None else (self.clock_problem,)

    def reports(self) -> list[JsonObject]:
        return self.projector.reports()
