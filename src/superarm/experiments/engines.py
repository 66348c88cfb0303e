"""Where runs are executed: in processes of this machine, or on a Dask cluster. Both give results as they finish."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from superarm._extras import require_extra
from superarm.errors import InvalidInput
from superarm.experiments.runs import Run, RunFailure, RunResult, execute_run

TIMEOUT = "10s"  # for a Dask scheduler to answer
IDLE_SECONDS = 10  # after which a process without work ends, also one whose parent was killed
PROCESS_DIED = "its process died (out of memory, or killed)"


def execute_runs(
    runs: Sequence[Run], *, engine: str = "local", jobs: int = 1, address: str | None = None
) -> Iterator[RunResult | RunFailure]:
    """Execute runs; yield their results in the order in which they finish."""
    if engine == "dask":
        if address is None:
            raise InvalidInput.must("address", "engine dask", "a scheduler's, as tcp://host:8786", None)
        return _dask(runs, address)
    if engine != "local":
        raise InvalidInput.must("engine", "run", "local or dask", engine)
    return map(execute_run, runs) if jobs == 1 or len(runs) < 2 else _local(runs, jobs)


def _local(runs: Sequence[Run], jobs: int) -> Iterator[RunResult | RunFailure]:
    """Execute runs in ``jobs`` processes; if one dies, the runs that are left are executed one at a time."""
    require_extra("experiments")
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = {run.key: run for run in runs}
    options: dict[str, Any] = {"n_jobs": jobs, "batch_size": 1, "pre_dispatch": jobs}
    options |= {"return_as": "generator_unordered", "idle_worker_timeout": IDLE_SECONDS}
    with _interrupts_ignored():  # processes started here never see Ctrl-C: their parent ends them
        results = Parallel(**options)(delayed(execute_run)(run) for run in runs)
    try:
        for result in results:
            del waiting[result.run.key]
            yield result
    except TerminatedWorkerError:
        for run in waiting.values():
            try:
                yield from Parallel(**options)([delayed(execute_run)(run)])
            except TerminatedWorkerError:
                yield RunFailure(run, PROCESS_DIED)
    finally:
        with warnings.catch_warnings(action="ignore"):  # after Ctrl-C, of runs that are cancelled
            results.close()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C for a moment; only the main thread of Python can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _dask(runs: Sequence[Run], address: str) -> Iterator[RunResult | RunFailure]:
    """Execute runs on a Dask cluster; those of a worker that is lost go to another."""
    require_extra("dask")
    import uuid

    from distributed import Client, as_completed

    prefix = uuid.uuid4().hex[:8]  # a failed run must not be answered from the scheduler's memory
    try:
        client = Client(address, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput.must("address", "engine dask", "a running Dask scheduler's", address) from error
    with client:
        futures = {client.submit(execute_run, run, key=f"superarm-{prefix}-{run.key}"): run for run in runs}
        for future in as_completed(list(futures)):  # type: ignore[no-untyped-call]
            run = futures.pop(future)
            problem = future.exception() if future.status != "finished" else None
            failure = None if problem is None else RunFailure(run, f"{type(problem).__name__}: {problem}")
            yield failure or future.result()
            future.release()
