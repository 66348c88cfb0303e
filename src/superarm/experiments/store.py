"""Results on disk: a file for each finished cell, written whole or not at all.

DIR/cells/KEY.json          a finished cell
DIR/failed/KEY.json         a cell that failed, with its error; it runs again next time
DIR/experiments/NAME.json   which cells an experiment is made of, its spec and its figures
DIR/runs.parquet, curves.parquet    everything, as tables (made from the files above)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.storage import write_atomically

if TYPE_CHECKING:
    import polars

__all__ = ["Store"]

RATES = ("error_rate", "miss_rate", "shown_miss_rate")


class Store:
    """A directory of results."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def has(self, key: str) -> bool:
        return (self.folder / "cells" / f"{key}.json").exists()

    def put(self, outcome: dict[str, Any]) -> None:
        """Keep an outcome; a finished cell replaces its earlier failure."""
        key = outcome["cell"]["key"]
        failures = self.folder / "failed" / f"{key}.json"
        if "error" in outcome:
            _write(failures, outcome)
        else:
            _write(self.folder / "cells" / f"{key}.json", outcome)
            failures.unlink(missing_ok=True)

    def put_experiment(self, name: str, content: dict[str, Any]) -> None:
        _write(self.folder / "experiments" / f"{name}.json", content)

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments, in the order of their first run."""
        found = [_read(path) for path in (self.folder / "experiments").glob("*.json")]
        return sorted(found, key=lambda one: (one["order"], one["name"]))

    def experiment(self, name: str) -> dict[str, Any]:
        path = self.folder / "experiments" / f"{name}.json"
        if not path.exists():
            known = [one["name"] for one in self.experiments()]
            raise InvalidInput.must("experiment", str(self.folder), f"one of {known}", name)
        return _read(path)

    def outcomes(self, keys: list[str]) -> list[dict[str, Any]]:
        """The finished ones among these cells."""
        paths = [self.folder / "cells" / f"{key}.json" for key in dict.fromkeys(keys)]
        return [_read(path) for path in paths if path.exists()]

    def failures(self, keys: list[str]) -> list[dict[str, Any]]:
        paths = [self.folder / "failed" / f"{key}.json" for key in dict.fromkeys(keys)]
        return [_read(path) for path in paths if path.exists()]

    def frames(self, name: str) -> tuple[polars.DataFrame, polars.DataFrame]:
        """An experiment's runs (a row for each cell) and curves (a row for each checkpoint)."""
        import polars

        experiment = self.experiment(name)
        by_key = {one["cell"]["key"]: one for one in self.outcomes([c["key"] for c in experiment["cells"]])}
        runs, curves = [], []
        for cell in experiment["cells"]:  # its own names for learner and data, not those of the first run
            outcome = by_key.get(cell["key"])
            if outcome is None:
                continue
            total, counts = outcome["checkpoints"][-1], outcome["counts"]
            row = {k: cell[k] for k in ("data", "learner", "set_size", "gamma", "seed", "rounds", "key")}
            facts = {"k": outcome["labels"], "d": outcome["features"], "seconds": outcome["seconds"]}
            facts |= {rate: counts[-1][i] / total for i, rate in enumerate(RATES)}
            facts |= {"use": cell["use"], "params": cell["params"], "source": cell["source"]}
            facts |= {f"version_{k}": v for k, v in outcome["versions"].items()} | outcome["machine"]
            runs.append(row | facts)
            curves.append(
                polars.DataFrame({"round": outcome["checkpoints"]}).with_columns(
                    *(polars.lit(row[k]).alias(k) for k in ("data", "learner", "set_size", "seed")),
                    polars.lit(row["gamma"], polars.Float64).alias("gamma"),
                    *(
                        polars.Series(
                            rate, [c[i] / r for c, r in zip(counts, outcome["checkpoints"], strict=True)]
                        )
                        for i, rate in enumerate(RATES)
                    ),
                )
            )
        table = polars.DataFrame(runs, infer_schema_length=None)
        if runs:
            table = table.with_columns(polars.col("gamma").cast(polars.Float64))
        return table, polars.concat(curves) if curves else polars.DataFrame()

    def write_tables(self) -> None:
        """runs.parquet and curves.parquet, of all experiments."""
        import polars

        parts: tuple[list[Any], list[Any]] = ([], [])
        for one in self.experiments():
            for part, frame in zip(parts, self.frames(one["name"]), strict=True):
                if len(frame):
                    part.append(frame.insert_column(0, polars.lit(one["name"]).alias("experiment")))
        for name, frames in zip(("runs", "curves"), parts, strict=True):
            if frames:
                table = polars.concat(frames, how="diagonal_relaxed")
                write_atomically(self.folder / f"{name}.parquet", table.write_parquet)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(json.dumps(content).encode()))


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise InvalidInput.must("content", str(path), "JSON, as superarm wrote it", str(error)) from error
    return content
