"""A cell: one run of one learner on one data set with one seed, and the key its result is kept under."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import traceback
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput

__all__ = ["Cell", "Data", "canonical", "code_digest", "failed", "make_learner", "open_stream", "run_cell"]

FORMAT = 1  # of results; a change makes all cells run again


@dataclass(frozen=True, slots=True)
class Data:
    """Data as a spec names it."""

    source: str
    name: str
    label: str | None = None  # the label column of a table
    scale: str = "unit"
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
    code: str
    key: str = ""

    def facts(self) -> dict[str, Any]:
        """What goes into tables and files."""
        facts = asdict(self)
        facts["data"] = self.data.name
        facts["source"], facts["scale"] = self.data.source, self.data.scale
        facts["params"] = canonical(dict(self.params))
        return facts


def canonical(value: Any) -> str:
    """JSON with one spelling for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


@lru_cache(maxsize=8)
def open_stream(data: Data, content: str) -> Any:
    """The stream of ``data``; opened once in each process, again when its content has changed."""
    from superarm.rows import Sparse
    from superarm.streams import Arrays
    from superarm.streams.catalog import identity, open_data

    if identity(data.source) != content:
        raise InvalidInput.must("content", data.source, f"the same on every machine ({content})", "another")
    stream = open_data(data.source, scale=data.scale, label=data.label)
    k = data.first_labels
    if k is None:
        return stream
    if not isinstance(stream, Arrays) or isinstance(stream.rows, Sparse) or not 2 <= k <= stream.n_labels:
        most = f"between 2 and {stream.n_labels}, of dense data that is no generator"
        raise InvalidInput.must("first_labels", data.name, most, k)
    keep = stream.y < k
    names = list(stream.labels[:k]) if stream.labels else None
    return Arrays(stream.rows.values[keep], stream.y[keep], labels=names, scale="none", name=data.name)


def make_learner(cell: Cell, stream: Any) -> Any:
    """The learner of a cell, before its first round."""
    from superarm.learners.registry import make

    common: dict[str, Any] = {"n_features": stream.n_features, "set_size": cell.set_size, "seed": cell.seed}
    common |= {"labels": stream.labels} if stream.labels else {"n_labels": stream.n_labels}
    if cell.gamma is not None:
        common["gamma"] = cell.gamma
    return make(cell.use, **(common | dict(cell.params)))


def key_of(cell: Cell, learner: Any) -> str:
    """The hash of all that decides the result."""
    own = {k: v for k, v in learner.params.items() if k not in ("labels", "n_labels", "n_features", "seed")}
    decisive = {
        "format": FORMAT,
        "data": [cell.content, cell.data.label, cell.data.scale, cell.data.first_labels],
        "learner": type(learner).__name__,
        "params": own,
        "seed": cell.seed,
        "rounds": cell.rounds,
        "code": cell.code,
    }
    return hashlib.sha256(canonical(decisive).encode()).hexdigest()[:32]


@lru_cache(maxsize=64)
def code_digest(use: str) -> str:
    """The hash of the code behind a learner: results of older code are never taken for those of newer."""
    import superarm

    root = Path(superarm.__file__).parent
    files = [file for folder in (root, root / "learners", root / "streams") for file in folder.glob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    own = use.partition(".py:")[0] + ".py" if ".py:" in use else None
    if own is not None:
        digest.update(Path(own).read_bytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------- running


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run a cell, in whatever process or machine; an error becomes part of the outcome."""
    try:
        if code_digest(cell.use) != cell.code:
            raise InvalidInput.must(
                "code", "this worker", "the same as where the run was started", "other code"
            )
        import superarm as sa

        stream = open_stream(cell.data, cell.content)
        trace = sa.simulate(make_learner(cell, stream), stream, cell.rounds)
        return _outcome(cell) | {
            "labels": stream.n_labels,
            "features": stream.n_features,
            "checkpoints": trace.rounds.tolist(),
            "counts": trace.counts.tolist(),
            "seconds": trace.seconds,
        }
    except Exception as error:  # a learner may be anybody's: whatever it raises belongs to its cell
        return failed(cell, f"{type(error).__name__}: {error}", traceback.format_exc())


def failed(cell: Cell, message: str, details: str = "") -> dict[str, Any]:
    """The outcome of a cell that did not finish."""
    return _outcome(cell) | {"error": message, "traceback": details}


def _outcome(cell: Cell) -> dict[str, Any]:
    return {"cell": cell.facts(), "versions": versions(), "machine": machine()}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The packages that can change a result."""
    names = ("superarm", "numpy", "numba", "llvmlite", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Where a result was computed."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(terse=True)}
