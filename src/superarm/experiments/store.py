"""Results on disk: a file for each finished cell, written whole or not at all.

DIR/cells/KEY.json          a finished cell
DIR/failed/KEY.json         a cell that failed, with its error; it runs again next time
DIR/experiments/NAME.json   which cells an experiment is made of, its spec and its figures
DIR/runs.parquet, curves.parquet    everything, as tables (made from the files above)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from superarm._files import write_atomically
from superarm.errors import InvalidInput
from superarm.experiments.cells import FORMAT, Cell, Failed, Finished, Result, canonical_json
from superarm.experiments.spec import Figure
from superarm.simulation import RATES

Stored = TypeVar("Stored", "Experiment", Finished, Failed)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A spec as it was run: everything that a report needs beside the results."""

    name: str
    title: str
    order: int
    spec: str  # the file itself
    figures: tuple[Figure, ...]
    reference: str | None
    learners: tuple[str, ...]
    data: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def keys(self) -> list[str]:
        """The keys of its cells, each once."""
        return list(dict.fromkeys(cell.key for cell in self.cells))


class Store:
    """A directory of results."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def has(self, key: str) -> bool:
        return self._file("cells", key).exists()

    def put(self, result: Result) -> None:
        """Keep a result; a finished cell replaces its earlier failure."""
        failure = self._file("failed", result.cell.key)
        if isinstance(result, Failed):
            _write(failure, result)
        else:
            _write(self._file("cells", result.cell.key), result)
            failure.unlink(missing_ok=True)

    def put_experiment(self, experiment: Experiment) -> None:
        _write(self._file("experiments", experiment.name), experiment)

    def experiments(self) -> list[Experiment]:
        """All experiments, in their order."""
        experiments = [_read(path, Experiment) for path in (self.folder / "experiments").glob("*.json")]
        return sorted(experiments, key=lambda experiment: (experiment.order, experiment.name))

    def experiment(self, name: str) -> Experiment:
        path = self._file("experiments", name)
        if not path.exists():
            names = [experiment.name for experiment in self.experiments()]
            raise InvalidInput.must("experiment", str(self.folder), f"one of {names}", name)
        return _read(path, Experiment)

    def finished(self, keys: Iterable[str]) -> list[Finished]:
        """The results of those cells that have one."""
        paths = [self._file("cells", key) for key in keys]
        return [_read(path, Finished) for path in paths if path.exists()]

    def failures(self, keys: Iterable[str]) -> list[Failed]:
        paths = [self._file("failed", key) for key in keys]
        return [_read(path, Failed) for path in paths if path.exists()]

    def frames(self, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """An experiment's runs (a row for each cell) and curves (a row for each checkpoint)."""
        experiment = self.experiment(name)
        by_key = {result.cell.key: result for result in self.finished(experiment.keys)}
        # its own names for learner and data, not those of the first run
        results = [(cell, by_key[cell.key]) for cell in experiment.cells if cell.key in by_key]
        runs = pl.DataFrame([_run(*pair) for pair in results], infer_schema_length=None)
        if not results:
            return runs, pl.DataFrame()
        runs = runs.with_columns(pl.col("gamma").cast(pl.Float64))
        return runs, pl.concat(_curve(*pair) for pair in results)

    def write_tables(self) -> None:
        """runs.parquet and curves.parquet, of all experiments."""
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


def _run(cell: Cell, result: Finished) -> dict[str, Any]:
    """The row of a run."""
    rounds, counts = result.checkpoints[-1], result.counts[-1]
    return {
        "data": cell.data.name,
        "learner": cell.learner,
        "set_size": cell.set_size,
        "gamma": cell.gamma,
        "seed": cell.seed,
        "rounds": cell.rounds,
        "key": cell.key,
        "k": result.labels,
        "d": result.features,
        "seconds": result.seconds,
        **{rate: count / rounds for rate, count in zip(RATES, counts, strict=True)},
        "use": cell.use,
        "params": canonical_json(dict(cell.params)),
        "source": cell.data.source,
        **{f"version_{name}": number for name, number in result.versions.items()},
        **asdict(result.machine),
    }


def _curve(cell: Cell, result: Finished) -> pl.DataFrame:
    """The rows of a run's checkpoints."""
    columns = zip(*result.counts, strict=True)
    rates = {
        rate: [count / n for count, n in zip(column, result.checkpoints, strict=True)]
        for rate, column in zip(RATES, columns, strict=True)
    }
    return pl.DataFrame({"round": result.checkpoints} | rates).with_columns(
        data=pl.lit(cell.data.name),
        learner=pl.lit(cell.learner),
        set_size=pl.lit(cell.set_size),
        seed=pl.lit(cell.seed),
        gamma=pl.lit(cell.gamma, pl.Float64),
    )


def _write(path: Path, content: Result | Experiment) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.encode({"format": FORMAT, **asdict(content)})
    write_atomically(path, lambda file: file.write(text))


def _read(path: Path, kind: type[Stored]) -> Stored:
    """What a file holds; its format is looked at before anything else."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if content.get("format") == FORMAT:
            return msgspec.convert(content, kind)
    except msgspec.MsgspecError as error:
        raise InvalidInput.must("content", str(path), "JSON, as superarm wrote it", str(error)) from error
    wanted = f"{FORMAT}: run again, into another directory"
    raise InvalidInput.must("format", str(path), wanted, content.get("format"))
