"""Rows and weights: scores W x, and steps W += c x.

The type of the row decides the layout of W; only this file and the stages with two forms know it:

    dense   label-major    W[label, feature]     one label's weights are contiguous
    sparse  feature-major  W[feature, label]     one feature's weights are contiguous

Every W has room for one more feature at the end, the constant one; dense rows of W are padded to
whole cache lines.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import by_row, kernel, prefetch
from superarm.rows import SparseRow

__all__ = [
    "Features",
    "add_outer",
    "centre",
    "constant",
    "coordinate",
    "fetch",
    "length",
    "reach",
    "row",
    "safe_to_add",
    "scores",
    "set_apart",
    "squared_norm",
    "value",
    "weights",
]

LINE = 16  # float32 numbers in a cache line
MANY = 2**22  # bytes
ROOM = 512  # bytes: as many as an unrolled loop of the widest vectors takes at once

Array = np.ndarray[Any, Any]


class Features(NamedTuple):
    """What reaches the weights: ``factor`` times the row x, and beside it the constant ``bias``."""

    x: Any
    factor: Any  # float32
    bias: float
    squares: float  # |factor x|^2; infinite where a step must be refused


def weights(shape: tuple[int, int], value: float = 0.0) -> Array:
    """A float32 matrix that starts on a cache line, which vector instructions like."""
    matrix: Array = _roomy(shape, np.dtype(np.float32))
    matrix[...] = value
    return matrix


def _roomy(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with ROOM bytes before and after it that nobody else has."""
    size = int(np.prod(shape)) * dtype.itemsize
    buffer = _memory(size + 2 * ROOM + 64)
    start = ROOM - (buffer.ctypes.data + ROOM) % 64 + 64
    array: Array = buffer[start : start + size].view(dtype).reshape(shape)
    return array


def _memory(size: int) -> Array:
    """Some bytes; many of them on large pages, where the system has them: sparse rows read all over the
    place, and to find a place among small pages takes as long as the rest of a round."""
    if size < MANY or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without them; or no memory, as NumPy will say
        return np.empty(size, np.uint8)
    return np.frombuffer(pages, np.uint8)


def set_apart(value: Any) -> Any:
    """A state, or scratch space, whose arrays all have room around them: only then are bits the same.

    Before a loop that reads and writes, LLVM asks whether what it writes begins shortly after what it
    reads, and takes another loop if so, which adds up in another order. Small arrays that lie side by side
    in memory, as it happens, would give other last bits.
    """
    if isinstance(value, np.ndarray):
        if isinstance(value.base, np.ndarray) and value.base.nbytes >= value.nbytes + 2 * ROOM:
            return value
        own = _roomy(value.shape, value.dtype)
        own[...] = value
        return own
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(set_apart, value))
    return value


# ---------------------------------------------------------------- rows


def _sparse_row(rows, i):  # type: ignore[no-untyped-def]
    start, stop = rows.starts[i], rows.starts[i + 1]
    return SparseRow(rows.indices[start:stop], rows.values[start:stop], rows.columns)


def _dense_fetch(rows, i):  # type: ignore[no-untyped-def]
    d = rows.values.shape[1]
    for j in range(0, d, LINE):
        prefetch(rows.values, i * d + j)


def _sparse_fetch(rows, i):  # type: ignore[no-untyped-def]
    for j in range(rows.starts[i], rows.starts[i + 1], LINE):
        prefetch(rows.values, j)
        prefetch(rows.indices, j)


def _sparse_reach(W, rows, i):  # type: ignore[no-untyped-def]
    k = W.size // W.shape[0]  # numbers of a feature
    for j in range(rows.starts[i], rows.starts[i + 1]):
        at = np.int64(rows.indices[j]) * k
        prefetch(W, at)  # more than two lines that follow each other, the processor finds itself
        prefetch(W, at + min(k, LINE) - 1)


# Row i of a matrix, without a copy; and a hint that row i will soon be wanted.
row = by_row(0, lambda rows, i: rows.values[i], _sparse_row)
fetch = by_row(0, _dense_fetch, _sparse_fetch)
# A hint that the weights of row i will soon be wanted. (Dense rows want all weights, which are at hand.)
reach = by_row(1, lambda W, rows, i: None, _sparse_reach)

# Of Features: how many entries are stored, and the i-th of them, scaled.
length = by_row(0, lambda f: f.x.shape[0], lambda f: f.x.indices.shape[0])
value = by_row(0, lambda f, i: f.factor * f.x[i], lambda f, i: f.factor * f.x.values[i])

# Where in W the weight of label r is: for the i-th stored entry, and for the constant feature.
coordinate = by_row(1, lambda W, f, r, i: (r, i), lambda W, f, r, i: (f.x.indices[i], r))
constant = by_row(1, lambda W, f, r: (r, f.x.shape[0]), lambda W, f, r: (W.shape[0] - 1, r))


@kernel
def squared_norm(f: Features) -> float:
    """The squared length of what reaches the weights, constant feature included."""
    return f.squares + f.bias * f.bias


# ---------------------------------------------------------------- scores and steps


def _dense_scores(W, f, out):  # type: ignore[no-untyped-def]
    x, factor = f.x, f.factor
    k, d = W.shape[0], x.shape[0]
    zero = np.float32(0.0)
    r = 0
    while r + 5 <= k:  # x is read once for five labels
        a, b, c, e, g = zero, zero, zero, zero, zero
        for j in range(d):
            v = x[j]
            a += W[r, j] * v
            b += W[r + 1, j] * v
            c += W[r + 2, j] * v
            e += W[r + 3, j] * v
            g += W[r + 4, j] * v
        out[r], out[r + 1], out[r + 2] = factor * a, factor * b, factor * c
        out[r + 3], out[r + 4] = factor * e, factor * g
        r += 5
    while r < k:
        a = zero
        for j in range(d):
            a += W[r, j] * x[j]
        out[r] = factor * a
        r += 1
    if f.bias != 0.0:
        for r in range(k):
            out[r] += np.float32(f.bias) * W[r, d]


def _sparse_scores(W, f, out):  # type: ignore[no-untyped-def]
    indices, values, factor = f.x.indices, f.x.values, f.factor
    k = W.shape[1]
    w = W[W.shape[0] - 1]
    for r in range(k):
        out[r] = np.float32(f.bias) * w[r]
    for i in range(indices.shape[0]):
        v = factor * values[i]
        w = W[indices[i]]
        for r in range(k):
            out[r] += v * w[r]


# out_r = w_r . x for every label r.
scores = by_row(1, _dense_scores, _sparse_scores)


def _dense_add_outer(W, labels, coefficients, n, f):  # type: ignore[no-untyped-def]
    x, d = f.x, f.x.shape[0]
    for i in range(n):
        c = np.float32(coefficients[i])
        if c != 0.0:
            w = W[labels[i]]
            g = c * f.factor
            for j in range(d):
                w[j] += g * x[j]
            w[d] += c * np.float32(f.bias)


def _sparse_add_outer(W, labels, coefficients, n, f):  # type: ignore[no-untyped-def]
    indices, values = f.x.indices, f.x.values
    for i in range(indices.shape[0]):
        v = f.factor * values[i]
        w = W[indices[i]]
        for l in range(n):
            w[labels[l]] += np.float32(coefficients[l]) * v
    if f.bias != 0.0:
        w = W[W.shape[0] - 1]
        for l in range(n):
            w[labels[l]] += np.float32(coefficients[l]) * np.float32(f.bias)


_add_outer = by_row(4, _dense_add_outer, _sparse_add_outer)


@kernel
def add_outer(W: Any, labels: Any, coefficients: Any, n: int, f: Features) -> bool:
    """w_r += c_r x for the first n pairs (r, c_r); False, and nothing done, if W might overflow."""
    if not safe_to_add(coefficients, n, f):
        return False
    _add_outer(W, labels, coefficients, n, f)
    return True


@kernel
def safe_to_add(coefficients: Any, n: int, f: Features) -> bool:
    """Whether adding c x keeps far from the largest float: |c| and |x| at most 10^15.

    Then even 10^8 such steps in one direction cannot make a weight infinite.
    """
    peak = 0.0
    for i in range(n):
        peak += abs(coefficients[i])
    return bool(peak <= 1e15 and f.squares <= 1e30)


def _dense_centre(W, f):  # type: ignore[no-untyped-def]
    for j in range(W.shape[1]):
        mean = 0.0
        for r in range(W.shape[0]):
            mean += W[r, j]
        mean /= W.shape[0]
        for r in range(W.shape[0]):
            W[r, j] -= np.float32(mean)


def _sparse_centre(W, f):  # type: ignore[no-untyped-def]
    for j in range(W.shape[0]):
        mean = 0.0
        for r in range(W.shape[1]):
            mean += W[j, r]
        mean /= W.shape[1]
        for r in range(W.shape[1]):
            W[j, r] -= np.float32(mean)


# Subtract the mean of all labels' weights: no ranking changes, and float32 stays sharp.
centre = by_row(1, _dense_centre, _sparse_centre)
