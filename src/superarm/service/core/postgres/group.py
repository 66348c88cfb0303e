"""Taking turns in a process among many: everything that asks the database runs beside the loop, and no
caller waits for longer than it was promised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from superarm.service.core.faults import JournalDown
from superarm.service.core.group import MOST_TOGETHER, Done, Group

if TYPE_CHECKING:
    from superarm.service.core.postgres.session import SharedSession

__all__ = ["SharedGroup", "SharedUpkeep"]

LOOKERS = 4  # threads for those who only look
PROBE_SECONDS = 0.5


class SharedGroup(Group):
    """Takes turns: wait a moment, hand what waits to the thread that writes, answer."""

    session: SharedSession  # type: ignore[assignment]

    def __init__(self, session: SharedSession) -> None:
        super().__init__(session)  # type: ignore[arg-type]
        self._stuck = False  # the thread that writes waits for a database that does not answer
        self._lookers = ThreadPoolExecutor(LOOKERS, thread_name_prefix="superarm-look")
        self._overdue = 0  # threads that still look for somebody who was told 503

    def submit(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        if self.session.down is not None and (self._stuck or not self.session.can_retry()):
            future = self._loop.create_future()
            future.set_exception(self.session.down)
            return future
        return super().submit(method, argument)

    def on_disk(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """For what an operator changes: it waits for the process that learns."""
        return self._loop.run_in_executor(self._lookers, method, argument)

    def look(self, read: Callable[[], Any]) -> Any:
        def looking() -> Any:
            self.session.refresh()
            return read()

        return self._in_time(looking)

    async def _in_time(self, looking: Callable[[], Any]) -> Any:
        """What it gives, or 503: a database that hangs may keep a thread, and no caller."""
        if self.session.down is not None and self._stuck:
            raise self.session.down
        seconds = self.session.patience
        late = JournalDown(f"the database {self.session.address} has not answered for {seconds:g} s")
        if self._overdue >= LOOKERS:
            raise late
        job = self._lookers.submit(looking)
        work = asyncio.wrap_future(job)
        done, _ = await asyncio.wait([work], timeout=seconds)
        if done:
            return work.result()
        if not job.cancel():  # a thread has it; else it has waited for one
            self._overdue += 1
            work.add_done_callback(self._looked)
        raise late

    def _looked(self, work: asyncio.Future[Any]) -> None:
        self._overdue -= 1
        if not work.cancelled():
            work.exception()  # nobody waits for it any more

    def model_file(self) -> Any:
        return self.look(self.session.model_file)

    async def close(self) -> None:
        await super().close()
        self._lookers.shutdown(wait=False, cancel_futures=True)

    def _turn(self) -> None:
        batch, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        done: Done = []
        began = perf_counter()

        def work() -> None:
            if self.session.can_retry():
                self.session.recover()
            done.extend(self.session.turn(batch))

        def worked(error: Exception | None) -> None:
            timer.cancel()
            self._stuck = False
            if error is None:
                self._note(perf_counter() - began)
            self._answer(done or [(call[2], None, None) for call in batch], error)

        def too_long() -> None:
            """The thread still waits for the database: nobody else shall."""
            seconds = self.session.patience
            error = JournalDown(f"the database {self.session.address} has not answered for {seconds:g} s")
            self._stuck = True
            self.session.fail(error)
            waiting, self._waiting = self._waiting, []
            for call in (*batch, *waiting):
                if not call[2].done():
                    call[2].set_exception(error)

        timer = self._loop.call_later(self.session.patience, too_long)
        self._in_thread(work, worked)


class SharedUpkeep:
    """What `Upkeep` is for one process; here the process that learns does it."""

    def __init__(self, group: SharedGroup) -> None:
        self.group = group

    async def run(self) -> None:
        """Find whether the database can be written, also if nobody asks; while it is away, try again."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            with suppress(Exception):  # the session knows what is wrong
                await self.group.submit(self.group.session.probe, None)

    async def erase(self, ids: Iterable[str] | None = None, before: float | None = None) -> int:
        """Forget features and context."""
        asked = None if ids is None else list(ids)
        count: int = await self.group.on_disk(lambda _: self.group.session.erase(asked, before), None)
        return count
