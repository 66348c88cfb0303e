"""Timeouts, snapshots, retention, unfinished erasures: in turn with the requests, without keeping them waiting."""

from __future__ import annotations

import asyncio
import copy
import logging
from typing import TYPE_CHECKING, Any

from superarm.journal.errors import JournalDown
from superarm.journal.snapshots import model_bytes
from superarm.service.settings import RETAIN_EVERY, UPKEEP_EVERY

if TYPE_CHECKING:
    from superarm.service.service import Service

log = logging.getLogger("superarm.service")


class Upkeep:
    """The regular work of a service. Each duty is tried on its own: a failure stops no other."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.failures = 0
        self.error: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._retain_at = 0.0
        self._snapshotting = asyncio.Lock()  # one at a time
        self._model_file: asyncio.Future[bytes] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        service = self.service
        duties: Any = (self._check, self._expire, self._snapshot, self._retain, self._finish_erasing)
        if service.model.shared:  # the process that learns does the others
            duties = (self._check,)
        while True:  # at once: after a crash the tail may be long
            failure: str | None = None
            for duty in duties:
                try:
                    await duty()
                except JournalDown as error:  # the status has it already
                    if service.down is None:
                        failure = f"{duty.__name__.lstrip('_')}: {error}"
                except Exception as error:
                    failure = f"{duty.__name__.lstrip('_')}: {error}"
                    log.exception("upkeep failed", extra={"duty": duty.__name__.lstrip("_")})
            self.failures += failure is not None
            self.error = failure
            await asyncio.sleep(UPKEEP_EVERY)

    async def _check(self) -> None:
        """Check, also without requests, whether the journal can be written and is in its place."""
        await self.service.submit(self._check_now)

    def _check_now(self, _: object) -> None:
        self.service.store.check()

    async def _expire(self) -> None:
        service = self.service
        if service.settings.timeout is not None:
            while service.down is None and await service.submit(service.expire_now):
                pass

    async def _snapshot(self) -> None:
        model = self.service.model
        if model.seq - model.snapshot_seq >= self.service.settings.snapshot_every:
            await self.snapshot()

    async def snapshot(self) -> None:
        """A copy in a turn, the bytes in another thread, the writing piece by piece."""
        async with self._snapshotting:
            service = self.service
            draft = await service.submit(lambda _: service.model.draft())
            pieces = service.store.write_snapshot(await asyncio.to_thread(draft.make))
            while await service.submit(lambda _: next(pieces, 0) is None):
                pass
            await service.submit(lambda _: service.kept_snapshot(draft.seq))
            log.info("snapshot", extra={"event_no": draft.seq})

    async def _retain(self) -> None:
        service, now = self.service, asyncio.get_running_loop().time()
        retain = service.settings.retain
        if retain is None or now < self._retain_at or service.down is not None:
            return
        if not service.model.trouble():
            before = service.model.clock() - retain
            if service.store.content_before(before):
                async with self._snapshotting:
                    await service.submit(service.erase_now, (None, before))
            self._retain_at = now + min(RETAIN_EVERY, retain / 2.0)

    async def _finish_erasing(self) -> None:
        eraser = self.service.model.eraser
        if eraser is not None and eraser.problem is not None and self.service.down is None:
            await self.service.submit(lambda _: eraser.finish())

    async def model_file(self) -> bytes:
        """The model as it is now, as `Learner.save` writes it; requests at the same time share one."""
        if self._model_file is None:
            self._model_file = asyncio.ensure_future(self._make_model_file())
            self._model_file.add_done_callback(self._clear_model_file)
        return await asyncio.shield(self._model_file)

    def _clear_model_file(self, future: asyncio.Future[bytes]) -> None:
        self._model_file = None
        if not future.cancelled():
            future.exception()  # the callers have it

    async def _make_model_file(self) -> bytes:
        if self.service.model.shared:
            return await self.service.read(lambda service: service.model.model_file())  # type: ignore[no-any-return]
        learner = await self.service.submit(lambda _: copy.deepcopy(self.service.model.learner))
        return await asyncio.to_thread(model_bytes, learner)
