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
import copy
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

from superarm.service.core.faults import Overloaded
from superarm.service.core.snapshots import model_bytes

if TYPE_CHECKING:
    from superarm.service.core.session import Session

__all__ = ["Group"]

MOST_TOGETHER = 256  # so that the loop is never away for long
MOST_WAITING = 10_000
SHORTEST_TIMER = 0.0005  # seconds; the loop's timers round to a millisecond

Call = tuple[Callable[[Any], Any], Any, "asyncio.Future[Any]"]
Done = list[tuple["asyncio.Future[Any]", Any, Exception | None]]
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
        self._heavy: list[Call] = []  # for the thread
        self._busy = False  # a turn is under way
        self._wanted = 1  # calls to wait for before the next turn
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return len(self._waiting)

    def submit(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """``method(argument)`` in its turn; the future is done when its effects are on the disk."""
        future = self._loop.create_future()
        if len(self._waiting) >= MOST_WAITING:
            future.set_exception(Overloaded("the service has too many requests waiting"))
            return future
        self._waiting.append((method, argument, future))
        if not self._busy:
            self._gather()
        return future

    def on_disk(self, method: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """The same for work that would keep the loop: it is done in the thread, after the commit."""
        future = self._loop.create_future()
        self._heavy.append((method, argument, future))
        if not self._busy:
            self._gather()
        return future

    def look(self, read: Callable[[], Any]) -> Any:
        """What only looks at the journal: its result, or something to wait for."""
        return read()

    async def model_file(self) -> bytes:
        """The model as it is now, as `Learner.save` writes it; all that it has learnt is on the disk."""

        def a_copy(_: None) -> Any:
            if self.session.down is not None:  # it may be ahead of the journal
                raise self.session.down
            return copy.deepcopy(self.session.learner)

        # the copy is made in its turn, the file beside the others
        return await asyncio.to_thread(model_bytes, await self.submit(a_copy, None))

    async def close(self) -> None:
        """Wait for all that was submitted."""
        while self._busy or self._waiting or self._heavy:
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
        heavy, self._heavy = self._heavy[:1], self._heavy[1:]
        was_down = self.session.down is not None
        done = [_applied(call) for call in batch]
        if self.session.down is not None and not was_down:
            self._heavy = heavy + self._heavy
            self._answer(done, self.session.down)
        elif heavy or self.session.journal.dirty:
            began = perf_counter()

            def committed(error: Exception | None) -> None:
                self._note(perf_counter() - began)
                self._answer(done, error)

            if self.session.journal.dirty:
                self._in_thread(self.session.commit, self._answer_heavy(heavy, committed))
            else:
                self._answer_heavy(heavy, lambda error: self._answer(done, error))(None)
        else:
            self._answer(done, None)

    def _answer_heavy(
        self, heavy: list[Call], then: Callable[[Exception | None], None]
    ) -> Callable[[Exception | None], None]:
        """After the commit of a turn, the work that is for the thread, in a transaction of its own."""
        if not heavy:
            return then
        done: Done = []

        def work() -> None:
            done.extend(_applied(call) for call in heavy)
            if self.session.journal.dirty:
                self.session.commit()

        def worked(error: Exception | None) -> None:
            self._tell(done, error)
            then(None)

        def next_(error: Exception | None) -> None:
            if error is None:
                self._in_thread(work, worked)
            else:
                self._heavy = heavy + self._heavy
                then(error)

        return next_

    def _note(self, seconds: float) -> None:
        """What a commit took."""
        self.commits += 1
        self.commit_seconds += seconds
        self._usual += 0.1 * (seconds - self._usual)

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

    def _answer(self, done: Done, failure: Exception | None) -> None:
        self._tell(done, failure)
        self._busy = False
        self._wanted = min(len(done) + len(self._waiting), MOST_TOGETHER)
        if self._waiting or self._heavy:
            self._gather()

    def _tell(self, done: Done, failure: Exception | None) -> None:
        """A turn that failed has not happened: whatever was found in it may rest on what was taken back."""
        for future, result, error in done:
            if future.done():  # the caller has gone away
                continue
            if error is not None or failure is not None:
                future.set_exception(_settable(failure or error))
            else:
                future.set_result(result)


def _applied(call: Call) -> tuple[asyncio.Future[Any], Any, Exception | None]:
    method, argument, future = call
    try:
        return future, method(argument), None
    except Exception as error:  # that caller is told, the others go on
        return future, None, error


def _settable(error: Exception | None) -> Exception:
    """A Future takes no StopIteration: it would never be done, and neither would any later turn."""
    if error is None or isinstance(error, StopIteration):
        return RuntimeError(f"failed with {error!r}")
    return error
