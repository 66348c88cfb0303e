"""What is due by time: timeouts, erasures by age, unfinished erasures, snapshots.

Where many processes share a journal, one of them at a time writes it (`JournalStore.begin_upkeep`); done twice, or
late, it has the same effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any

from superarm.journal.changes import Erase
from superarm.journal.errors import JournalUnavailable
from superarm.journal.events import ERASURE, TIMEOUT, Event, OutcomeBody

if TYPE_CHECKING:
    from superarm.journal.projector import Projector
    from superarm.service.service import Service

log = logging.getLogger("superarm.service")

UPKEEP_EVERY = 0.5  # seconds
RETAIN_EVERY = 3600.0  # seconds between two looks for what is too old to be kept
TIMEOUT_BATCH = 500  # decisions that are closed by one commit


class Upkeep:
    """The regular work of a service, in batches: each is made again at once while there is more to do.

    Attributes:
        failures: how often some of it has failed.
        error: why the last of it has failed; None if it has not.
    """

    def __init__(self, service: Service) -> None:
        self.service, self.store, self.follower = service, service.store, service.follower
        self.settings = service.settings
        self.failures = 0
        self.error: str | None = None
        self._retain_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:  # at once: after a crash the tail may be long
            errors = [
                await self._try("events", self._write_all_due_events()),
                await self._try("snapshot", self.snapshot(only_if_due=True)),
            ]
            self.error = next((error for error in errors if error is not None), None)
            self.failures += self.error is not None
            await asyncio.sleep(UPKEEP_EVERY)

    async def _try(self, name: str, work: Coroutine[Any, Any, None]) -> str | None:
        """Do one part of the work, also if another has failed; return why it failed, or None."""
        try:
            await work
        except JournalUnavailable as error:  # the status has it already
            return f"{name}: {error}" if self.service.outage is None else None
        except Exception as error:
            log.exception("upkeep failed", extra={"duty": name})
            return f"{name}: {error}"
        return None

    # ------------------------------------------------------------ events

    async def _write_all_due_events(self) -> None:
        while await self.service.submit(self.write_due_events):
            pass

    def write_due_events(self) -> bool:
        """Check, also without requests, whether the journal can be written and is in its place; then write.

        Returns:
            Whether there is more to do at once.
        """
        self.service.check_writable()
        self.store.check()
        if not self.store.begin_upkeep():
            return False
        events = self.timeouts()
        full = len(events) == TIMEOUT_BATCH
        if not full:
            events += self._erasure_by_age()
        self.store.append(events)  # but for timeouts that another process was faster to write
        self.follower.apply(events)
        if self.follower.erasure_problem is not None:
            self.follower.finish_erasing()
        return full

    def timeouts(self) -> list[Event]:
        """Return the timeouts that are due, `TIMEOUT_BATCH` at most."""
        timeout, default, now = self.settings.timeout, self.settings.default_outcome, self.follower.clock()
        if timeout is None or self.follower.clock_problem is not None:
            return []
        due = self.store.pending_before(now - timeout, TIMEOUT_BATCH)
        return [Event.new(now, TIMEOUT, OutcomeBody(decision.seq, default), decision.id) for decision in due]

    def _erasure_by_age(self) -> list[Event]:
        """Return the erasure of what is too old to be kept, if there is any, and it is time to look."""
        retain, now = self.settings.retain, self.follower.clock()
        if retain is None or monotonic() < self._retain_at or self.follower.clock_problem is not None:
            return []
        if self.store.has_content_before(now - retain):  # (a look at once again, until none is left)
            return [Event.new(now, ERASURE, Erase(before=now - retain).to_dict())]
        self._retain_at = monotonic() + min(RETAIN_EVERY, retain / 2.0)
        return []

    # ------------------------------------------------------------ snapshots

    async def snapshot(self, *, only_if_due: bool = False) -> None:
        """Keep a snapshot: copy the model in a batch, make bytes of it in another thread, write them in a batch."""

        def copy() -> Projector | None:
            self.service.check_writable()
            return None if only_if_due and not self._snapshot_is_due() else self.follower.projector.copy()

        def write() -> None:
            self.service.check_writable()
            self.store.write_snapshot(snapshot, self.settings.keep_snapshots)

        copied = await self.service.submit(copy)
        if copied is not None:
            snapshot = await asyncio.to_thread(copied.snapshot, self.follower.clock())
            await self.service.submit(write)
            log.info("snapshot", extra={"event_no": copied.seq})

    def _snapshot_is_due(self) -> bool:
        """Return whether this process is to keep a snapshot now."""
        n_events = self.follower.projector.seq - self.store.newest_snapshot()
        return n_events >= self.settings.snapshot_every and self.store.begin_upkeep()
