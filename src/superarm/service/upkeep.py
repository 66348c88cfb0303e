"""Timeouts, snapshots, retention, unfinished erasures: in turn with the requests, without keeping them waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from superarm.journal.erase import ERASED
from superarm.journal.errors import InvalidRequest, JournalUnavailable
from superarm.journal.snapshots import take_snapshot
from superarm.service.model import LocalModel
from superarm.service.settings import UPKEEP_EVERY

if TYPE_CHECKING:
    from superarm.service.service import Service

log = logging.getLogger("superarm.service")


class Upkeep:
    """The regular work of a service, in turns: each is made again at once while there is more to do."""

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
            errors = [await self._try("events", self._in_turns(self.check))]
            if self.model.snapshot_is_due():
                errors.append(await self._try("snapshot", self.snapshot()))
            self.error = next((error for error in errors if error is not None), None)
            self.failures += self.error is not None
            await asyncio.sleep(UPKEEP_EVERY)

    async def _try(self, name: str, work: Coroutine[Any, Any, None]) -> str | None:
        """Do some work, whatever became of the rest; why it failed."""
        try:
            await work
        except JournalUnavailable as error:  # the status has it already
            return f"{name}: {error}" if self.service.down is None else None
        except Exception as error:
            log.exception("upkeep failed", extra={"duty": name})
            return f"{name}: {error}"
        return None

    async def _in_turns(self, call: Callable[[object], object]) -> None:
        while await self.service.submit(call):
            pass

    def check(self, _: object = None) -> Callable[[], bool]:
        """Check, also without requests, whether the journal can be written and is in its place; the rest follows."""
        self.store.check()
        return self.model.upkeep  # after the turn's own events

    async def snapshot(self) -> None:
        """A copy in a turn, its bytes in another thread, and they are written piece by piece, in turns."""
        service, store, model = self.service, self.store, self.model
        if not isinstance(model, LocalModel):
            raise InvalidRequest("of a shared journal, the process that learns keeps the snapshots")
        twin = await service.submit(lambda _: model.projector.copy())
        pieces = store.write_snapshot(await asyncio.to_thread(take_snapshot, twin, model.clock()))

        def write(_: object) -> bool:
            if store.progress(ERASED) > twin.seq:  # with the one of the erasure it might reveal a row
                store.drop_snapshots([twin.seq])
                return False
            if next(pieces, "written") is None:
                return True
            store.drop_old_snapshots(service.settings.keep_snapshots)
            log.info("snapshot", extra={"event_no": twin.seq})
            return False

        await self._in_turns(write)
