"""Timeouts, snapshots, compaction, retention: in turn with the requests, without keeping them waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from superarm.service.core.archive import Compaction
from superarm.service.core.erasing import RETAIN_EVERY, Erasure
from superarm.service.core.group import Group

__all__ = ["Upkeep"]

log = logging.getLogger("superarm.service")

EVERY = 0.5  # seconds


class Upkeep:
    """Looks after a session; run it as a task beside the requests.

    Each of its duties is tried on its own: one that fails does not keep the others from their turn.
    """

    def __init__(self, group: Group) -> None:
        self.group, self.session = group, group.session
        self._was_down = False
        self._retain_at = 0.0
        self._one = asyncio.Lock()  # snapshots, compaction and erasing change the same tables and files

    async def run(self) -> None:
        duties = (self._expire, self._snapshot, self._retain)
        while True:  # at once: after a crash the tail may be long
            failure: str | None = None
            await self._recover()
            for duty in duties:
                if self.session.down is not None:
                    break
                try:
                    await duty()
                except Exception as error:
                    failure = f"{duty.__name__.lstrip('_')}: {error}"
                    log.exception("upkeep", extra={"duty": duty.__name__.lstrip("_")})
            self.session.upkeep_failures += failure is not None
            self.session.upkeep_error = failure
            await asyncio.sleep(EVERY)

    async def _recover(self) -> None:
        if self.session.down is not None:
            await self.group.submit(lambda _: None, None)  # gives the group a turn to try again
        down = self.session.down
        if (down is not None) != self._was_down:
            self._was_down = not self._was_down
            log.error("journal down", extra={"reason": str(down)}) if down else log.info("journal up")

    async def _expire(self) -> None:
        while self.session.down is None and await self.group.submit(lambda _: self.session.expire(), None):
            pass

    async def _snapshot(self) -> None:
        if self.session.snapshot_due():
            async with self._one:
                await self._take()
                await self._compact()

    async def snapshot(self) -> None:
        """A snapshot now, whether it is due or not."""
        async with self._one:
            await self._take()

    async def _take(self) -> None:
        """A snapshot: a copy in a turn, the bytes in another thread, the writing piece by piece."""
        job = await self.group.submit(lambda _: self.session.begin_snapshot(), None)
        await asyncio.to_thread(job.make)
        while await self.group.on_disk(self.session.put, job):
            pass
        await asyncio.to_thread(self.session.journal.sync_mark)
        log.info("snapshot", extra={"event_no": job.seq})

    async def _compact(self) -> None:
        """Move events older than the kept snapshots to an archive."""
        work = Compaction(self.session.journal, self.session.keep_snapshots)
        if work:
            await asyncio.to_thread(work.write)
            while await self.group.on_disk(self._step, work):
                await asyncio.sleep(0)
            log.info("compacted", extra={"event_no": work.last})

    def _step(self, work: Compaction) -> bool:
        with self.session.writing():
            return work.step()

    async def _retain(self) -> None:
        session, now = self.session, asyncio.get_running_loop().time()
        if session.retain is not None and now >= self._retain_at:
            await self.erase(before=session.clock() - session.retain)
            self._retain_at = now + min(RETAIN_EVERY, session.retain / 2.0)

    async def erase(self, ids: Iterable[str] | None = None, before: float | None = None) -> int:
        """`Session.erase`, without keeping anybody waiting."""
        async with self._one:
            work = Erasure(self.session, ids, before)
            await asyncio.to_thread(work.write)
            if not work.seqs:
                return 0
            await self._take()  # a snapshot of now: nothing can be replayed across an erased event
            count: int = await self.group.on_disk(lambda _: work.apply(), None)
            await self.group.on_disk(lambda _: work.finish(), None)
            log.info("erased", extra={"count": count})
            return count
