"""Rows and matrices as they come, turned into what the kernels read.

A dense row is a float32 vector; a sparse row a pair (indices, values) with strictly increasing
indices. Matrices are a C-ordered float32 array or the CSR triple (values, indices, starts).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.errors import InvalidInput

__all__ = ["Csr", "Matrix", "Row", "as_matrix", "as_row", "densify", "is_sparse", "n_rows", "sparsify"]

Row = Any  # np.ndarray | tuple[np.ndarray, np.ndarray]
Matrix = Any  # np.ndarray | Csr


class Csr(NamedTuple):
    """A sparse matrix that `as_matrix` has checked."""

    values: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]

    def row(self, i: int) -> Row:
        part = slice(self.starts[i], self.starts[i + 1])
        return self.indices[part], self.values[part]


def is_sparse(x: object) -> bool:
    """Whether x is a sparse row or matrix, ours or SciPy's."""
    return hasattr(x, "tocsr") or (isinstance(x, tuple) and len(x) in (2, 3) and not np.isscalar(x[0]))


def as_row(x: Any, n_features: int, of: str) -> Row:
    """A checked copy of one row. (NaN and inf are found in the scores, which cost nothing extra.)"""
    if type(x) is not np.ndarray and is_sparse(x):
        if hasattr(x, "tocsr"):
            matrix = as_matrix(x, n_features, of)
            if n_rows(matrix) != 1:
                raise InvalidInput.must("x", of, "one row", f"shape {x.shape}")
            return matrix.indices.copy(), matrix.values.copy()
        return _checked_sparse(x[0], x[1], n_features, of)
    try:
        with np.errstate(over="ignore"):  # too large for float32: the infinity is refused with the rest
            row = np.array(x, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("x", of, f"{n_features} numbers", x) from error
    if row.shape != (n_features,):
        if row.shape == (1, n_features):
            return row[0]
        raise InvalidInput.must("x", of, f"of length {n_features}", f"shape {row.shape}")
    return row


def _checked_sparse(indices: Any, values: Any, n_features: int, of: str) -> Row:
    try:
        index = np.array(indices, np.int64)
        with np.errstate(over="ignore"):
            value = np.array(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("x", of, "a pair of index and value vectors", (indices, values)) from error
    if index.ndim != 1 or index.shape != value.shape:
        got = f"shapes {index.shape} and {value.shape}"
        raise InvalidInput.must("x", of, "index and value vectors of one length", got)
    if len(index):
        if not (np.diff(index) > 0).all():
            raise InvalidInput.must("x", of, "sparse with strictly increasing indices", indices)
        if index[0] < 0 or index[-1] >= n_features:
            bad = int(index[0] if index[0] < 0 else index[-1])
            raise InvalidInput.must("x", of, f"sparse with indices in [0, {n_features})", bad)
    return index.astype(np.int32), value


def as_matrix(X: Any, n_features: int | None, of: str) -> Matrix:
    """A checked matrix in kernel form; arrays that already fit are not copied."""
    if type(X) is not np.ndarray and is_sparse(X):
        if isinstance(X, Csr):
            return X
        if isinstance(X, tuple):
            raise InvalidInput.must("X", of, "a matrix of numbers, dense or SciPy sparse", X)
        csr = X.tocsr()
        if n_features is not None and csr.shape[1] != n_features:
            raise InvalidInput.must("X", of, f"a matrix with {n_features} columns", f"shape {csr.shape}")
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        if csr.nnz and not 0 <= csr.indices.min() <= csr.indices.max() < csr.shape[1]:
            raise InvalidInput.must("X", of, f"sparse with indices in [0, {csr.shape[1]})", csr.indices)
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(csr.data, np.float32)
        indices = np.ascontiguousarray(csr.indices, np.int32)
        return Csr(values, indices, np.ascontiguousarray(csr.indptr, np.int64))
    try:
        with np.errstate(over="ignore"):
            dense = np.ascontiguousarray(X, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must("X", of, "a matrix of numbers", X) from error
    if dense.ndim != 2 or (n_features is not None and dense.shape[1] != n_features):
        columns = "two dimensions" if n_features is None else f"{n_features} columns"
        raise InvalidInput.must("X", of, f"a matrix with {columns}", f"shape {dense.shape}")
    return dense


def n_rows(matrix: Matrix) -> int:
    return len(matrix.starts) - 1 if isinstance(matrix, Csr) else len(matrix)


def densify(row: Row, n_features: int) -> Row:
    """A sparse row as a dense one; a dense one as it is."""
    if not isinstance(row, tuple):
        return row
    dense = np.zeros(n_features, np.float32)
    dense[row[0]] = row[1]
    return dense


def sparsify(row: Row) -> Row:
    """A dense row as a sparse one; a sparse one as it is."""
    if isinstance(row, tuple):
        return row
    index = np.flatnonzero(row).astype(np.int32)
    return index, row[index]
