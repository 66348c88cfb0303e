"""One run of one learner on one data set with one seed: the key its result is kept under, and that result.

The key has one hash of the code behind the run: results of older code are never taken for those of newer.
"""

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

from superarm.errors import InvalidInput, Unquoted
from superarm.experiments.code_digest import code_digest
from superarm.learners import Learner
from superarm.learners.registry import make
from superarm.native import cpu_level
from superarm.simulation import Trace, simulate
from superarm.streams import Arrays, Stream, open_data, size_of
from superarm.streams.catalog import content_digest

FORMAT = 3  # of results; a change makes everything run again


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an experiment. Every field but the names of learner and data decides its result."""

    data: str  # the name of the data in figures
    source: str  # a data set's name, or a file
    label: str | None  # the label column of a table
    first_labels: int | None  # only the rows of the first so many labels
    data_digest: str  # changes whenever the content of the data does
    learner: str  # its name in figures
    learner_spec: str  # as the registry takes it: a name or file.py:Class
    params: tuple[tuple[str, Any], ...]
    set_size: int | None  # None: as the learner has it by itself, until there is a key
    gamma: float | None
    seed: int
    rounds: int
    code: str = ""  # the hash of the code behind it
    key: str = ""

    def with_key(self, stream: Stream) -> Run:
        """Return the run with its code and key; making its learner checks the parameters."""
        learner = self.make_learner(stream)
        run = replace(self, set_size=learner.set_size, code=self.code_digest())
        decisive = {
            "format": FORMAT,
            "data": [self.data_digest, self.label, self.first_labels],
            "learner": type(learner).__name__,
            "params": {name: value for name, value in learner.params.items() if name != "seed"},
            "seed": self.seed,
            "rounds": self.rounds,
            "code": run.code,
        }
        return replace(run, key=hashlib.sha256(canonical_json(decisive).encode()).hexdigest()[:32])

    def code_digest(self) -> str:
        """Return the hash of the code behind the run, as it is now."""
        return code_digest(self.learner_spec, dict(self.params).get("explore"))

    def open_stream(self) -> Stream:
        """Return the stream of the run's data."""
        return open_stream(self.source, self.label, self.first_labels, self.data_digest)

    def make_learner(self, stream: Stream) -> Learner:
        """Return the run's learner, before its first round."""
        axes = {"set_size": self.set_size, "gamma": self.gamma, "seed": self.seed}
        common = size_of(stream) | {name: value for name, value in axes.items() if value is not None}
        return make(self.learner_spec, **(common | dict(self.params)))


def canonical_json(value: Any) -> str:
    """Return JSON with one spelling for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


@lru_cache(maxsize=8)
def open_stream(source: str, label: str | None, first_labels: int | None, data_digest: str) -> Stream:
    """Return the stream of some data; it is opened once in each process, and again when its content has changed."""
    if content_digest(source) != data_digest:
        raise InvalidInput.must(
            "content", source, f"the same on every machine ({data_digest})", Unquoted("another")
        )
    stream = open_data(source, label=label)
    k = first_labels
    if k is None:
        return stream
    if not isinstance(stream, Arrays) or stream.rows.starts is not None or not 2 <= k <= stream.n_labels:
        wanted = f"between 2 and {stream.n_labels}, of dense data that is no generator"
        raise InvalidInput.must("first_labels", source, wanted, k)
    keep = stream.y < k
    names = list(stream.labels[:k]) if stream.labels else None
    return Arrays(stream.rows.dense[keep], stream.y[keep], labels=names, name=stream.name)


# ---------------------------------------------------------------- results


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a result was computed on."""

    cpu: str
    cores: int | None
    system: str


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """Return the machine of this process."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return Machine(cpu, os.cpu_count(), platform.platform(terse=True))


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of the packages that can change a result."""
    names = ("superarm", "numpy", "scipy", "scikit-learn")
    packages = {name: version(name) for name in names if find_spec(name.replace("scikit-learn", "sklearn"))}
    return {"python": platform.python_version(), "cpu level": cpu_level()} | packages


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run that finished."""

    run: Run
    trace: Trace
    n_labels: int
    n_features: int | tuple[int, int]
    versions: dict[str, str] = field(default_factory=versions)
    machine: Machine = field(default_factory=this_machine)


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The error of a run that did not finish."""

    run: Run
    error: str
    traceback: str = ""
    versions: dict[str, str] = field(default_factory=versions)
    machine: Machine = field(default_factory=this_machine)


def execute_run(run: Run) -> RunResult | RunFailure:
    """Execute one run, in whatever process or machine; an error is returned as a RunFailure."""
    try:
        stream = run.open_stream()
        learner = run.make_learner(stream)
        if run.code_digest() != run.code:
            wanted = "the same as where the run was started"
            raise InvalidInput.must("code", "this worker", wanted, Unquoted("other code"))
        trace = replace(simulate(learner, stream, run.rounds), by_label=(), by_group=())
        return RunResult(run, trace, stream.n_labels, stream.n_features)
    except Exception as error:  # users write learners: whatever one raises belongs to its run
        return RunFailure(run, f"{type(error).__name__}: {error}", traceback.format_exc())
