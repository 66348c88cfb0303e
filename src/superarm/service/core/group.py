"""Group commit: what arrives while the disk is busy is applied together and committed once.

Calls are applied to the session in the event loop, one after another; only the commit, which waits
for the disk, runs in a thread, while the loop reads the next requests. Nobody is answered before
the commit that carries their call has returned.

Clients that were answered together tend to come back together. Starting the next commit with the first
of them would leave the others waiting for the one after it: so a turn waits for as many calls as were
in flight a moment ago, but no longer than half of what a commit takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from superarm.service.core.faults import JournalDown
from superarm.service.core.session import Session

__all__ = ["Group"]

MOST_TOGETHER = 256  # so that the loop is never away for long
MOST_WAITING = 10_000
SHORTEST_TIMER = 0.0005  # seconds; the loop's timers round to a millisecond

Call = tuple[Callable[[Any], Any], Any, "asyncio.Future[Any]"]
Job = tuple[Callable[[], None], Callable[[Exception | None], None]]


class Group:
    """Takes turns: wait a moment, apply what waits, commit, answer."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.commits, self.commit_seconds = 0, 0.0
        self._usual = 0.0  # seconds that a commit takes, smoothed
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._disk = Thread(target=self._work, name="superarm-commit", daemon=True)
        self._disk.start()
        self._waiting: list[Call] = []
        self._busy = False  # a turn is under way
        self._wanted = 1  # calls to wait for before the next turn
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """``method(argument)`` in its turn; the future is done when its effects are on the disk."""
        future = self._loop.create_future()
        if len(self._waiting) >= MOST_WAITING:
            future.set_exception(JournalDown("the service has too many requests waiting", 503))
            return future
        self._waiting.append((method, argument, future))
        if not self._busy:
            self._gather()
        return future

    async def close(self) -> None:
        """Wait for all that was submitted."""
        while self._busy or self._waiting:
            await asyncio.sleep(0.005)
        self._jobs.put(None)
        await asyncio.to_thread(self._disk.join)

    def _gather(self) -> None:
        """Begin the next turn: now if nobody else is likely to come, or else in a moment."""
        patience = self._usual / 2.0
        if len(self._waiting) >= self._wanted or patience < SHORTEST_TIMER:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._busy = True
            self._loop.call_soon(self._turn)  # requests that the loop has read by then join in
        elif self._timer is None:
            self._timer = self._loop.call_later(patience, self._stop_waiting)

    def _stop_waiting(self) -> None:
        self._timer = None
        self._wanted = 0
        if not self._busy:
            self._gather()

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
            except Exception as error:  # that caller is told, the others go on
                done.append((future, None, error))
        if self.session.down is not None and not was_down:
            self._answer(done, self.session.down)
        elif self.session.journal.dirty:
            began = perf_counter()

            def committed(error: Exception | None) -> None:
                seconds = perf_counter() - began
                self.commits += 1
                self.commit_seconds += seconds
                self._usual += 0.1 * (seconds - self._usual)
                self._answer(done, error)

            self._in_thread(self.session.commit, committed)
        else:
            self._answer(done, None)

    def _in_thread(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        self._jobs.put((work, then))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, then = job
            failure = None
            try:
                work()
            except Exception as error:
                failure = error
            self._loop.call_soon_threadsafe(then, failure)

    def _answer(self, done: list[Any], failure: Exception | None) -> None:
        for future, result, error in done:
            if future.done():  # the caller has gone away
                continue
            if error is not None or failure is not None:
                future.set_exception(error or failure)
            else:
                future.set_result(result)
        self._busy = False
        self._wanted = min(len(done) + len(self._waiting), MOST_TOGETHER)
        if self._waiting:
            self._gather()
