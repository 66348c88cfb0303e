"""Rows and matrices as they come, turned into what the kernels read.

A dense row is a float32 vector; a sparse row a pair (indices, values) with strictly increasing
indices. Matrices are a C-ordered float32 array or the CSR triple (values, indices, starts).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.errors import InvalidInput, must

__all__ = ["Matrix", "Row", "as_matrix", "as_row", "densify", "is_sparse", "n_rows", "sparsify"]

Row = Any  # np.ndarray | tuple[np.ndarray, np.ndarray]
Matrix = Any  # np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]


def is_sparse(x: object) -> bool:
    """Whether x is a sparse row or matrix, ours or SciPy's."""
    if hasattr(x, "tocsr"):
        return True
    return isinstance(x, tuple) and len(x) in (2, 3) and np.ndim(x[0]) == 1


def as_row(x: Any, n_features: int, of: str) -> Row:
    """A checked copy of one row. (NaN and inf are found in the scores, which cost nothing extra.)"""
    if type(x) is not np.ndarray and is_sparse(x):
        if hasattr(x, "tocsr"):
            matrix = as_matrix(x, n_features, of)
            if n_rows(matrix) != 1:
                raise InvalidInput(must("x", of, "one row", f"shape {x.shape}"))
            return matrix[1], matrix[0]
        return _checked_sparse(x[0], x[1], n_features, of)
    try:
        row = np.array(x, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(must("x", of, f"{n_features} numbers", x)) from error
    if row.shape != (n_features,):
        if row.shape == (1, n_features):
            return row[0]
        raise InvalidInput(must("x", of, f"of length {n_features}", f"shape {row.shape}"))
    return row


def _checked_sparse(indices: Any, values: Any, n_features: int, of: str) -> Row:
    try:
        index = np.array(indices, np.int64)
        value = np.array(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            must("x", of, "a pair of index and value vectors", (indices, values))
        ) from error
    if index.ndim != 1 or index.shape != value.shape:
        got = f"shapes {index.shape} and {value.shape}"
        raise InvalidInput(must("x", of, "index and value vectors of one length", got))
    if len(index):
        if not (np.diff(index) > 0).all():
            raise InvalidInput(must("x", of, "sparse with strictly increasing indices", indices))
        if index[0] < 0 or index[-1] >= n_features:
            bad = int(index[0] if index[0] < 0 else index[-1])
            raise InvalidInput(must("x", of, f"sparse with indices in [0, {n_features})", bad))
    return index.astype(np.int32), value


def as_matrix(X: Any, n_features: int | None, of: str) -> Matrix:
    """A checked matrix in kernel form; arrays that already fit are not copied."""
    if type(X) is not np.ndarray and is_sparse(X):
        if isinstance(X, tuple):
            return X
        csr = X.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        if n_features is not None and csr.shape[1] != n_features:
            raise InvalidInput(must("X", of, f"a matrix with {n_features} columns", f"shape {csr.shape}"))
        return (
            np.ascontiguousarray(csr.data, np.float32),
            np.ascontiguousarray(csr.indices, np.int32),
            np.ascontiguousarray(csr.indptr, np.int64),
        )
    try:
        dense = np.ascontiguousarray(X, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(must("X", of, "a matrix of numbers", X)) from error
    if dense.ndim != 2 or (n_features is not None and dense.shape[1] != n_features):
        columns = "two dimensions" if n_features is None else f"{n_features} columns"
        raise InvalidInput(must("X", of, f"a matrix with {columns}", f"shape {dense.shape}"))
    return dense


def n_rows(matrix: Matrix) -> int:
    return len(matrix[2]) - 1 if isinstance(matrix, tuple) else len(matrix)


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
