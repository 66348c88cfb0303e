"""Group commit: what arrives while the disk is busy is applied together and committed once.

Calls are applied to the session in the event loop, one after another; only the commit, which waits
for the disk, runs in a thread, while the loop reads the next requests. Nobody is answered before
the commit that carries their call has returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

from superarm.errors import SuperarmError
from superarm.service.faults import JournalDown
from superarm.service.session import Session

__all__ = ["Group"]

MOST_TOGETHER = 256  # so that the loop is never away for long
MOST_WAITING = 10_000

Call = tuple[Callable[[Any], Any], Any, "asyncio.Future[Any]"]


class Group:
    """Takes turns: apply what waits, commit, answer."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.commits, self.commit_seconds = 0, 0.0
        self._loop = asyncio.get_running_loop()
        self._disk = ThreadPoolExecutor(1, "superarm-commit")
        self._waiting: list[Call] = []
        self._busy = False

    def submit(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """``method(argument)`` in its turn; the future is done when its effects are on the disk."""
        future = self._loop.create_future()
        if len(self._waiting) >= MOST_WAITING:
            future.set_exception(JournalDown("the service has too many requests waiting", 503))
            return future
        self._waiting.append((method, argument, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._turn)  # requests that the loop has read by then join in
        return future

    async def close(self) -> None:
        """Wait for all that was submitted."""
        while self._busy:
            await asyncio.sleep(0.005)
        self._disk.shutdown()

    def _turn(self) -> None:
        if self.session.can_retry():
            self._in_thread(self.session.recover, lambda error: self._apply())
        else:
            self._apply()

    def _apply(self) -> None:
        batch, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        was_down = self.session.down is not None
        done: list[tuple[asyncio.Future[Any], Any, Exception | None]] = []
        for method, argument, future in batch:
            try:
                done.append((future, method(argument), None))
            except SuperarmError as error:
                done.append((future, None, error))
            except Exception as error:  # a bug: that caller is told, the others go on
                done.append((future, None, error))
        if self.session.down is not None and not was_down:
            self._answer(done, self.session.down)
        elif self.session.journal.dirty:
            began = perf_counter()

            def committed(error: Exception | None) -> None:
                self.commits += 1
                self.commit_seconds += perf_counter() - began
                self._answer(done, error)

            self._in_thread(self.session.commit, committed)
        else:
            self._answer(done, None)

    def _in_thread(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        def job() -> None:
            try:
                work()
            except Exception as error:
                self._loop.call_soon_threadsafe(then, error)
            else:
                self._loop.call_soon_threadsafe(then, None)

        self._disk.submit(job)

    def _answer(self, done: list[Any], failure: Exception | None) -> None:
        for future, result, error in done:
            if future.done():  # the caller has gone away
                continue
            if error is not None or failure is not None:
                future.set_exception(error or failure)
            else:
                future.set_result(result)
        if self._waiting:
            self._loop.call_soon(self._turn)
        else:
            self._busy = False
