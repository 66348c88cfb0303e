"""Run an experiment, in processes of this machine or on a Dask cluster.

What is stored is not run again, what finishes is stored at once.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from superarm._extras import require_extra
from superarm._progress import Progress, progress_bar
from superarm.errors import InvalidInput
from superarm.experiments.runs import Run, RunFailure, RunResult, execute_run
from superarm.experiments.spec import BestGammas, Spec, read_spec
from superarm.experiments.store import Experiment, Store, best_gamma_frame

PAPER_FOLDER = Path(__file__).parent / "paper"
DEMO_SPEC = Path(__file__).parent / "demo.toml"  # every learner on embedded data, in under a minute
TIMEOUT = "10s"  # for a Dask scheduler to answer
IDLE_SECONDS = 10  # after which a process without work ends, also one whose parent was killed
PROCESS_DIED = "its process died (out of memory, or killed)"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What `run` has done."""

    name: str
    runs: int
    executed: int
    stored: int
    failures: tuple[RunFailure, ...]
    seconds: float


def run(
    spec: Spec,
    store: Store,
    *,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Progress = None,
) -> RunSummary:
    """Execute the runs of a spec that the store does not have yet.

    Args:
        spec: from `read_spec`.
        store: where results go.
        jobs: processes on this machine.
        engine: ``"local"`` or ``"dask"``.
        address: of the Dask scheduler.
        progress: ``True`` for a bar; or what is called with the number of rounds done since the last call.
    """
    began = time.monotonic()
    runs = spec.runs(best_gammas(store, spec.best_from) if spec.best_from else None)
    store.put_experiment(Experiment(spec.name, spec.file.text, tuple(runs)))
    unique = {run.key: run for run in runs}  # some differ in their names only
    missing = [run for run in unique.values() if not store.has(run.key)]
    rounds = sum(run.rounds for run in missing)
    failures: list[RunFailure] = []
    executed = 0

    def counts() -> str:
        failed = f", {len(failures)} failed" if failures else ""
        return f"{executed}/{len(missing)} runs{failed}"

    with progress_bar(rounds, f"rounds of {spec.name}", counts, progress=progress) as tick:
        for result in execute_runs(missing, engine=engine, jobs=jobs, address=address) if missing else ():
            store.put(result)
            if isinstance(result, RunFailure):
                failures.append(result)
            executed += 1
            tick(result.run.rounds)
    stored = len(unique) - len(missing)
    seconds = time.monotonic() - began
    return RunSummary(spec.name, len(unique), len(missing), stored, tuple(failures), seconds)


def best_gammas(store: Store, name: str) -> BestGammas:
    """Return the gamma of least mean error in an experiment, by data set, learner and set size."""
    runs, _ = store.frames(name)
    if not len(runs):
        raise InvalidInput.must("experiment", str(store.folder), f"one with results: run {name} first", name)
    columns = best_gamma_frame(runs).select("data", "learner", "set_size", "gamma")
    return {(data, learner, m): gamma for data, learner, m, gamma in columns.iter_rows()}


def paper_specs(*, quick: bool = False) -> dict[str, Spec]:
    """Return the shipped specs of the paper's experiments and ours beside them, by name, in order."""
    specs = [read_spec(path, quick=quick) for path in PAPER_FOLDER.glob("*.toml")]
    return {spec.name: spec for spec in sorted(specs, key=lambda spec: spec.order)}


# ---------------------------------------------------------------- engines: they give results as they finish


def execute_runs(
    runs: Sequence[Run], *, engine: str = "local", jobs: int = 1, address: str | None = None
) -> Iterator[RunResult | RunFailure]:
    """Execute runs; yield their results in the order in which they finish."""
    if engine == "dask":
        if address is None:
            raise InvalidInput.must("address", "engine dask", "a scheduler's, as tcp://host:8786", None)
        return _execute_on_dask(runs, address)
    if engine != "local":
        raise InvalidInput.must("engine", "run", "local or dask", engine)
    return map(execute_run, runs) if jobs == 1 or len(runs) < 2 else _execute_locally(runs, jobs)


def _execute_locally(runs: Sequence[Run], jobs: int) -> Iterator[RunResult | RunFailure]:
    """Execute runs in ``jobs`` processes; if one dies, the runs that are left are executed one at a time."""
    require_extra("experiments")
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = {run.key: run for run in runs}
    options: dict[str, Any] = {"n_jobs": jobs, "batch_size": 1, "pre_dispatch": jobs}
    options |= {"return_as": "generator_unordered", "idle_worker_timeout": IDLE_SECONDS}
    with _interrupts_held_back():  # their parent ends them
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
def _interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait for a moment: processes and threads that are started meanwhile never see it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would let it through, were it started meanwhile
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _execute_on_dask(runs: Sequence[Run], address: str) -> Iterator[RunResult | RunFailure]:
    """Execute runs on a Dask cluster; the runs of a worker that is lost go to another."""
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
