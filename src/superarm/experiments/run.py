"""Run an experiment: what is stored is not run again, what finishes is stored at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from superarm._progress import Progress, progress_ticker
from superarm.errors import InvalidInput
from superarm.experiments.engines import execute_runs
from superarm.experiments.runs import RunFailure
from superarm.experiments.spec import BestGamma, Spec, read_spec
from superarm.experiments.store import Experiment, Store

PAPER = Path(__file__).parent / "paper"
DEMO = Path(__file__).parent / "demo.toml"  # every learner on embedded data, in under a minute


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did."""

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

    with progress_ticker(progress, rounds, f"rounds of {spec.name}", counts) as tick:
        for result in execute_runs(missing, engine=engine, jobs=jobs, address=address) if missing else ():
            store.put(result)
            if isinstance(result, RunFailure):
                failures.append(result)
            executed += 1
            tick(result.run.rounds)
    stored, seconds = len(unique) - len(missing), time.monotonic() - began
    return RunSummary(spec.name, len(unique), len(missing), stored, tuple(failures), seconds)


def best_gammas(store: Store, name: str) -> BestGamma:
    """The gamma of least mean error in an experiment, for each data set, learner and set size."""
    runs, _ = store.frames(name)
    if not len(runs):
        raise InvalidInput.must("experiment", str(store.folder), f"one with results: run {name} first", name)
    means = runs.filter(pl.col("gamma").is_not_null()).group_by("data", "learner", "set_size", "gamma")
    table = means.agg(pl.col("error_rate").mean()).sort("error_rate", "gamma")
    gammas: dict[tuple[str, str, int], float] = {}
    for data, learner, m, gamma in table.select("data", "learner", "set_size", "gamma").iter_rows():
        gammas.setdefault((data, learner, m), gamma)

    def best(data: str, learner: str, m: int) -> float:
        if (data, learner, m) not in gammas:
            raise InvalidInput(f"gammas = 'best': {name} has no results for {learner} with m = {m} on {data}")
        return gammas[data, learner, m]

    return best


def paper_specs() -> dict[str, Path]:
    """The shipped specs of the paper's experiments and ours beside them, in order."""
    specs = [read_spec(path) for path in PAPER.glob("*.toml")]
    return {spec.name: PAPER / f"{spec.name}.toml" for spec in sorted(specs, key=lambda s: s.order)}
