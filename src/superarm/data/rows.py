"""Rows and matrices: checked once where they enter, and then what compiled code reads.

A dense row is a float32 vector, a sparse one a `SparseRow`; matrices are `Dense` or `Sparse`. All of
them know their width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.errors import InvalidInput

__all__ = [
    "LARGEST",
    "Dense",
    "Row",
    "Rows",
    "Sparse",
    "SparseRow",
    "as_row",
    "as_rows",
    "copy_of",
    "densify",
    "is_sparse",
    "one_row",
    "row_from_json",
    "row_to_json",
    "sparsify",
    "stack",
]

LARGEST = float(np.finfo(np.float32).max)  # the largest number of a row

Array = np.ndarray[Any, Any]


class SparseRow(NamedTuple):
    """One row: strictly increasing int32 indices below ``width``, and their float32 values."""

    indices: Array
    values: Array
    width: int


class Dense(NamedTuple):
    """A matrix, float32 and C-ordered."""

    values: Array

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def row(self, i: int) -> Array:
        return self.values[i]  # type: ignore[no-any-return]

    def copy(self) -> Dense:
        return Dense(self.values.copy())

    def take(self, which: Any) -> Dense:
        return Dense(np.ascontiguousarray(self.values[which]))


class Sparse(NamedTuple):
    """A matrix in compressed rows: the entries of row i are at starts[i] to starts[i + 1]."""

    values: Array
    indices: Array
    starts: Array
    columns: int

    @property
    def width(self) -> int:
        return self.columns

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, i: int) -> SparseRow:
        part = slice(self.starts[i], self.starts[i + 1])
        return SparseRow(self.indices[part], self.values[part], self.columns)

    def copy(self) -> Sparse:
        return Sparse(self.values.copy(), self.indices.copy(), self.starts.copy(), self.columns)

    def take(self, which: Any) -> Sparse:
        rows = np.arange(len(self))[which]
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[rows])])
        entries = np.repeat(self.starts[rows] - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
        return Sparse(self.values[entries], self.indices[entries], starts, self.columns)


Row = Array | SparseRow
Rows = Dense | Sparse


def is_sparse(x: object) -> bool:
    """Whether x is a sparse row or matrix: ours, SciPy's, or a pair (indices, values)."""
    if isinstance(x, SparseRow | Sparse) or hasattr(x, "tocsr"):
        return True
    return type(x) is tuple and len(x) == 2 and not np.isscalar(x[0])


def as_row(x: Any, n_features: int | None, of: str) -> Row:
    """A checked copy of one row. (NaN and inf are found in the scores, which cost nothing extra.)"""
    if type(x) is not np.ndarray and is_sparse(x):
        if hasattr(x, "tocsr"):
            rows = as_rows(x, n_features, of)
            if len(rows) != 1:
                raise InvalidInput.must("x", of, "one row", f"shape {x.shape}")
            return SparseRow(rows.indices.copy(), rows.values.copy(), rows.width)  # type: ignore[union-attr]
        return _checked_sparse(x[0], x[1], x[2] if isinstance(x, SparseRow) else None, n_features, of)
    try:
        with np.errstate(over="ignore"):  # too large for float32: the infinity is refused with the rest
            row = np.array(x, np.float32)
    except (TypeError, ValueError) as error:
        wanted = "numbers" if n_features is None else f"{n_features} numbers"
        raise InvalidInput.must("x", of, wanted, x) from error
    if row.ndim == 2 and len(row) == 1:
        row = row[0]
    if row.ndim != 1 or n_features not in (None, len(row)):
        wanted = "a row of numbers" if n_features is None else f"of length {n_features}"
        raise InvalidInput.must("x", of, wanted, f"shape {row.shape}")
    return row


def _checked_sparse(indices: Any, values: Any, width: int | None, n_features: int | None, of: str) -> Row:
    try:
        index = np.array(indices, np.int64)
        with np.errstate(over="ignore"):
            value = np.array(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("x", of, "a pair of index and value vectors", (indices, values)) from error
    if index.ndim != 1 or index.shape != value.shape:
        got = f"shapes {index.shape} and {value.shape}"
        raise InvalidInput.must("x", of, "index and value vectors of one length", got)
    if n_features is None:
        n_features = width if width is not None else (int(index[-1]) + 1 if len(index) else 1)
    if len(index):
        if not (np.diff(index) > 0).all():
            raise InvalidInput.must("x", of, "sparse with strictly increasing indices", indices)
        if index[0] < 0 or index[-1] >= n_features:
            bad = int(index[0] if index[0] < 0 else index[-1])
            raise InvalidInput.must("x", of, f"sparse with indices in [0, {n_features})", bad)
    return SparseRow(index.astype(np.int32), value, n_features)


def as_rows(X: Any, n_features: int | None, of: str) -> Rows:
    """A checked matrix; arrays that already fit are not copied, and `Rows` are not looked at again."""
    rows = X if isinstance(X, Dense | Sparse) else _checked_rows(X, of)
    if n_features not in (None, rows.width):
        got = f"shape {(len(rows), rows.width)}"
        raise InvalidInput.must("X", of, f"a matrix with {n_features} columns", got)
    return rows


def _checked_rows(X: Any, of: str) -> Rows:
    if type(X) is not np.ndarray and is_sparse(X):
        if not hasattr(X, "tocsr"):
            raise InvalidInput.must("X", of, "a matrix of numbers, dense or SciPy sparse", X)
        csr = X.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        width = int(csr.shape[1])
        if csr.nnz and not 0 <= csr.indices.min() <= csr.indices.max() < width:
            raise InvalidInput.must("X", of, f"sparse with indices in [0, {width})", csr.indices)
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(csr.data, np.float32)
        indices = np.ascontiguousarray(csr.indices, np.int32)
        return Sparse(values, indices, np.ascontiguousarray(csr.indptr, np.int64), width)
    try:
        with np.errstate(over="ignore"):
            dense = np.ascontiguousarray(X, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("X", of, "a matrix of numbers, dense or SciPy sparse", X) from error
    if np.ndim(X) != 2:
        raise InvalidInput.must("X", of, "a matrix with two dimensions", f"shape {np.shape(X)}")
    if not dense.flags.writeable:  # compiled code is made for arrays that can be written
        dense = dense.copy()
    return Dense(dense)


def copy_of(row: Row) -> Row:
    """A row of its own."""
    if isinstance(row, SparseRow):
        return SparseRow(row.indices.copy(), row.values.copy(), row.width)
    return row.copy()


def one_row(row: Row) -> Rows:
    """A row as a matrix."""
    if isinstance(row, SparseRow):
        return Sparse(row.values, row.indices, np.array([0, len(row.indices)]), row.width)
    return Dense(row[None])


def stack(rows: list[Row], n_features: int, *, sparse: bool) -> Rows:
    """Rows of either kind as one matrix."""
    if not sparse:
        return Dense(np.stack([densify(row, n_features) for row in rows]))
    parts = [sparsify(row) for row in rows]
    starts = np.cumsum([0, *(len(part.indices) for part in parts)])
    values, indices = (np.concatenate([getattr(p, name) for p in parts]) for name in ("values", "indices"))
    return Sparse(values, indices, starts, n_features)


def densify(row: Row, n_features: int) -> Array:
    """A sparse row as a dense one; a dense one as it is."""
    if not isinstance(row, SparseRow):
        return row
    dense = np.zeros(n_features, np.float32)
    dense[row.indices] = row.values
    return dense


def sparsify(row: Row) -> SparseRow:
    """A dense row as a sparse one; a sparse one as it is."""
    if isinstance(row, SparseRow):
        return row
    index = np.flatnonzero(row).astype(np.int32)
    return SparseRow(index, row[index], len(row))


def row_to_json(row: Row | dict[str, Any]) -> Any:
    """A row as JSON-ready values."""
    if isinstance(row, dict):  # with names (superarm/named.py)
        return {"named": row}
    if isinstance(row, SparseRow):
        return {"indices": row.indices.tolist(), "values": row.values.tolist(), "width": row.width}
    return row.tolist()


def row_from_json(data: Any) -> Row | dict[str, Any]:
    """The row that `row_to_json` described."""
    if isinstance(data, dict) and "named" in data:
        return dict(data["named"])
    if isinstance(data, dict):
        return SparseRow(
            np.array(data["indices"], np.int32), np.array(data["values"], np.float32), int(data["width"])
        )
    return np.array(data, np.float32)
