"""Tables and matrices in people's files, read one way everywhere: rows to decide for, answers, data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.data.named import spelt
from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.storage import UNREADABLE

if TYPE_CHECKING:
    import polars

__all__ = ["TABLES", "mark_of", "read_matrix", "read_table", "sparse_matrix"]

TABLES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")


def mark_of(header: str) -> str:
    """What stands between the columns of a CSV file: what splits its header into most of them.

    >>> mark_of("age;city;price, in euro")
    ';'
    """
    return max(",;\t", key=header.count)


def read_table(path: Path, texts: Iterable[str] = ()) -> polars.DataFrame:
    """A file as a data frame; these columns of a CSV are texts, whatever they look like."""
    need("logs")
    import polars as pl

    ending = path.suffix.lower()
    if ending not in TABLES:
        raise InvalidInput.must("ending", str(path), f"one of {', '.join(TABLES)}", path.suffix)
    if not path.is_file():
        raise InvalidInput.must("file", str(path), "there", "a folder" if path.is_dir() else "nothing")
    try:
        if ending == ".parquet":
            return pl.read_parquet(path)
        if ending in (".jsonl", ".ndjson"):
            return pl.read_ndjson(path, infer_schema_length=None)
        return _csv(path, texts)
    except pl.exceptions.NoDataError:
        raise InvalidInput.must("content", str(path), "at least one row", "none") from None
    except pl.exceptions.PolarsError as error:
        if "utf-8" in str(error).lower():
            raise InvalidInput.must("content", str(path), "text in UTF-8", "something else") from error
        said = str(error).partition("\n")[0]
        raise InvalidInput.must("content", str(path), f"a {path.suffix} file", said) from error


def _csv(path: Path, texts: Iterable[str]) -> polars.DataFrame:
    import polars as pl

    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
    mark = mark_of(header)
    columns = [name.strip().strip('"') for name in header.strip().split(mark)]
    frame = pl.read_csv(
        path,
        separator=mark,
        try_parse_dates=True,
        infer_schema_length=None,
        schema_overrides={name: pl.String for name in texts if name in columns},
    )
    spelt_out = [name for name, kind in frame.schema.items() if kind == pl.String and name not in texts]
    return frame.with_columns(_meant(frame[name]) for name in spelt_out)


def _meant(column: polars.Series) -> polars.Series:
    """A column of texts as the numbers that they spell, where NA and its like are gaps; else as it is."""
    import polars as pl

    meant = {text: spelt(text) for text in column.unique().to_list() if text is not None}
    if any(isinstance(value, str) for value in meant.values()):
        return column
    numbers = [None if text is None else meant[text] for text in column.to_list()]
    return pl.Series(column.name, numbers, dtype=pl.Float64, strict=False)


def read_matrix(path: Path) -> Any:
    """A matrix, dense or sparse, from an .npy or an .npz."""
    if not path.is_file():
        raise InvalidInput.must("file", str(path), "there", "a folder" if path.is_dir() else "nothing")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if path.suffix.lower() == ".npz" and "X_data" in found:
                return sparse_matrix(found)
            matrix = found["X"] if path.suffix.lower() == ".npz" else found
    except UNREADABLE as error:
        wanted = "a matrix, in an .npz under the name X"
        raise InvalidInput.must("content", str(path), wanted, str(error)) from error
    if matrix.ndim != 2:
        raise InvalidInput.must("content", str(path), "a matrix", f"shape {matrix.shape}")
    return matrix


def sparse_matrix(parts: Any) -> Any:
    """The matrix of X_data, X_indices, X_indptr and X_shape in an .npz."""
    need("logs")
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((parts["X_data"], parts["X_indices"], parts["X_indptr"]), tuple(parts["X_shape"]))
    matrix.sum_duplicates()
    return matrix
