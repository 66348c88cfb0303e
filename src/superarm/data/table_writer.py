"""Rows with names out to a file: Parquet, JSON lines, CSV or TSV, by the endings by which tables.py reads it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from superarm._extras import require_extra
from superarm._files import atomic_path, check_place, sync
from superarm._types import Cell, Frame
from superarm.data.tables import TABLES
from superarm.errors import InvalidInput

ROW_GROUP_SIZE = 8192

NamedRows = list[dict[str, Cell]]
WriteRows = Callable[[NamedRows], None]


def check_table_path(path: str | PathLike[str], owner: str) -> None:
    """Refuse a file to which ``owner`` cannot write a table."""
    ending = Path(path).suffix.lower()
    if ending not in TABLES:
        raise InvalidInput.must("ending", fspath(path), f"one of {', '.join(TABLES)}", ending)
    check_place(path, "path", owner)
    if ending == ".parquet":
        require_extra("logs")


@contextmanager
def table_writer(
    path: Path, columns: list[str], to_frame: Callable[[NamedRows], Frame] | None = None
) -> Iterator[WriteRows]:
    """Yield a function that writes a batch of rows; the file appears under its name at the end, when it is whole.

    Args:
        path: the file.
        columns: of every row, in their order.
        to_frame: makes a Polars frame of some rows, for Parquet; left out, each column has the type of its values.
    """
    with atomic_path(path) as part:
        if path.suffix.lower() == ".parquet":
            with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
                yield _parquet_writer(Path(folder), to_frame)
                _join_batches(Path(folder), part)
        else:
            # a lone surrogate, which UTF-8 does not have, becomes \ud800 as in JSON
            with part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                yield _text_writer(file, path.suffix.lower(), columns)
        sync(part)


def _text_writer(file: Any, ending: str, columns: list[str]) -> WriteRows:
    if ending in (".jsonl", ".ndjson"):
        return lambda rows: file.writelines(f"{_to_json(row)}\n" for row in rows)
    sheet = csv.writer(file, delimiter="\t" if ending == ".tsv" else ",", lineterminator="\n")
    sheet.writerow(columns)
    return lambda rows: sheet.writerows([_cell(row[name]) for name in columns] for row in rows)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cell(value: Cell) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _to_json(value) if isinstance(value, list | dict) else value  # of None csv makes an empty cell


def _parquet_writer(folder: Path, to_frame: Callable[[NamedRows], Frame] | None) -> WriteRows:
    """Return a function that writes a file for each batch: a Parquet file ends with its index, and cannot grow."""
    import polars as pl

    def write(rows: NamedRows) -> None:
        frame = pl.DataFrame(rows, infer_schema_length=None) if to_frame is None else to_frame(rows)
        frame.write_parquet(folder / f"{len(list(folder.iterdir())):012}.parquet")

    return write


def _join_batches(folder: Path, target: Path) -> None:
    import polars as pl

    # of labels seen as numbers in one batch and as names in another, names hold both
    frames = [pl.scan_parquet(batch) for batch in sorted(folder.iterdir())]
    pl.concat(frames, how="vertical_relaxed").sink_parquet(target, row_group_size=ROW_GROUP_SIZE)
