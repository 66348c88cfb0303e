"""Results on disk: a file for each finished run, written whole or not at all.

DIR/runs/KEY.json           a finished run
DIR/failed/KEY.json         a run that failed, with its error; it is executed again next time
DIR/experiments/NAME.json   which runs an experiment is made of, and its spec
DIR/runs.parquet, curves.parquet    everything, as tables (made from the files above)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from superarm._files import write_atomically
from superarm.errors import InvalidInput
from superarm.experiments.runs import FORMAT, Run, RunFailure, RunResult, canonical_json
from superarm.experiments.spec import SpecFile
from superarm.experiments.toml import TomlFile
from superarm.simulation import Trace

Stored = TypeVar("Stored", "Experiment", RunResult, RunFailure)


@dataclass(frozen=True)
class Experiment:
    """A spec as it was run: everything that a report needs beside the results."""

    name: str
    spec: str  # the text of its file
    runs: tuple[Run, ...]

    @cached_property
    def spec_file(self) -> SpecFile:
        """The keys of the spec."""
        return TomlFile(self.name, self.spec).read(SpecFile)

    @property
    def title(self) -> str:
        return self.spec_file.title or self.name

    @property
    def learners(self) -> list[str]:
        """The names of its learners, in the order of the spec."""
        return list(dict.fromkeys(run.learner for run in self.runs))

    @property
    def keys(self) -> list[str]:
        """The keys of its runs, each once."""
        return list(dict.fromkeys(run.key for run in self.runs))


class Store:
    """A directory of results."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def has(self, key: str) -> bool:
        return self._file("runs", key).exists()

    def put(self, result: RunResult | RunFailure) -> None:
        """Keep a result; that of a finished run replaces its earlier failure."""
        failure = self._file("failed", result.run.key)
        if isinstance(result, RunFailure):
            _write(failure, result)
        else:
            _write(self._file("runs", result.run.key), result)
            failure.unlink(missing_ok=True)

    def put_experiment(self, experiment: Experiment) -> None:
        _write(self._file("experiments", experiment.name), experiment)

    def experiments(self) -> list[Experiment]:
        """Return all experiments, in the order of their specs."""
        experiments = [_read(path, Experiment) for path in (self.folder / "experiments").glob("*.json")]
        return sorted(experiments, key=lambda experiment: (experiment.spec_file.order, experiment.name))

    def experiment(self, name: str) -> Experiment:
        path = self._file("experiments", name)
        if not path.exists():
            names = [experiment.name for experiment in self.experiments()]
            raise InvalidInput.must("experiment", str(self.folder), f"one of {names}", name)
        return _read(path, Experiment)

    def failures(self, keys: Iterable[str]) -> list[RunFailure]:
        paths = [self._file("failed", key) for key in keys]
        return [_read(path, RunFailure) for path in paths if path.exists()]

    def frames(self, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return an experiment's runs (a row for each) and curves (a row for each checkpoint)."""
        experiment = self.experiment(name)
        by_key = {key: _read(self._file("runs", key), RunResult) for key in experiment.keys if self.has(key)}
        # results of equal runs are shared: the names of learner and data are those of this experiment
        results = [_renamed(by_key[run.key], run) for run in experiment.runs if run.key in by_key]
        if not results:
            return pl.DataFrame(), pl.DataFrame()
        runs = pl.DataFrame([_row(result) for result in results], infer_schema_length=None)
        curves = pl.concat(curve_frame(result.trace, result.run.gamma) for result in results)
        return runs.with_columns(pl.col("gamma").cast(pl.Float64)), curves

    def write_tables(self) -> None:
        """Write runs.parquet and curves.parquet, of all experiments."""
        frames: dict[str, list[pl.DataFrame]] = {"runs": [], "curves": []}
        for experiment in self.experiments():
            for name, frame in zip(frames, self.frames(experiment.name), strict=True):
                if len(frame):
                    frames[name].append(frame.insert_column(0, pl.lit(experiment.name).alias("experiment")))
        for name, parts in frames.items():
            if parts:
                table = pl.concat(parts, how="diagonal_relaxed")
                write_atomically(self.folder / f"{name}.parquet", table.write_parquet)

    def _file(self, folder: str, name: str) -> Path:
        return self.folder / folder / f"{name}.json"


def _renamed(result: RunResult, run: Run) -> RunResult:
    return replace(result, run=run, trace=replace(result.trace, learner=run.learner, data=run.data))


def _row(result: RunResult) -> dict[str, Any]:
    """Return a run as one row of a table."""
    run = result.run
    return {
        **result.trace.to_row(),
        "gamma": run.gamma,
        "key": run.key,
        "k": result.n_labels,
        "d": int(np.sum(result.n_features)),  # of dense and of sparse ones together
        "learner_spec": run.learner_spec,
        "params": canonical_json(dict(run.params)),
        "source": run.source,
        **{f"version_{name}": number for name, number in result.versions.items()},
        **asdict(result.machine),
    }


def curve_frame(trace: Trace, gamma: float | None = None) -> pl.DataFrame:
    """Return the checkpoints of a run as rows, with the columns that identify the run."""
    return trace.to_frame().with_columns(
        data=pl.lit(trace.data),
        learner=pl.lit(trace.learner),
        set_size=pl.lit(trace.set_size),
        seed=pl.lit(trace.seed),
        gamma=pl.lit(gamma, pl.Float64),
    )


def best_gamma_frame(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the gamma of least mean error, with that error, for each data set, learner and set size."""
    group = ["data", "learner", "set_size"]
    means = runs.drop_nulls("gamma").group_by(*group, "gamma", maintain_order=True).agg(pl.mean("error_rate"))
    return means.sort("error_rate", "gamma").unique(group, keep="first", maintain_order=True)


def _write(path: Path, content: RunResult | RunFailure | Experiment) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.encode({"format": FORMAT, **asdict(content)}, enc_hook=np.ndarray.tolist)
    write_atomically(path, lambda file: file.write(text))


def _read(path: Path, kind: type[Stored]) -> Stored:
    """Return what a file holds; its format is looked at before anything else."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if content.get("format") == FORMAT:
            return msgspec.convert(content, kind, dec_hook=lambda _, numbers: np.array(numbers))
    except msgspec.MsgspecError as error:
        wanted = "JSON, as superarm wrote it (delete the file, and run again)"
        raise InvalidInput.must("content", str(path), wanted, error) from error
    wanted = f"{FORMAT}: run again, into another directory"
    raise InvalidInput.must("format", str(path), wanted, content.get("format"))
