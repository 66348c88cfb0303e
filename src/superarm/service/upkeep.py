"""Timeouts, snapshots, retention, unfinished erasures: in batches with the requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from superarm.journal.errors import JournalUnavailable
from superarm.journal.snapshots import take_snapshot
from superarm.service.commit_queue import AfterCommit

if TYPE_CHECKING:
    from superarm.journal.projector import Projector
    from superarm.journal.store import Snapshot
    from superarm.service.service import Service

log = logging.getLogger("superarm.service")

UPKEEP_EVERY = 0.5  # seconds


class Upkeep:
    """The regular work of a service, in batches: each is made again at once while there is more to do."""

    def __init__(self, service: Service) -> None:
        self.service, self.store, self.model = service, service.store, service.model
        self.failures = 0
        self.error: str | None = None
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

    async def _write_all_due_events(self) -> None:
        while await self.service.submit(self.write_due_events):
            pass

    def write_due_events(self, _: object = None) -> AfterCommit:
        """Check, also without requests, whether the journal can be written and is in its place; then write."""
        self.service.check_writable()
        self.store.check()
        return AfterCommit(self.model.upkeep)

    async def snapshot(self, *, only_if_due: bool = False) -> None:
        """Keep a snapshot: copy the model in a batch, make bytes of it in another thread, write them in a batch."""
        model = self.model

        def copy(_: object) -> Projector | None:
            self.service.check_writable()
            return None if only_if_due and not model.snapshot_is_due() else model.projector.copy()

        def write(snapshot: Snapshot) -> None:
            self.service.check_writable()
            self.store.write_snapshot(snapshot, model.settings.keep_snapshots)

        copied = await self.service.submit(copy)
        if copied is not None:
            await self.service.submit(write, await asyncio.to_thread(take_snapshot, copied, model.clock()))
            log.info("snapshot", extra={"event_no": copied.seq})
