"""Tables: users' files and frames as rows with names, and matrices. All packages read them here.

A `Table` gives rows as dicts, again and again, one at a time: files may be larger than memory. In place of a row
that cannot be read there is a sentence about what it must be. Cells of a CSV are texts; columns.py parses them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm._extras import require_extra
from superarm._files import READ_ERRORS, file_digest, open_npz
from superarm._types import Cell, Frame
from superarm.data.cells import is_named_row
from superarm.errors import InvalidInput, Unquoted, at_row
from superarm.parameters import existing_file

CHUNK = 4096

TableRow = dict[str, Cell] | str  # a sentence in place of a row that cannot be read


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that can be read again and again, from the start.

    Attributes:
        name: as messages call it.
        rows: returns every row, in order.
        fingerprint: returns a hash of the content.
    """

    name: str
    rows: Callable[[], Iterator[TableRow]]
    fingerprint: Callable[[], str]

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


def open_table(
    source: str | PathLike[str] | Frame | list[Any], *, vectors: str | PathLike[str] | None = None
) -> Table:
    """Return a file, or a pandas, Polars or Arrow table, as a `Table`.

    Args:
        source: the file, the table, or a list of dicts.
        vectors: an .npy beside it, whose rows become the column ``vectors``.
    """
    if vectors is not None:
        return with_matrix(open_table(source), vectors)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.suffix.lower() not in READERS:
            raise InvalidInput.must("ending", str(path), f"one of {', '.join(READERS)}", path.suffix)
        return file_table(path, READERS[path.suffix.lower()])
    library = type(source).__module__.partition(".")[0]
    if not (is_named_rows(source) or (library == "polars" and hasattr(source, "collect_schema"))):
        wanted = "a file, a pandas, Polars or Arrow table, or a list of dicts"
        got = "an empty list" if isinstance(source, list) and not source else type(source).__name__
        raise InvalidInput.must("table", "superarm", wanted, Unquoted(got))
    names = {"pandas": "the pandas frame", "polars": "the Polars frame", "pyarrow": "the Arrow table"}
    return memory_table(names.get(library, "the table"), lambda: named_rows(source))


def memory_table(name: str, rows: Callable[[], Iterator[TableRow]]) -> Table:
    """Return a table whose rows are in memory."""

    def fingerprint() -> str:
        digest = hashlib.sha256()
        for row in rows():
            digest.update(json.dumps(row, default=jsonable, sort_keys=True).encode())
        return digest.hexdigest()

    return Table(name, rows, fingerprint)


def jsonable(value: Any) -> Any:
    """Return a value that JSON does not have as one that it has."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def with_matrix(table: Table, path: str | PathLike[str], column: str = "vectors") -> Table:
    """Return a table with a matrix beside it, whose rows become a column.

    Args:
        table: the table.
        path: an .npy, or where ``column`` is "x" also an .npz, with a row for each of its rows.
        column: its name; the rows of a sparse matrix become x_indices and x_values.
    """
    path = Path(path)
    matrix = read_matrix(path)
    n, width = matrix.shape
    is_sparse = hasattr(matrix, "tocsr")
    if is_sparse and column != "x":
        raise InvalidInput.must("vectors", str(path), "a dense matrix", Unquoted("a sparse one"))

    def cells(i: int) -> dict[str, Cell]:
        if not is_sparse:
            return {column: np.asarray(matrix[i], np.float32)}
        one = matrix[[i]]
        return {"x": None, "x_indices": one.indices, "x_values": one.data, "x_width": width}

    def rows() -> Iterator[TableRow]:
        count = 0
        for count, row in enumerate(table.rows(), 1):
            if count > n:
                break
            yield row if isinstance(row, str) else {**row, **cells(count - 1)}
        if count != n:
            wanted = f"a matrix with as many rows as {table.name}"
            raise InvalidInput.must(column, str(path), wanted, Unquoted(f"{n} rows"))

    def fingerprint() -> str:
        return hashlib.sha256(f"{table.fingerprint()} {file_digest(path)}".encode()).hexdigest()

    return Table(table.name, rows, fingerprint)


# ---------------------------------------------------------------- files


def file_table(path: Path, read_rows: Callable[[Path], Iterator[TableRow]]) -> Table:
    """Return the table in a file, whose rows ``read_rows`` yields."""
    existing_file(path)

    def rows() -> Iterator[TableRow]:
        try:
            yield from read_rows(path)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            byte_order_marks = (b"\xff\xfe", b"\xfe\xff")
            encoding = "UTF-16" if error.object[:2] in byte_order_marks else "WINDOWS-1252"
            raise InvalidInput(
                f"{path} must be text in UTF-8, got the byte 0x{byte:02x}: save it as UTF-8 "
                f"(in Excel: CSV UTF-8), or convert it with iconv -f {encoding} -t UTF-8"
            ) from error
        except OSError as error:
            raise InvalidInput.must("content", str(path), "readable", error) from error

    return Table(str(path), rows, lambda: file_digest(path))


def delimiter_of(header: str) -> str:
    """Return the mark between the columns of a CSV file: the one that splits its header into most of them.

    >>> delimiter_of('age;city;"price, net, in euro"')
    ';'
    """
    return max(",;\t", key=re.sub(r'"[^"]*"', "", header).count)


def csv_rows(path: Path) -> Iterator[TableRow]:
    with path.open(encoding="utf-8-sig", newline="") as file:
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
                raise InvalidInput.must("columns", str(path), "of different names", repeated[0])
            n_empty = 0  # rows without a value: at the end they are skipped
            for cells in sheet:
                if len(cells) > 1 and not any(map(str.strip, cells)):
                    n_empty += 1
                    continue
                for _ in range(n_empty if cells else 0):
                    yield dict.fromkeys(header)
                n_empty = 0 if cells else n_empty
                if len(cells) == len(header):
                    yield {
                        name: None if cell == "" else cell for name, cell in zip(header, cells, strict=True)
                    }
                elif cells:
                    yield f"{len(header)} cells, as the header has, not {len(cells)}"
            if n_empty:
                _warn_of_empty_rows(path, n_empty)
        except csv.Error as error:
            raise InvalidInput.must("content", str(path), "a CSV file", error) from error


@lru_cache  # a file may be read several times: one warning is enough
def _warn_of_empty_rows(path: Path, count: int) -> None:
    warnings.warn(f"{path}: {count:,} empty rows at its end are skipped", stacklevel=2)


def json_rows(path: Path) -> Iterator[TableRow]:
    with path.open(encoding="utf-8-sig") as file:
        for line in filter(str.strip, file):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield row if isinstance(row, dict) else "a JSON object"


def parquet_rows(path: Path) -> Iterator[TableRow]:
    require_extra("logs")
    import polars as pl

    try:
        yield from _polars_rows(pl.scan_parquet(path))
    except pl.exceptions.PolarsError as error:
        raise InvalidInput.must("content", str(path), "a Parquet file", error) from error


READERS = {
    ".parquet": parquet_rows,
    ".csv": csv_rows,
    ".tsv": csv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
TABLES = tuple(READERS)


# ---------------------------------------------------------------- frames


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
    return next(named_rows(x)) if is_frame(x) and len(x) == 1 else None


def named_rows(X: Any) -> Iterator[dict[str, Cell]]:
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
    """Yield the rows of a Polars frame or LazyFrame, read in parts."""
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
        rows = table if isinstance(table, Iterator) else open_table(table).rows()
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
    rows = list(named_rows(X))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}, len(rows)


# ---------------------------------------------------------------- matrices


def read_npz(path: Path, *, labelled: bool = True) -> dict[str, Any]:
    """Return X, y and the names of labels (``None`` without) of an .npz of arrays, of CSR parts, or of images."""
    try:
        with open_npz(path) as file:
            y, labels = file.get("y", file.get("y_train")), file.get("labels", file.get("classes"))
            if "X_data" in file and "X" not in file:
                require_extra("logs")
                from scipy.sparse import csr_matrix

                parts = (file["X_data"], file["X_indices"], file["X_indptr"])
                X = csr_matrix(parts, tuple(file["X_shape"]))
                X.sum_duplicates()
            else:
                X = file.get("X", file.get("x_train"))
            keys = sorted(file)
    except READ_ERRORS as error:
        wanted = "an .npz with X and y" if labelled else "a matrix: an .npz with X"
        raise InvalidInput.must("content", str(path), wanted, error) from error
    if X is None or (labelled and y is None):
        wanted = "X and y, or X_data, X_indices, X_indptr, X_shape and y, or x_train and y_train"
        raise InvalidInput.must("keys", str(path), wanted, keys)
    return {"X": X, "y": y, "labels": None if labels is None else labels.tolist()}


def read_matrix(path: str | PathLike[str]) -> Any:
    """Return a matrix, dense (an .npy is left on disk) or sparse, from an .npy or an .npz."""
    path = existing_file(Path(path))
    if path.suffix.lower() == ".npz":
        matrix = read_npz(path, labelled=False)["X"]
    else:
        try:
            matrix = np.lib.format.open_memmap(path, mode="r")
        except READ_ERRORS as error:
            wanted = "a matrix: an .npy, or an .npz with X or X_data, X_indices, X_indptr, X_shape"
            raise InvalidInput.must("content", str(path), wanted, error) from error
    if len(matrix.shape) != 2:
        raise InvalidInput.must("content", str(path), "a matrix", Unquoted(f"shape {matrix.shape}"))
    return matrix
