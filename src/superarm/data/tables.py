"""Tables: users' files and frames as rows with names, and matrices. All packages read them here.

A `Table` gives rows as dicts, again and again, one at a time: files may be larger than memory. In place of a row
that cannot be read there is a sentence about what it must be. Cells of a CSV are texts; columns.py parses them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm._extras import require_extra
from superarm._files import READ_ERRORS, file_digest
from superarm._types import Cell, Frame
from superarm.data.cells import is_named_row
from superarm.errors import Description, InvalidInput, at_row
from superarm.parameters import existing_file

CHUNK = 4096

TableRow = dict[str, Cell] | str  # a sentence in place of a row that cannot be read


# ---------------------------------------------------------------- files


def open_table(
    source: str | PathLike[str] | Frame | list[Any],
    *,
    vectors: str | PathLike[str] | None = None,
) -> Table:
    """Return a file, or a pandas, Polars or Arrow table, as a `Table`.

    Args:
        source: the file, the table, or a list of dicts.
        vectors: an .npy beside it, whose rows become the column ``vectors``.
    """
    if vectors is not None:
        return WithVectors(open_table(source), vectors)
    if not isinstance(source, str | PathLike):
        return _frame_table(source)
    path = Path(source)
    if path.suffix.lower() not in READERS:
        raise InvalidInput.must("ending", str(path), f"one of {', '.join(READERS)}", path.suffix)
    return READERS[path.suffix.lower()](existing_file(path))


class Table(ABC):
    """Rows that can be read again and again, from the start."""

    name: str  # as messages call it

    @abstractmethod
    def rows(self) -> Generator[TableRow, None, None]:
        """Return every row, in order."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the content."""

    def valid_rows(self) -> Iterator[dict[str, Cell]]:
        """Yield every row; one that cannot be read is refused."""
        for number, row in enumerate(self.rows()):
            if isinstance(row, str):
                raise InvalidInput(f"{at_row(self.name, number)} must be {row}")
            yield row

    def read(self) -> dict[str, list[Cell]]:
        """Return the whole table, column by column."""
        content, n = columns_of(list(self.valid_rows()))
        if not n:
            raise InvalidInput(f"{self.name} has no rows")
        return content


class FileTable(Table):
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, os.fspath(path)

    def rows(self) -> Generator[TableRow, None, None]:
        try:
            yield from self._rows()
        except UnicodeDecodeError as error:
            byte, byte_order_marks = error.object[error.start], (b"\xff\xfe", b"\xfe\xff")
            encoding = "UTF-16" if error.object[:2] in byte_order_marks else "WINDOWS-1252"
            raise InvalidInput(
                f"{self.name} must be text in UTF-8, got the byte 0x{byte:02x}: save it as UTF-8 "
                f"(in Excel: CSV UTF-8), or convert it with iconv -f {encoding} -t UTF-8"
            ) from error
        except OSError as error:
            raise InvalidInput.must("content", self.name, "readable", error) from error

    @abstractmethod
    def _rows(self) -> Iterator[TableRow]: ...

    def fingerprint(self) -> str:
        return file_digest(self.path)


def delimiter_of(header: str) -> str:
    """Return the mark between the columns of a CSV file: the one that splits its header into most of them.

    >>> delimiter_of("age;city;price, in euro")
    ';'
    """
    return max(",;\t", key=header.count)


class CsvTable(FileTable):
    has_told_empty_rows = False

    def _rows(self) -> Iterator[TableRow]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            start, header_line = 0, file.readline()
            while header_line.isspace():  # empty lines do not count
                start, header_line = file.tell(), file.readline()
            file.seek(start)
            csv.field_size_limit(2**31 - 1)  # texts of a megabyte
            sheet = csv.reader(file, delimiter=delimiter_of(header_line))
            try:
                header = [name.strip() or f"column {i}" for i, name in enumerate(next(sheet, []), 1)]
                repeated = [name for name in header if header.count(name) > 1]
                if repeated:
                    raise InvalidInput.must("columns", self.name, "of different names", repeated[0])
                n_empty = 0  # rows without a value: at the end they are skipped
                for cells in sheet:
                    if len(cells) > 1 and not any(map(str.strip, cells)):
                        n_empty += 1
                        continue
                    for _ in range(n_empty if cells else 0):
                        yield dict.fromkeys(header)
                    n_empty = 0 if cells else n_empty
                    if len(cells) == len(header):
                        pairs = zip(header, cells, strict=True)
                        yield {name: None if cell == "" else cell for name, cell in pairs}
                    elif cells:
                        yield f"{len(header)} cells, as the header has, not {len(cells)}"
                if n_empty and not self.has_told_empty_rows:
                    self.has_told_empty_rows = True
                    warnings.warn(f"{self.name}: {n_empty:,} empty rows at its end are skipped", stacklevel=2)
            except csv.Error as error:
                raise InvalidInput.must("content", self.name, "a CSV file", error) from error


class JsonTable(FileTable):
    def _rows(self) -> Iterator[TableRow]:
        with self.path.open(encoding="utf-8-sig") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                yield row if isinstance(row, dict) else "a JSON object"


class ParquetTable(FileTable):
    def _rows(self) -> Iterator[TableRow]:
        require_extra("logs")
        import polars as pl

        try:
            yield from _polars_rows(pl.scan_parquet(self.path))
        except pl.exceptions.PolarsError as error:
            raise InvalidInput.must("content", self.name, "a Parquet file", error) from error


READERS: dict[str, type[FileTable]] = {
    ".parquet": ParquetTable,
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".jsonl": JsonTable,
    ".ndjson": JsonTable,
}
TABLES = tuple(READERS)


# ---------------------------------------------------------------- frames


class FrameTable(Table):
    """A table in memory."""

    def __init__(self, name: str, rows: Callable[[], Iterable[TableRow]]) -> None:
        self.name, self._rows = name, rows

    def rows(self) -> Generator[TableRow, None, None]:
        yield from self._rows()

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for row in self.rows():
            digest.update(json.dumps(row, default=_jsonable, sort_keys=True).encode())
        return digest.hexdigest()


def _frame_table(frame: Any) -> FrameTable:
    """Return a pandas, Polars or Arrow table, a Polars LazyFrame, or a list of dicts as a `Table`."""
    library = type(frame).__module__.partition(".")[0]
    names = {"pandas": "the pandas frame", "polars": "the Polars frame", "pyarrow": "the Arrow table"}
    if is_named_rows(frame) or (library == "polars" and hasattr(frame, "collect_schema")):
        return FrameTable(names.get(library, "the table"), lambda: records(frame))
    wanted = "a file, a pandas, Polars or Arrow table, or a list of dicts"
    raise InvalidInput.must("table", "superarm", wanted, Description(type(frame).__name__))


class WithVectors(Table):
    """A table with a matrix beside it, whose rows become a column.

    Args:
        table: the table.
        path: an .npy, or where ``column`` is "x" also an .npz, with a row for each of its rows.
        column: its name; the rows of a sparse matrix become x_indices and x_values.
    """

    def __init__(self, table: Table, path: str | PathLike[str], column: str = "vectors") -> None:
        self.table, self.path, self.name, self.column = table, Path(path), table.name, column
        self.matrix = read_matrix(path)
        self.sparse = hasattr(self.matrix, "tocsr")
        if self.sparse and column != "x":
            raise InvalidInput.must("vectors", str(path), "a dense matrix", Description("a sparse one"))

    def rows(self) -> Generator[TableRow, None, None]:
        count, n = 0, self.matrix.shape[0]
        for count, row in enumerate(self.table.rows(), 1):
            if count > n:
                break
            yield row if isinstance(row, str) else {**row, **self._cells(count - 1)}
        if count != n:
            wanted = f"a matrix with as many rows as {self.name}"
            raise InvalidInput.must(self.column, str(self.path), wanted, Description(f"{n} rows"))

    def _cells(self, i: int) -> dict[str, Cell]:
        if not self.sparse:
            return {self.column: np.asarray(self.matrix[i], np.float32)}
        one = self.matrix[[i]]
        return {"x": None, "x_indices": one.indices, "x_values": one.data, "x_width": self.matrix.shape[1]}

    def fingerprint(self) -> str:
        both = f"{self.table.fingerprint()} {file_digest(self.path)}"
        return hashlib.sha256(both.encode()).hexdigest()


def _jsonable(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def is_frame(X: object) -> bool:
    """Return whether X is a table of pandas, Polars or Arrow (or something that looks like one)."""
    kind = type(X)  # of a Polars LazyFrame, asking for its columns would compute them
    if hasattr(kind, "column_names") and hasattr(kind, "to_pylist"):
        return True
    frame = hasattr(kind, "columns") and hasattr(kind, "__getitem__") and hasattr(kind, "dtypes")
    return frame and not hasattr(kind, "collect_batches")


def is_named_rows(X: object) -> bool:
    """Return whether X is a table, or a list of dicts."""
    if is_frame(X):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(is_named_row, X))


def named_row(x: Any) -> Any:
    """Return a row with names: a dict, a Series, or the only row of a table; ``None`` for any other."""
    if is_named_row(x):
        return x
    return next(records(x)) if is_frame(x) and len(x) == 1 else None


def records(X: Any) -> Iterator[dict[str, Cell]]:
    """Yield the rows of a table or of a list of dicts, by name; missing values of pandas are ``None``."""
    if isinstance(X, list | tuple):
        for x in X:
            yield {str(name): value for name, value in x.items()}  # of a dict or a Series
    elif hasattr(X, "to_pylist"):
        yield from X.to_pylist()
    elif hasattr(X, "iter_slices") or hasattr(X, "collect_batches"):
        yield from _polars_rows(X)
    else:
        for start in range(0, len(X), CHUNK):
            part = X.iloc[start : start + CHUNK].astype(object)
            part.columns = _names(part.columns)
            yield from part.where(part.notna(), None).to_dict("records")


def _polars_rows(frame: Frame) -> Iterator[dict[str, Cell]]:
    """Yield the rows of a frame or a LazyFrame, some at a time."""
    is_lazy = hasattr(frame, "collect_batches")
    parts = (
        frame.collect_batches(chunk_size=CHUNK, maintain_order=True) if is_lazy else frame.iter_slices(CHUNK)
    )
    for part in parts:
        yield from part.iter_rows(named=True)


def _names(columns: Iterable[Any]) -> list[str]:
    names = [str(name) for name in columns]
    if len(set(names)) < len(names):
        raise InvalidInput.must("columns", "the table", "of different names", list(columns))
    return names


def first_cells(table: Any, count: int) -> dict[str, list[Cell]]:
    """Return the first cells of each column of a table: a file, a frame, columns or rows in memory, or an iterator."""
    if isinstance(table, str | PathLike):
        table = open_table(table).valid_rows()
    if not isinstance(table, Mapping) and not is_frame(table):
        rows = table if isinstance(table, Iterator) else records(table)
        table = list(islice(rows, count))
    return {name: cell_list(column[:count]) for name, column in columns_of(table)[0].items()}


def cell_list(column: Any) -> list[Cell]:
    """Return the cells of a column, which may be a list, an array or a series."""
    if hasattr(column, "to_list"):
        return column.to_list()  # type: ignore[no-any-return]
    return column.tolist() if isinstance(column, np.ndarray) and column.ndim == 1 else list(column)


def columns_of(X: Any) -> tuple[dict[str, Any], int]:
    """Return the columns of a table by name, each a list, an array or a series, and the number of rows."""
    if isinstance(X, Mapping):
        lengths = {name: len(cells) for name, cells in X.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput.must("columns", "the table", "of one length", lengths)
        return dict(X), next(iter(lengths.values()), 0)
    if hasattr(X, "to_pydict") and hasattr(X, "column_names"):
        # of Arrow: numbers as arrays, all else as Python's values
        are_numbers = re.compile("u?int|float|double").match
        columns = dict(zip(_names(X.column_names), X.columns, strict=True))
        return {
            name: cells.to_numpy() if are_numbers(str(cells.type)) else cells.to_pylist()
            for name, cells in columns.items()
        }, len(X)
    if is_frame(X):
        return dict(zip(_names(X.columns), (X[name] for name in X.columns), strict=True)), len(X)
    rows = list(records(X))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}, len(rows)


# ---------------------------------------------------------------- matrices


def read_matrix(path: str | PathLike[str]) -> Any:
    """Return a matrix, dense (an .npy is left on disk) or sparse, from an .npy or an .npz."""
    path = existing_file(Path(path))
    wanted = "a matrix: an .npy, or an .npz with X or X_data, X_indices, X_indptr, X_shape"
    try:
        if path.suffix.lower() == ".npy":
            matrix = np.lib.format.open_memmap(path, mode="r")
        else:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                matrix = sparse_matrix(content) if "X_data" in content else content["X"]
    except READ_ERRORS as error:
        raise InvalidInput.must("content", str(path), wanted, error) from error
    if len(matrix.shape) != 2:
        raise InvalidInput.must("content", str(path), "a matrix", Description(f"shape {matrix.shape}"))
    return matrix


def sparse_matrix(parts: Any) -> Any:
    """Return the matrix of X_data, X_indices, X_indptr and X_shape in an .npz."""
    require_extra("logs")
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((parts["X_data"], parts["X_indices"], parts["X_indptr"]), tuple(parts["X_shape"]))
    matrix.sum_duplicates()
    return matrix
