"""Rows: checked once where they enter, and then what compiled code reads.

A row has a dense part and a sparse part, and either may be empty. One that is dense only is a float32 vector,
any other a `Row`; many are `Rows`. A `Layout` says how wide both parts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.errors import InvalidInput, Unquoted
from superarm.native.rows import RowBlock

MAX_WIDTH = 2**31  # of a sparse part, whose indices are int32
FLOAT32_MAX = float(np.finfo(np.float32).max)
MATRIX = "a matrix of numbers, dense or SciPy sparse"

NFeatures = int | tuple[int, int] | None  # n_features: of rows of one kind; (dense, sparse) of mixed ones

NO_VALUES = np.zeros(0, np.float32)
NO_INDICES = np.zeros(0, np.int32)
NO_VALUES.flags.writeable = NO_INDICES.flags.writeable = False


class Layout(NamedTuple):
    """How many features rows have in both parts, and how many numbers of the dense part may be missing (columns.py)."""

    n_dense: int
    n_sparse: int
    n_markable: int = 0

    @property
    def mixed(self) -> bool:
        return self.n_dense > 0 and self.n_sparse > 0

    @property
    def n_features(self) -> int | tuple[int, int]:
        return (self.n_dense, self.n_sparse) if self.mixed else self.n_dense + self.n_sparse

    @property
    def kind(self) -> str:
        return "mixed" if self.mixed else "sparse" if self.n_sparse else "dense"


class Row:
    """One row with a dense part, a sparse part, or both.

    Args:
        dense: its numbers.
        sparse: a pair (indices, values) with strictly increasing indices, or a SciPy row.
        width: of the sparse part; left out, as wide as the learner's rows, or as the last index needs.

    >>> row = Row(dense=[0.5, 1.0], sparse=([3, 17], [1.0, 2.0]), width=100)
    >>> row.dense.tolist(), row.indices.tolist(), row.values.tolist(), row.width
    ([0.5, 1.0], [3, 17], [1.0, 2.0], 100)
    """

    __slots__ = ("dense", "indices", "values", "width")

    def __init__(self, dense: Any = None, sparse: Any = None, width: int | None = None) -> None:
        self.dense = NO_VALUES if dense is None else _dense_row(dense, None, "Row")
        self.indices, self.values, self.width = NO_INDICES, NO_VALUES, width or 0
        if sparse is not None:
            if not (hasattr(sparse, "tocsr") or (isinstance(sparse, Sequence) and len(sparse) == 2)):
                raise InvalidInput.must("sparse", "Row", "a pair (indices, values) or a SciPy row", sparse)
            self.indices, self.values, self.width = _sparse_part(sparse, width, "Row")

    @classmethod
    def from_parts(cls, dense: Array, indices: Array, values: Array, width: int) -> Row:
        """Return a row of checked parts: dense numbers, and indices and values of a sparse part of this width."""
        row: Row = cls.__new__(cls)
        row.dense, row.indices, row.values, row.width = dense, indices, values, width
        return row

    @property
    def layout(self) -> Layout:
        return Layout(len(self.dense), self.width)

    def copy(self) -> Row:
        return Row.from_parts(self.dense.copy(), self.indices.copy(), self.values.copy(), self.width)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        parts = ("dense", "indices", "values")
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in parts)
        return same and self.width == other.width

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        dense = f"dense={self.dense.tolist()!r}, " if len(self.dense) else ""
        pair = (self.indices.tolist(), self.values.tolist())
        return f"Row({dense}sparse={pair!r}, width={self.width})"


class Rows(RowBlock):
    """Many rows: a dense float32 matrix, and beside it a sparse one in compressed rows; one may be missing.

    Args:
        dense: float32, C-ordered.
        indices, values, starts: int32, float32 and int64; row i is at starts[i] to starts[i + 1].
        width: the columns of the sparse part.
    """

    @property
    def layout(self) -> Layout:
        return Layout(self.d, self.width)

    def row(self, i: int) -> Any:
        """Return row number ``i``: an array, or a Row."""
        if self.starts is None:
            return self.dense[i]
        part = slice(self.starts[i], self.starts[i + 1])
        dense = NO_VALUES if self.dense is None else self.dense[i]
        return Row.from_parts(dense, self.indices[part], self.values[part], self.width)

    def copy(self) -> Rows:
        dense, indices, values, starts = (
            None if part is None else part.copy()
            for part in (self.dense, self.indices, self.values, self.starts)
        )
        return Rows(dense, indices, values, starts, self.width)

    def take(self, index: Any) -> Rows:
        """Return the rows at ``index``: numbers, a slice or a mask."""
        dense = None if self.dense is None else np.ascontiguousarray(self.dense[index])
        if self.starts is None:
            return Rows(dense)
        entries, starts = take_segments(self.starts, np.arange(len(self))[index])
        return Rows(dense, self.indices[entries], self.values[entries], starts, self.width)

    def __reduce__(self) -> Any:
        return Rows, (self.dense, self.indices, self.values, self.starts, self.width)

    def __repr__(self) -> str:
        return f"Rows({len(self)} x {self.layout.n_features})"


AnyRow = Array | Row


def take_segments(starts: Array, numbers: Array) -> tuple[Array, Array]:
    """Return the positions of the entries in some of the segments that begin at ``starts``, and the new starts."""
    lengths = np.diff(starts)[numbers]
    new_starts = np.zeros(len(numbers) + 1, starts.dtype)
    np.cumsum(lengths, out=new_starts[1:])
    return np.repeat(starts[numbers] - new_starts[:-1], lengths) + np.arange(new_starts[-1]), new_starts


def is_sparse(x: object) -> bool:
    """Return whether x is a row or a matrix with a sparse part: ours, SciPy's, or a pair (indices, values)."""
    if isinstance(x, Row):
        return x.width > 0
    if isinstance(x, Rows):
        return x.starts is not None
    if hasattr(x, "tocsr"):
        return True
    return type(x) is tuple and len(x) == 2 and not np.isscalar(x[0])


def layout_of(row: AnyRow) -> Layout:
    """Return the layout that a first row fixes."""
    return row.layout if isinstance(row, Row) else Layout(len(row), 0)


# ---------------------------------------------------------------- one row


def as_row(x: Any, n_features: NFeatures, owner: str, or_else: str = "") -> AnyRow:
    """Return a checked copy of one row; ``or_else``: what else it may be, for messages.

    (NaN and inf are found in the scores, which cost nothing extra.)
    """
    if type(x) is not np.ndarray:
        if isinstance(x, Row):
            return _checked_copy(x, n_features, owner)
        if is_sparse(x):
            width = n_features[1] if isinstance(n_features, tuple) else n_features
            return Row.from_parts(NO_VALUES, *_sparse_part(x, width, owner))
    return _dense_row(x, n_features[0] if isinstance(n_features, tuple) else n_features, owner, or_else)


def _checked_copy(x: Row, n_features: NFeatures, owner: str) -> AnyRow:
    d, width = len(x.dense), x.width
    if isinstance(n_features, tuple):
        n_dense, width = n_features
    elif d and width and n_features is not None:
        got = Unquoted("a dense and a sparse part")
        raise InvalidInput.must("x", owner, f"{n_features} numbers of one kind", got)
    elif n_features is not None:
        n_dense, width = n_features, n_features if width else 0
    else:
        n_dense = d
    dense = _dense_row(x.dense, n_dense if d else 0, owner)
    return Row.from_parts(dense, *_sparse_part((x.indices, x.values), width, owner)) if width else dense


def _dense_row(x: Any, length: int | None, owner: str, or_else: str = "") -> Array:
    try:
        with np.errstate(over="ignore"):  # too large for float32: the infinity is refused with the rest
            row = np.array(x, np.float32)
    except (TypeError, ValueError) as error:
        wanted = "numbers" if length is None else f"{length} numbers"
        raise InvalidInput.must("x", owner, f"{wanted}{or_else}", x) from error
    if row.ndim == 2 and len(row) == 1:
        row = row[0]
    if row.ndim != 1 or length not in (None, len(row)):
        wanted = "a row of numbers" if length is None else f"of length {length}"
        got = Unquoted(f"shape {row.shape}") if row.ndim else x
        raise InvalidInput.must("x", owner, f"{wanted}{or_else}", got)
    return row


def _sparse_part(x: Any, width: int | None, owner: str) -> tuple[Array, Array, int]:
    """Return checked indices and values of a SciPy row or a pair, and the width: without one, what the last needs."""
    if hasattr(x, "tocsr"):
        rows = as_rows(x, width, owner)
        if len(rows) != 1:
            raise InvalidInput.must("x", owner, "one row", Unquoted(f"shape {x.shape}"))
        return rows.indices.copy(), rows.values.copy(), rows.width
    indices, values = x
    try:
        index = np.array(indices, np.int64)
        with np.errstate(over="ignore"):
            value = np.array(values, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput.must("x", owner, "a pair of index and value vectors", x) from error
    if index.ndim != 1 or index.shape != value.shape:
        got = Unquoted(f"shapes {index.shape} and {value.shape}")
        raise InvalidInput.must("x", owner, "index and value vectors of one length", got)
    if width is None:
        width = int(index[-1]) + 1 if len(index) else 1
    if (np.diff(index) <= 0).any():
        raise InvalidInput.must("x", owner, "sparse with strictly increasing indices", indices)
    end = min(width, MAX_WIDTH)
    if len(index) and (index[0] < 0 or index[-1] >= end):
        bad = int(index[0] if index[0] < 0 else index[-1])
        raise InvalidInput.must("x", owner, f"sparse with indices in [0, {end})", bad)
    return index.astype(np.int32), value, width


def conform_row(row: AnyRow, layout: Layout, owner: str) -> AnyRow:
    """Return a checked row in the layout of a learner; for a learner of one kind of rows, both kinds are the same."""
    if layout.n_sparse == 0:
        return densify(row, layout.n_dense)
    if isinstance(row, Row):
        n_dense = len(row.dense)
        if n_dense not in (0, layout.n_dense) or row.width > layout.n_sparse:
            wanted = f"{layout.kind}, as its first row was"
            raise InvalidInput.must("x", owner, wanted, Unquoted(row.layout.kind))
        dense = row.dense if n_dense else np.zeros(layout.n_dense, np.float32)
        return Row.from_parts(dense, row.indices, row.values, layout.n_sparse)
    if layout.n_dense:
        return Row.from_parts(row, NO_INDICES, NO_VALUES, layout.n_sparse)
    index = np.flatnonzero(row).astype(np.int32)
    return Row.from_parts(NO_VALUES, index, row[index], layout.n_sparse)


def densify(row: AnyRow, d: int) -> Array:
    """Return a row as ``d`` dense numbers: its dense part, then its sparse one."""
    if not isinstance(row, Row):
        return row
    dense = np.zeros(d, np.float32)
    dense[: len(row.dense)] = row.dense
    dense[len(row.dense) + row.indices] = row.values
    return dense


# ---------------------------------------------------------------- many rows


def as_rows(X: Any, n_features: NFeatures, owner: str, or_else: str = "") -> Rows:
    """Return a checked matrix; arrays that fit are not copied, and `Rows` are not checked again.

    ``or_else``: what else X may be, for messages.
    """
    rows = X if isinstance(X, Rows) else _checked_rows(X, n_features, owner, f"{MATRIX}{or_else}")
    width = rows.layout.n_features
    if n_features in (None, width):
        return rows
    if isinstance(n_features, tuple):
        d, sparse_width = n_features
        wanted = f"a pair of a dense matrix with {d} columns and a sparse one with {sparse_width}"
    else:
        wanted = f"a matrix with {n_features} columns"
    widths = width if isinstance(width, tuple) else (width,)
    shapes = " and ".join(str((len(rows), columns)) for columns in widths)
    raise InvalidInput.must("X", owner, wanted, Unquoted(f"shape {shapes}"))


def _checked_rows(X: Any, n_features: NFeatures, owner: str, wanted: str) -> Rows:
    if isinstance(X, list) and X and isinstance(X[0], Row):
        rows = [as_row(x, n_features, owner) for x in X]
        widest = np.max([layout_of(row) for row in rows], axis=0)
        return stack(rows, Layout(*widest.tolist()))
    if not is_sparse(X):
        return Rows(_dense(X, owner, wanted))
    if type(X) is tuple and hasattr(X[1], "tocsr") and not hasattr(X[0], "tocsr"):
        dense, sparse = _dense(X[0], owner, wanted), _sparse(X[1], owner)
        if len(dense) != len(sparse[2]) - 1:
            got = Unquoted(f"{len(dense)} and {len(sparse[2]) - 1} rows")
            raise InvalidInput.must("X", owner, "a pair of matrices with as many rows", got)
        return Rows(dense, *sparse)
    if not hasattr(X, "tocsr"):
        raise InvalidInput.must("X", owner, wanted, X)
    return Rows(None, *_sparse(X, owner))


def _sparse(X: Any, owner: str) -> tuple[Array, Array, Array, int]:
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    width = int(csr.shape[1])
    end = min(width, MAX_WIDTH)
    if csr.nnz and not 0 <= csr.indices.min() <= csr.indices.max() < end:
        raise InvalidInput.must("X", owner, f"sparse with indices in [0, {end})", csr.indices)
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(csr.data, np.float32)
    indices = np.ascontiguousarray(csr.indices, np.int32)
    starts = np.ascontiguousarray(csr.indptr, np.int64)
    ends_fit = starts[0] == 0 and starts[-1] == len(indices) == len(values)
    if not ends_fit or (np.diff(starts) < 0).any():  # compiled code goes by them
        raise InvalidInput.must("X", owner, "sparse with rows one after the other (indptr)", csr.indptr)
    return indices, values, starts, width


def _dense(X: Any, owner: str, wanted: str) -> Array:
    try:
        with np.errstate(over="ignore"):
            dense = np.ascontiguousarray(X, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("X", owner, wanted, X) from error
    if np.ndim(X) == 0 or (isinstance(X, list) and not X):
        raise InvalidInput.must("X", owner, wanted, X)
    if np.ndim(X) != 2:
        got = Unquoted(f"shape {np.shape(X)}")
        raise InvalidInput.must("X", owner, "a matrix with two dimensions", got)
    return dense


def stack(rows: Sequence[AnyRow], layout: Layout | None) -> Rows:
    """Return rows as one matrix, of this layout or of their own."""
    layout = layout_of(rows[0]) if layout is None else layout
    conformed: list[Any] = [conform_row(row, layout, "Rows") for row in rows]
    if layout.n_sparse == 0:
        return Rows(np.concatenate([NO_VALUES, *conformed]).reshape(-1, layout.n_dense))
    starts = np.zeros(len(conformed) + 1, np.int64)
    np.cumsum([len(row.indices) for row in conformed], out=starts[1:])
    values = np.concatenate([NO_VALUES, *(row.values for row in conformed)])
    indices = np.concatenate([NO_INDICES, *(row.indices for row in conformed)])
    dense = None
    if layout.n_dense:
        dense = np.concatenate([NO_VALUES, *(row.dense for row in conformed)]).reshape(-1, layout.n_dense)
    return Rows(dense, indices, values, starts, layout.n_sparse)


# ---------------------------------------------------------------- rows as JSON


def row_to_json(row: AnyRow | dict[str, Any], *, width: bool = True) -> Any:
    """Return a row as JSON-ready values, for journals and logs; for requests without the ``width``."""
    if isinstance(row, dict):  # with names (columns.py)
        return {"named": row}
    if isinstance(row, Row):
        parts = {"dense": row.dense.tolist()} if len(row.dense) else {}
        parts |= {"indices": row.indices.tolist(), "values": row.values.tolist()}
        return parts | {"width": row.width} if width else parts
    return row.tolist()


def row_from_json(data: Any) -> AnyRow | dict[str, Any]:
    """Return the row that `row_to_json` described."""
    if not isinstance(data, dict):
        return np.array(data, np.float32)
    if "named" in data:
        return dict(data["named"])
    dense, indices = np.array(data.get("dense", []), np.float32), np.array(data["indices"], np.int32)
    return Row.from_parts(dense, indices, np.array(data["values"], np.float32), int(data["width"]))
