"""Timeouts, snapshots, retention, unfinished erasures: in turn with the requests, without keeping them waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from superarm.journal.erase import ERASED
from superarm.journal.errors import JournalDown
from superarm.journal.snapshots import take_snapshot
from superarm.service.settings import UPKEEP_EVERY

if TYPE_CHECKING:
    from superarm.service.local import LocalModel
    from superarm.service.service import Service

log = logging.getLogger("superarm.service")


class Upkeep:
    """The regular work of a service. Each duty is tried on its own: a failure stops no other.

    A duty is a call of a turn, which is made again at once while there is more to do.
    """

    def __init__(self, service: Service, model: LocalModel | None) -> None:
        self.service, self.store, self.model = service, service.store, model
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
            errors = [await self._try("check", self._in_turns(self.check))]
            if self.model is not None:  # of a shared journal, the process that learns does these
                for duty in (self.expire, self.retain, self.finish_erasing):
                    errors.append(await self._try(duty.__name__, self._in_turns(duty)))
                if self.model.snapshot_is_due():
                    errors.append(await self._try("snapshot", self.snapshot()))
            self.error = next((error for error in errors if error is not None), None)
            self.failures += self.error is not None
            await asyncio.sleep(UPKEEP_EVERY)

    async def _try(self, name: str, work: Coroutine[Any, Any, None]) -> str | None:
        """Do a duty; why it failed."""
        try:
            await work
        except JournalDown as error:  # the status has it already
            return f"{name}: {error}" if self.service.down is None else None
        except Exception as error:
            log.exception("upkeep failed", extra={"duty": name})
            return f"{name}: {error}"
        return None

    async def _in_turns(self, duty: Callable[[object], object]) -> None:
        while await self.service.submit(duty):
            pass

    # ------------------------------------------------------------ duties

    def check(self, _: object = None) -> None:
        """Check, also without requests, whether the journal can be written and is in its place."""
        self.store.check()

    def expire(self, _: object = None) -> int:
        """Close decisions that have waited longer than the timeout; how many."""
        assert self.model is not None
        return self.service.handler.expire(self.model.timeouts())

    def retain(self, _: object = None) -> None:
        assert self.model is not None
        for erasure in self.model.retention():
            self.service.handler.stage(erasure)

    def finish_erasing(self, _: object = None) -> None:
        assert self.model is not None
        if self.model.eraser.problem is not None:
            self.model.eraser.finish()

    async def snapshot(self) -> None:
        """A copy in a turn, its bytes in another thread, and they are written piece by piece, in turns."""
        service, store, model = self.service, self.store, self.model
        assert model is not None
        twin = await service.submit(lambda _: model.projector.copy())
        pieces = store.write_snapshot(await asyncio.to_thread(take_snapshot, twin, model.clock()))

        def write(_: object) -> bool:
            if store.progress(ERASED) > twin.seq:  # with the one of the erasure it might reveal a row
                store.drop_snapshots([twin.seq])
                return False
            if next(pieces, "written") is None:
                return True
            model.kept_snapshot(twin.seq)
            log.info("snapshot", extra={"event_no": twin.seq})
            return False

        await self._in_turns(write)
