"""Group commit: what arrives while a batch is under way is taken together in the next one.

A batch runs in one thread, which alone touches the model and writes the journal; the event loop reads the next
requests meanwhile. No call is answered before its batch has returned.

Clients that were answered together tend to come back together. Starting the next batch with the first of
them would leave the others waiting for the one after it: so a batch waits for as many calls as were in flight a
moment ago, but no longer than half of what a batch takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from time import monotonic, perf_counter
from typing import Any

from superarm.service.request_errors import Overloaded

MAX_BATCH = 256  # so that a batch never takes long
MAX_WAITING = 10_000
MIN_TIMER_SECONDS = 0.0005  # the loop's timers round to a millisecond


@dataclass(slots=True, eq=False)
class Call:
    """A request, to be answered in a batch, which then sets its result or its error.

    It is a request of a client or of an operator (`Batch` answers these), or a function without arguments, which is
    called when all that the batch has written is durable and projected.
    """

    request: Any
    future: asyncio.Future[Any] | None = None  # None if the caller itself runs the batch
    result: Any = None
    error: Exception | None = None

    @property
    def id(self) -> str | None:
        """The id that a request gives to its decision, or is about."""
        return getattr(self.request, "id", None)


class CommitQueue:
    """Commits batches: wait a moment, hand what waits to the thread, answer.

    Args:
        commit: makes calls, and returns when all they wrote is durable.

    Attributes:
        n_batches, total_seconds: how many there were, and how long they took.
    """

    def __init__(self, commit: Callable[[list[Call]], object]) -> None:
        self.n_batches, self.total_seconds = 0, 0.0
        self._commit = commit
        self._mean_seconds = 0.0  # seconds that a batch takes, smoothed
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[list[Call] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="superarm-commits", daemon=True)
        self._thread.start()
        self._waiting: list[Call] = []
        self._began: float | None = None  # when the batch that is under way did
        self._expected_calls = 1  # calls to wait for before the next batch
        self._timer: asyncio.TimerHandle | None = None

    @property
    def n_waiting(self) -> int:
        """How many calls wait for their batch."""
        return len(self._waiting)

    @property
    def batch_age(self) -> float:
        """How long the batch that is under way has taken so far."""
        return 0.0 if self._began is None else monotonic() - self._began

    def submit(self, request: Any) -> asyncio.Future[Any]:
        """Answer a request in the next batch; the future is done when its effects are on the disk."""
        future = self._loop.create_future()
        if len(self._waiting) >= MAX_WAITING:
            future.set_exception(Overloaded("the service has too many requests waiting"))
            return future
        self._waiting.append(Call(request, future))
        if self._began is None:
            self._start_or_wait()
        return future

    async def close(self) -> None:
        """Wait for all that was submitted."""
        while self._began is not None or self._waiting:
            await asyncio.sleep(0.005)
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _start_or_wait(self) -> None:
        """Start the next batch: now, if as many calls have come as are expected, or else in a moment."""
        wait = self._mean_seconds / 2.0
        if len(self._waiting) >= self._expected_calls or wait < MIN_TIMER_SECONDS:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._began = monotonic()
            self._loop.call_soon(self._start_batch)  # requests that the loop has read by then join in
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self._stop_waiting)

    def _stop_waiting(self) -> None:
        self._timer = None
        self._expected_calls = 0
        if self._began is None and self._waiting:
            self._start_or_wait()

    def _start_batch(self) -> None:
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        self._jobs.put(batch)

    def _work(self) -> None:
        while (batch := self._jobs.get()) is not None:
            began = perf_counter()
            try:
                self._commit(batch)
            except Exception as error:  # before any of it was done
                for call in batch:
                    call.error = error
            try:
                self._loop.call_soon_threadsafe(self._resolve, batch, perf_counter() - began)
            except RuntimeError:  # the loop is gone
                return

    def _resolve(self, batch: list[Call], seconds: float) -> None:
        self.n_batches += 1
        self.total_seconds += seconds
        self._mean_seconds += 0.1 * (seconds - self._mean_seconds)
        for call in batch:
            future, error = call.future, call.error
            if future is None or future.done():  # the caller has gone away
                continue
            if isinstance(error, StopIteration):  # a Future refuses it, and would never be done
                error = RuntimeError(f"failed with {error!r}")
            if error is None:
                future.set_result(call.result)
            else:
                future.set_exception(error)
        self._began = None
        self._expected_calls = min(len(batch) + len(self._waiting), MAX_BATCH)
        if self._waiting:
            self._start_or_wait()
