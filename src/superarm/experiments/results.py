"""Run a cell; what came of it, and where."""

from __future__ import annotations

import os
import platform
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from superarm.errors import InvalidInput
from superarm.experiments.cells import Cell, make_learner, open_stream
from superarm.experiments.code_digest import code_digest
from superarm.native import cpu_level
from superarm.simulation import simulate


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a cell ran."""

    cpu: str
    cores: int | None
    system: str


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """The machine that this process runs on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return Machine(cpu, os.cpu_count(), platform.platform(terse=True))


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The packages that can change a result."""
    names = ("superarm", "numpy", "scipy", "scikit-learn")
    packages = {name: version(name) for name in names if find_spec(name.replace("scikit-learn", "sklearn"))}
    return {"python": platform.python_version(), "cpu level": cpu_level()} | packages


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell that ran to its end."""

    cell: Cell
    labels: int
    features: int | tuple[int, int]
    checkpoints: list[int]  # round numbers
    counts: list[list[int]]  # of the rates' mistakes, up to each checkpoint
    seconds: float
    versions: dict[str, str] = field(default_factory=versions)
    machine: Machine = field(default_factory=this_machine)


@dataclass(frozen=True, slots=True)
class Failed:
    """A cell that did not finish."""

    cell: Cell
    error: str
    traceback: str = ""
    versions: dict[str, str] = field(default_factory=versions)
    machine: Machine = field(default_factory=this_machine)


def run_cell(cell: Cell) -> Finished | Failed:
    """Run a cell, in whatever process or machine; an error is a result, too."""
    try:
        stream = open_stream(cell.data, cell.content)
        learner = make_learner(cell, stream)
        if code_digest(cell.use) != cell.code:
            wanted = "the same as where the run was started"
            raise InvalidInput.must("code", "this worker", wanted, "other code")
        trace = simulate(learner, stream, cell.rounds)
        return Finished(
            cell=cell,
            labels=stream.n_labels,
            features=stream.n_features,
            checkpoints=trace.rounds.tolist(),
            counts=trace.counts.tolist(),
            seconds=trace.seconds,
        )
    except Exception as error:  # a learner may be anybody's: whatever it raises belongs to its cell
        return Failed(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
