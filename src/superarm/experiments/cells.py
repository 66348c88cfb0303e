"""A cell: one run of one learner on one data set with one seed, the key its result is kept under, and that result."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import traceback
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput
from superarm.experiments.code_digest import code_digest
from superarm.learners import Learner
from superarm.learners.registry import make
from superarm.native import cpu_level
from superarm.simulation import simulate
from superarm.streams import Arrays, Stream, open_data, size_of
from superarm.streams.catalog import identity

FORMAT = 2  # of results; a change makes all cells run again


@dataclass(frozen=True, slots=True)
class Data:
    """Data as a spec names it."""

    source: str
    name: str
    label: str | None = None  # the label column of a table
    first_labels: int | None = None  # only the rows of the first so many labels


@dataclass(frozen=True, slots=True)
class Cell:
    """One run. Everything in it but the names of learner and data decides the result."""

    data: Data
    content: str  # the identity of the data
    learner: str  # as figures call it
    use: str  # as the registry calls it: a name or file.py:Class
    params: tuple[tuple[str, Any], ...]
    set_size: int
    gamma: float | None
    seed: int
    rounds: int
    code: str = ""  # the hash of the code behind it
    key: str = ""

    def with_key(self, stream: Stream) -> Cell:
        """The cell with its code and key; making its learner checks the parameters."""
        learner = make_learner(self, stream)
        cell = replace(self, code=code_digest(self.use))
        return replace(cell, key=_key(cell, learner))


def canonical_json(value: Any) -> str:
    """JSON with one spelling for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


@lru_cache(maxsize=8)
def open_stream(data: Data, content: str) -> Stream:
    """The stream of ``data``; opened once in each process, again when its content has changed."""
    if identity(data.source) != content:
        raise InvalidInput.must("content", data.source, f"the same on every machine ({content})", "another")
    stream = open_data(data.source, label=data.label)
    k = data.first_labels
    if k is None:
        return stream
    if not isinstance(stream, Arrays) or stream.rows.starts is not None or not 2 <= k <= stream.n_labels:
        wanted = f"between 2 and {stream.n_labels}, of dense data that is no generator"
        raise InvalidInput.must("first_labels", data.name, wanted, k)
    keep = stream.y < k
    names = list(stream.labels[:k]) if stream.labels else None
    return Arrays(stream.rows.dense[keep], stream.y[keep], labels=names, name=data.name)


def make_learner(cell: Cell, stream: Stream) -> Learner:
    """The learner of a cell, before its first round."""
    common = size_of(stream) | {"set_size": cell.set_size, "seed": cell.seed}
    if cell.gamma is not None:
        common["gamma"] = cell.gamma
    return make(cell.use, **(common | dict(cell.params)))


def _key(cell: Cell, learner: Learner) -> str:
    """The hash of all that decides the result."""
    parameters = {
        k: v for k, v in learner.params.items() if k not in ("labels", "n_labels", "n_features", "seed")
    }
    decisive = {
        "format": FORMAT,
        "data": [cell.content, cell.data.label, cell.data.first_labels],
        "learner": type(learner).__name__,
        "params": parameters,
        "seed": cell.seed,
        "rounds": cell.rounds,
        "code": cell.code,
    }
    return hashlib.sha256(canonical_json(decisive).encode()).hexdigest()[:32]


# ---------------------------------------------------------------- results


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


Result = Finished | Failed


def run_cell(cell: Cell) -> Result:
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
