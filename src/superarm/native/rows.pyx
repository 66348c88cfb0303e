"""Rows, as compiled code reads them."""

cimport numpy as np

import numpy as np

from superarm.native.arrays cimport float_data, int32_data, int64_data
from superarm.native.prefetch cimport superarm_prefetch, superarm_prefetch_far

cdef Py_ssize_t MAX_NEAR_COLUMNS = 128  # columns of a row that the first cache can ask for at once


cdef int read_row(object row, Row* out) except -1:
    """``row`` is a dense row (an array), or has ``dense``, ``indices`` and ``values``."""
    dense = row if type(row) is np.ndarray else row.dense
    out.dense, out.d = float_data(dense), np.PyArray_DIM(dense, 0)
    out.indices, out.values, out.n = NULL, NULL, 0
    if dense is not row:
        out.indices, out.values = int32_data(row.indices), float_data(row.values)
        out.n = len(row.indices)
    return 0


cdef class RowBlock:
    """Rows with a dense part, a sparse part, or both.

    Args:
        dense: a float32 matrix in C order, or ``None``.
        indices, values, starts: the sparse part in compressed rows (int32, float32, int64), or ``None``.
        width: the columns of the sparse part.
    """

    def __init__(self, dense=None, indices=None, values=None, starts=None, Py_ssize_t width=0):
        if dense is not None and not (
            dense.dtype == np.float32 and dense.ndim == 2 and dense.flags.c_contiguous
        ):
            raise TypeError("dense must be a float32 matrix in C order")
        if starts is not None:
            kinds = (indices.dtype, values.dtype, starts.dtype)
            if kinds != (np.int32, np.float32, np.int64) or not all(
                a.flags.c_contiguous for a in (indices, values, starts)
            ):
                raise TypeError("indices, values and starts must be int32, float32 and int64 vectors")
            if dense is not None and len(dense) != len(starts) - 1:
                raise ValueError("both parts must have as many rows")
        self.dense, self.indices, self.values, self.starts = dense, indices, values, starts
        self.n = len(dense) if dense is not None else len(starts) - 1
        self.d, self.width = 0 if dense is None else dense.shape[1], width if starts is not None else 0
        self.dense_data = NULL if dense is None else float_data(dense)
        if starts is not None:
            self.indices_data = int32_data(indices)
            self.values_data = float_data(values)
            self.starts_data = int64_data(starts)

    def __len__(self):
        return self.n

    cdef void at(self, Py_ssize_t i, Row* row) noexcept nogil:
        row.dense, row.d = self.dense_data + i * self.d, self.d
        row.indices, row.values, row.n = NULL, NULL, 0
        if self.starts_data != NULL:
            row.indices = self.indices_data + self.starts_data[i]
            row.values = self.values_data + self.starts_data[i]
            row.n = self.starts_data[i + 1] - self.starts_data[i]

    cdef void prefetch_row(self, Py_ssize_t i) noexcept nogil:
        """Rows visited at random come slowly from memory: ask early."""
        cdef Py_ssize_t j
        cdef const float* x = self.dense_data + i * self.d
        if self.d <= MAX_NEAR_COLUMNS:
            for j in range(0, self.d, 16):
                superarm_prefetch(x + j)
        else:
            for j in range(0, self.d, 16):
                superarm_prefetch_far(x + j)
            superarm_prefetch_far(x + self.d - 1)  # a row need not begin with a line
        if self.starts_data != NULL:
            for j in range(self.starts_data[i], self.starts_data[i + 1], 16):
                superarm_prefetch(self.indices_data + j)
                superarm_prefetch(self.values_data + j)
