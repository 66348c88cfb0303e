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
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from superarm._extras import need
from superarm._files import write_atomically
from superarm.errors import InvalidInput
from superarm.experiments.cells import FORMAT, Cell, canonical_json
from superarm.experiments.results import Failed, Finished
from superarm.experiments.spec import Figure
from superarm.simulation import RATES

if TYPE_CHECKING:
    import polars

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

    def put(self, result: Finished | Failed) -> None:
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
        return sorted(experiments, key=lambda one: (one.order, one.name))

    def experiment(self, name: str) -> Experiment:
        path = self._file("experiments", name)
        if not path.exists():
            known = [one.name for one in self.experiments()]
            raise InvalidInput.must("experiment", str(self.folder), f"one of {known}", name)
        return _read(path, Experiment)

    def finished(self, keys: Iterable[str]) -> list[Finished]:
        """The results of those cells that have one."""
        paths = [self._file("cells", key) for key in keys]
        return [_read(path, Finished) for path in paths if path.exists()]

    def failures(self, keys: Iterable[str]) -> list[Failed]:
        paths = [self._file("failed", key) for key in keys]
        return [_read(path, Failed) for path in paths if path.exists()]

    def frames(self, name: str) -> tuple[polars.DataFrame, polars.DataFrame]:
        """An experiment's runs (a row for each cell) and curves (a row for each checkpoint)."""
        need("logs")
        import polars

        experiment = self.experiment(name)
        by_key = {one.cell.key: one for one in self.finished(experiment.keys)}
        # its own names for learner and data, not those of the first run
        results = [(cell, by_key[cell.key]) for cell in experiment.cells if cell.key in by_key]
        runs = polars.DataFrame([_run(*one) for one in results], infer_schema_length=None)
        if not results:
            return runs, polars.DataFrame()
        return runs.with_columns(polars.col("gamma").cast(polars.Float64)), polars.concat(
            _curve(*one) for one in results
        )

    def write_tables(self) -> None:
        """runs.parquet and curves.parquet, of all experiments."""
        need("logs")
        import polars

        parts: tuple[list[Any], list[Any]] = ([], [])
        for one in self.experiments():
            for part, frame in zip(parts, self.frames(one.name), strict=True):
                if len(frame):
                    part.append(frame.insert_column(0, polars.lit(one.name).alias("experiment")))
        for name, frames in zip(("runs", "curves"), parts, strict=True):
            if frames:
                table = polars.concat(frames, how="diagonal_relaxed")
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


def _curve(cell: Cell, result: Finished) -> polars.DataFrame:
    """The rows of a run's checkpoints."""
    import polars

    columns = zip(*result.counts, strict=True)
    rates = {
        rate: [count / n for count, n in zip(column, result.checkpoints, strict=True)]
        for rate, column in zip(RATES, columns, strict=True)
    }
    return polars.DataFrame({"round": result.checkpoints} | rates).with_columns(
        polars.lit(cell.data.name).alias("data"),
        polars.lit(cell.learner).alias("learner"),
        polars.lit(cell.set_size).alias("set_size"),
        polars.lit(cell.seed).alias("seed"),
        polars.lit(cell.gamma, polars.Float64).alias("gamma"),
    )


def _write(path: Path, content: Finished | Failed | Experiment) -> None:
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
