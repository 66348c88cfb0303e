"""Where cells run: in processes of this machine, or on a Dask cluster. Both give results as they finish."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from superarm._extras import need
from superarm.errors import InvalidInput
from superarm.experiments.cells import Cell, Failed, Result, run_cell

TIMEOUT = "10s"  # for a Dask scheduler to answer


def run_cells(
    cells: Sequence[Cell], *, engine: str = "local", jobs: int = 1, address: str | None = None
) -> Iterator[Result]:
    """Run cells; yield their results in the order in which they finish."""
    if engine == "dask":
        if address is None:
            raise InvalidInput.must("--address", "--engine dask", "a scheduler's, as tcp://host:8786", None)
        return _dask(cells, address)
    if engine != "local":
        raise InvalidInput.must("--engine", "superarm run", "local or dask", engine)
    return map(run_cell, cells) if jobs == 1 or len(cells) < 2 else _local(cells, jobs)


def _local(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """In ``jobs`` processes. If one is killed from outside, its cell gets a second chance, alone."""
    waiting = {cell.key: cell for cell in cells}
    yield from _in_processes(waiting, jobs)
    while waiting:  # a process died; it had taken one of the first cells that are left
        suspects = list(waiting.values())[:jobs]
        for cell in suspects:
            alone = {cell.key: cell}
            yield from _in_processes(alone, 1)
            if alone:
                yield Failed(cell, "its process died (out of memory, or killed)")
            del waiting[cell.key]
        yield from _in_processes(waiting, jobs)


def _in_processes(waiting: dict[str, Cell], jobs: int) -> Iterator[Result]:
    """Results of ``waiting``, from which finished cells are taken, until all are or a process dies."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait
    from concurrent.futures.process import BrokenProcessPool

    need("experiments")
    # loky, unlike the standard library's pool, does not import the caller's main module again
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    # idle ones end, also if their parent was killed; Ctrl-C is the parent's to answer: it ends them
    pool = ProcessPoolExecutor(max_workers=jobs, timeout=10, initializer=_ignore_interrupts)
    cells = iter(list(waiting.values()))

    def started(n: int) -> set[Future[Result]]:
        with _without_interrupts():
            return {pool.submit(_run_unless_orphaned, os.getpid(), cell) for cell in islice(cells, n)}

    try:
        running = started(jobs)  # no more than are needed: cells in loky's queue would not let it end quietly
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= started(len(done))
            for future in done:
                result = future.result()
                del waiting[result.cell.key]
                yield result
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started in here do not hear Ctrl-C, from their very beginning."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run_unless_orphaned(parent: int, cell: Cell) -> Result:
    """Run a cell, unless the process that wants it was killed."""
    if os.getppid() != parent:
        os._exit(0)
    return run_cell(cell)


def _dask(cells: Sequence[Cell], address: str) -> Iterator[Result]:
    """On a Dask cluster; cells of a worker that is lost go to another."""
    need("dask")
    import uuid

    from distributed import Client, as_completed

    run = uuid.uuid4().hex[:8]  # a failed cell must not be answered from the scheduler's memory
    try:
        client = Client(address, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput.must(
            "--address", "--engine dask", "a running Dask scheduler's", address
        ) from error
    with client:
        futures = {client.submit(run_cell, cell, key=f"superarm-{run}-{cell.key}"): cell for cell in cells}
        for future in as_completed(list(futures)):  # type: ignore[no-untyped-call]
            cell = futures.pop(future)
            problem = future.exception() if future.status != "finished" else None
            yield future.result() if problem is None else Failed(cell, f"{type(problem).__name__}: {problem}")
            future.release()
