"""Run an experiment: what is stored is not run again, what finishes is stored at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from superarm._progress import Progress, ticking
from superarm.errors import InvalidInput
from superarm.experiments.cells import Cell, Failed
from superarm.experiments.engines import run_cells
from superarm.experiments.spec import BestGamma, Spec, read_spec
from superarm.experiments.store import Experiment, Store

PAPER = Path(__file__).parent / "paper"
DEMO = Path(__file__).parent / "demo.toml"  # every learner on embedded data, in under a minute


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did."""

    name: str
    cells: int
    ran: int
    stored: int
    failures: tuple[Failed, ...]
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
    """Run the cells of a spec that the store has not yet.

    Args:
        spec: from `read_spec`.
        store: where results go.
        jobs: processes on this machine.
        engine: ``"local"`` or ``"dask"``.
        address: of the Dask scheduler.
        progress: ``True`` for a bar; or what is called with the number of rounds done since the last call.
    """
    began = time.monotonic()
    cells = spec.cells(best_gammas(store, spec.best_from) if spec.best_from else None)
    store.put_experiment(_experiment(spec, cells))
    unique = {cell.key: cell for cell in cells}  # some differ in their names only
    missing = [cell for cell in unique.values() if not store.has(cell.key)]
    rounds = sum(cell.rounds for cell in missing)
    failures: list[Failed] = []
    with ticking(progress, rounds, f"rounds of {spec.name}") as tick:
        for result in run_cells(missing, engine=engine, jobs=jobs, address=address) if missing else ():
            store.put(result)
            if isinstance(result, Failed):
                failures.append(result)
            tick(result.cell.rounds)
    stored, seconds = len(unique) - len(missing), time.monotonic() - began
    return RunSummary(spec.name, len(unique), len(missing), stored, tuple(failures), seconds)


def _experiment(spec: Spec, cells: list[Cell]) -> Experiment:
    return Experiment(
        name=spec.name,
        title=spec.title,
        order=spec.order,
        spec=spec.file.text,
        figures=spec.figures,
        reference=spec.reference,
        learners=tuple(entry.name for entry in spec.learners),
        data=tuple(entry.name for entry in spec.data),
        cells=tuple(cells),
    )


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
