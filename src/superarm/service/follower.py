"""The model that a service decides with: projected from the events of its journal.

Many processes may serve one journal in a database. Each projects all events, in their one order, and so comes to
the same model.

Erasing features and context of decisions is an event, too. Three steps come before the events after it are projected:

    1. a snapshot of now, since nothing can be replayed across an erased event
    2. one transaction: contents gone from the events, and snapshots that might reveal them (`JournalStore.erase`)
    3. nothing of it left on the disk (`JournalStore.purge_erased`); while that fails it is unfinished, and tried again

What is left of a decision is its number, time, id, what was shown and with what propensity, its outcome, and
the digest of what was erased: the chain still verifies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic

from superarm.journal.changes import erasure_of
from superarm.journal.clock import clock_problem
from superarm.journal.errors import JournalDamaged, JournalError, JournalUnavailable
from superarm.journal.events import Event
from superarm.journal.projector import Projector
from superarm.journal.records import DecisionRecord
from superarm.journal.statements import ERASED
from superarm.journal.store import JournalStore
from superarm.service.settings import Settings

log = logging.getLogger("superarm.service")


class JournalFollower:
    """The model of a service, and its totals, after the last event that was projected.

    Attributes:
        projector: of the journal; one thread at a time may move it.
        replayed: how many events the start has projected.
        broken_snapshots: those that could not be read.
        clock: the time of new events.
        clock_problem: why nothing may expire or be erased by the clock; None if it may.
        erasure_problem: why an erasure is not finished; None if all are.
    """

    def __init__(self, store: JournalStore, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self._journal_clock: Callable[[], float] = settings.clock or store.clock()
        self.clock = self._journal_clock
        self.clock_problem: str | None = None
        if not settings.trust_clock:
            self._check_clock()
        self.erasure_problem: str | None = None
        self._erased_counts: dict[int, int] = {}  # decisions, by erasure: to count them in a file takes long
        self.load()
        settings.check(self.projector.learner)

    def load(self) -> None:
        """Take the newest snapshot that can be read, and project all events since; JournalDamaged if that fails."""
        self.projector = Projector.newest(self.store, self.settings.shadows)
        self.broken_snapshots = self.projector.broken_snapshots
        start = self.projector.seq
        if not self.store.read_only:
            self.projector.erase_content = self._erase
        try:
            self.projector.catch_up()
        except JournalError:
            raise
        except Exception as error:  # a bug: another superarm may do better
            seq, name = self.projector.seq, self.store.name
            reason = f"the events after event {seq} of journal {name} cannot be applied: {error!r}"
            raise JournalDamaged(reason) from error
        if self.projector.erase_content is not None and self.store.stored_number(ERASED):
            self.finish_erasing()
        self.replayed = self.projector.seq - start
        self.store.recheck_missing()

    def was_learnt(self, record: DecisionRecord) -> bool | None:
        """Return whether a decision's outcome or timeout has moved the model; None if none was projected here."""
        event = record.closed_by
        return None if event is None or event.seq > self.projector.seq else self.projector.was_learnt(record)

    # ------------------------------------------------------------ moving on

    def catch_up(self) -> None:
        """Project what other processes have written meanwhile."""
        if self.store.shared:
            self._advance(self.projector.catch_up)
            if self.clock_problem is not None:  # an event of a process that may use the clock ends that
                self._check_clock()

    def apply(self, events: Sequence[Event]) -> None:
        """Project events that this process has written, after those that others wrote before them."""
        written = [event for event in events if event.seq]
        if written:
            self._advance(lambda: self.projector.catch_up(written[0].seq - 1, following=written))

    def recover(self) -> None:
        """Project what the journal has after a failure: that may be more than was acknowledged."""
        if self.projector.is_intact and self.projector.erase_content is not None:
            self._advance(self.projector.catch_up)
        else:  # it was left in the midst of events, or the journal could only be read so far
            self.load()

    def _advance(self, project: Callable[[], None]) -> None:
        """Let the projector move on; after a failure in the midst of it, start again from a snapshot."""
        try:
            project()
        except JournalUnavailable:  # say, erasing could not be written: `recover` goes on when it can be
            raise
        except Exception:  # a bug, or an interrupt
            log.exception("projection failed")
            self.load()

    def _check_clock(self) -> None:
        """Use the journal's clock; while it is too far from the last event, count on from that event instead."""
        last, began = self.store.head().time, monotonic()
        problem = clock_problem(self._journal_clock(), last)
        if problem is None:
            self.clock = self._journal_clock
        elif self.clock_problem is None:
            self.clock = lambda: last + monotonic() - began
        self.clock_problem = problem

    # ------------------------------------------------------------ snapshots and erasing

    def snapshot(self) -> None:
        """Keep the whole model, so that a restart needs only the events after it."""
        if self.store.newest_snapshot() < self.projector.seq:
            snapshot = self.projector.snapshot(self.clock())
            self.store.write_snapshot(snapshot, self.settings.keep_snapshots)

    def _erase(self, erasure: Event) -> None:
        """Erase what an event says, unless another process has; remember a failure to leave nothing."""
        if erasure.seq > self.store.stored_number(ERASED):
            request = erasure_of(erasure)
            self.store.write_snapshot(self.projector.snapshot(self.clock()))
            count = self.store.erase(erasure.seq, request.ids, request.before)
            if not self.store.shared:  # or another process may have erased it meanwhile
                self._erased_counts[erasure.seq] = count
            log.info("erased", extra={"count": count, "event_no": erasure.seq})
            self.finish_erasing()

    def finish_erasing(self) -> None:
        """Leave nothing of what was erased on the disk, or remember why it is there."""
        try:
            self.store.purge_erased()
            self.erasure_problem = None
        except JournalUnavailable as error:
            self.erasure_problem = f"what was erased is still on the disk: {error}"

    def n_erased(self, erasure: int) -> int:
        """Return how many decisions an erasure was about."""
        count = self._erased_counts.get(erasure)
        return self.store.count_erased(erasure) if count is None else count
