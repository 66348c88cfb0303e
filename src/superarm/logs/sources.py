"""Where the rows of a log come from: files of several formats, data frames, other people's tools.

A source gives rows as dicts; in place of a row that cannot be read, a sentence that says what it must be.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.tables import mark_of
from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.logs.foreign import from_dsjson, from_obp, is_dsjson

__all__ = ["ENDINGS", "Source", "kind_of", "open_source"]

ENDINGS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
READ_ONLY = {".dsjson": "jsonl"}
AT_ONCE = 4096

Row = dict[str, Any] | str


def kind_of(path: str | PathLike[str], *, reading: bool = False) -> str:
    """The format that a file's ending names."""
    endings = ENDINGS | (READ_ONLY if reading else {})
    kind = endings.get(Path(path).suffix.lower())
    if kind is None:
        raise InvalidInput.must("ending", os.fspath(path), f"one of {', '.join(endings)}", Path(path).suffix)
    return kind


def open_source(source: Any) -> Source:
    """A file, a pandas or Polars frame, or OBP's ``bandit_feedback``."""
    if isinstance(source, str | PathLike):
        path = Path(source)
        kind = kind_of(path, reading=True)
        if not path.is_file():
            got = "a folder" if path.is_dir() else "nothing there"
            raise InvalidInput.must("log", os.fspath(path), "an existing file", got)
        kinds: dict[str, type[Any]] = {"csv": CsvFile, "jsonl": JsonFile, "parquet": ParquetFile}
        return kinds[kind](path)  # type: ignore[no-any-return]
    if isinstance(source, dict):
        return Frame("bandit_feedback", lambda: from_obp(source))
    library = type(source).__module__.partition(".")[0]
    if library == "pandas" and hasattr(source, "columns"):
        return Frame("the pandas frame", lambda: _pandas_rows(source))
    if library == "polars" and hasattr(source, "collect_schema"):
        return Frame("the Polars frame", lambda: _polars_rows(source))
    wanted = "a file, a pandas or Polars frame, or OBP's bandit_feedback"
    raise InvalidInput.must("log", "superarm", wanted, type(source).__name__)


class Source(ABC):
    """Rows that can be read again and again, from the start."""

    name: str  # as messages call it

    @abstractmethod
    def rows(self) -> Generator[Row, None, None]:
        """Every row, in order."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of the content, to know it again."""


class File(Source):
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, os.fspath(path)

    def rows(self) -> Generator[Row, None, None]:
        try:
            yield from self._rows()
        except UnicodeDecodeError as error:
            got = f"the byte 0x{error.object[error.start]:02x}"
            raise InvalidInput.must("content", self.name, "text in UTF-8", got) from error
        except OSError as error:
            raise InvalidInput.must("content", self.name, "readable", error.strerror) from error

    @abstractmethod
    def _rows(self) -> Iterator[Row]: ...

    def fingerprint(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class CsvFile(File):
    def _rows(self) -> Iterator[Row]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            at, first = 0, file.readline()
            while first.isspace():  # empty lines do not count
                at, first = file.tell(), file.readline()
            file.seek(at)
            sheet = csv.reader(file, delimiter=mark_of(first))
            try:
                header = [name.strip() or f"column {i}" for i, name in enumerate(next(sheet, []), 1)]
                twice = [name for name in header if header.count(name) > 1]
                if twice:
                    raise InvalidInput.must("columns", self.name, "of different names", twice[0])
                for cells in sheet:
                    if len(cells) == len(header):
                        pairs = zip(header, cells, strict=True)
                        yield {name: None if cell == "" else cell for name, cell in pairs}
                    elif cells:
                        yield f"{len(header)} cells, as the header has, not {len(cells)}"
            except csv.Error as error:
                raise InvalidInput.must("content", self.name, "a CSV file", str(error)) from error


class JsonFile(File):
    def _rows(self) -> Iterator[Row]:
        with self.path.open(encoding="utf-8-sig") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if not isinstance(row, dict):
                    yield "a JSON object"
                else:
                    yield from_dsjson(row) if is_dsjson(row) else row


class ParquetFile(File):
    def _rows(self) -> Iterator[Row]:
        need("logs")
        import polars as pl

        try:
            yield from _polars_rows(pl.scan_parquet(self.path))
        except pl.exceptions.PolarsError as error:
            raise InvalidInput.must("content", self.name, "a Parquet file", str(error)) from error


class Frame(Source):
    def __init__(self, name: str, rows: Any) -> None:
        self.name, self._rows = name, rows

    def rows(self) -> Generator[Row, None, None]:
        yield from self._rows()

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for row in self.rows():
            digest.update(json.dumps(row, default=_jsonable, sort_keys=True).encode())
        return digest.hexdigest()


def _jsonable(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _polars_rows(frame: Any) -> Iterator[Row]:
    """Some rows of a frame, or of a plan for one, at a time."""
    parts = frame.collect_batches(chunk_size=AT_ONCE, maintain_order=True) if _is_plan(frame) else None
    for part in frame.iter_slices(AT_ONCE) if parts is None else parts:
        yield from part.iter_rows(named=True)


def _is_plan(frame: Any) -> bool:
    return hasattr(frame, "collect_batches")


def _pandas_rows(frame: Any) -> Iterator[Row]:
    for start in range(0, len(frame), AT_ONCE):
        part = frame.iloc[start : start + AT_ONCE].astype(object)
        part.columns = [str(name) for name in part.columns]
        yield from part.where(part.notna(), None).to_dict("records")
