"""Compiled primitives: scores, row updates, top-m and counter-based uniforms.

A row x is either dense (a float32 vector) or sparse (a pair of index and value vectors).
The type of x decides the layout of the weights W, and nothing outside this file knows it:

    dense   label-major    W[label, feature]     one label's weights are contiguous
    sparse  feature-major  W[feature, label]     one feature's weights are contiguous

Every W has room for one more feature at the end, the intercept; it takes part with the
constant value ``bias`` (0 switches it off). Dense rows of W are padded to whole cache lines.
Kernels own no random generator, never
allocate in a loop and never see ``self``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

__all__ = [
    "add_outer",
    "borrowed",
    "by_layout",
    "centre",
    "contains",
    "coordinate",
    "entry",
    "intercept",
    "kernel",
    "length",
    "row",
    "safe_to_add",
    "scores",
    "shared",
    "softmax",
    "specialise",
    "squared_norm",
    "top_positions",
    "uniform",
    "weights",
]

F = TypeVar("F", bound=Callable[..., Any])

# As fast as fastmath=True (8 x faster than none), but NaN and inf stay what they are.
FAST = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
    "forceinline": True,
}


def _source_stamp() -> str:
    """A hash of all files with compiled code.

    Numba's disk cache notices a change in a function's own file only, not in what it calls.
    The stamp in every compiled function's name makes the cache miss after any change.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    shared = ("numerics.py", "sets.py", "scaling.py", "averaging.py")
    for path in [*(here / name for name in shared), *sorted((here / "learners").glob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


_STAMP = _source_stamp()


def kernel(function: F) -> F:
    """Compile ``function`` (lazily, cached on disk) with the settings all kernels share."""
    # a file under two names (imported, and given as file.py:Class) is two: see `shared`
    function.__qualname__ = f"{function.__qualname__}-{function.__module__}-{_STAMP}"
    return numba.njit(function, cache=True, **FAST)  # type: ignore[no-any-return]


def shared(function: F) -> F:
    """Compile a kernel that takes any learner's state: part of its callers, never cached on its own.

    A cache entry names the types of its arguments. One with the state of a user's own learner in it
    could not be read where that learner is not at hand.
    """
    return numba.njit(function, **FAST)  # type: ignore[no-any-return]


def specialise(template: Callable[..., Any], name: str, **names: Any) -> Callable[..., Any]:
    """Compile ``template`` with some of its global names replaced.

    Numba cannot cache a closure over compiled functions; a copy with other globals it can.
    """
    assert isinstance(template, FunctionType)
    copy = FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    copy.__module__ = template.__module__
    copy.__qualname__ = f"{template.__name__}-{name}"
    return kernel(copy)


def by_layout(at: int, dense: Callable[..., Any], sparse: Callable[..., Any]) -> Callable[..., Any]:
    """A function for compiled code that is ``dense`` or ``sparse``, by the type of argument ``at``."""

    def function(*arguments: Any) -> Any:
        raise TypeError("for compiled code only")

    @overload(function, jit_options=FAST, strict=False)  # type: ignore[untyped-decorator]
    def choose(*arguments: Any) -> Callable[..., Any]:
        return dense if isinstance(arguments[at], types.Array) else sparse

    return function


@intrinsic
def borrowed(typingctx, value):  # type: ignore[no-untyped-def]
    """``value`` (an array, or a tuple with arrays in it) without reference counting.

    Counting references costs half of a round. A kernel's caller keeps the arrays alive, so the
    loops work on uncounted copies of their descriptors.
    """

    def strip(context: Any, builder: Any, kind: Any, data: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, data)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind):
                stripped = strip(context, builder, part, builder.extract_value(data, i))
                data = builder.insert_value(data, stripped, i)
        return data

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return strip(context, builder, signature.args[0], arguments[0])

    return value(value), codegen


# ---------------------------------------------------------------- rows


def _sparse_row(rows, i):  # type: ignore[no-untyped-def]
    values, indices, starts = rows
    return indices[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]]


# Row i of a matrix, or of the CSR triple (values, indices, starts), without a copy.
row = by_layout(0, lambda rows, i: rows[i], _sparse_row)

# How many entries of x are stored, and the value of the i-th of them.
length = by_layout(0, lambda x: x.shape[0], lambda x: x[0].shape[0])
entry = by_layout(0, lambda x, i: x[i], lambda x, i: x[1][i])

# Where in W the weight of label r is: for the i-th stored entry of x, and for the intercept.
coordinate = by_layout(1, lambda W, x, r, i: (r, i), lambda W, x, r, i: (x[0][i], r))
intercept = by_layout(1, lambda W, x, r: (r, x.shape[0]), lambda W, x, r: (W.shape[0] - 1, r))


def weights(shape: tuple[int, int], value: float = 0.0) -> np.ndarray[Any, Any]:
    """A float32 matrix that starts on a cache line, which vector instructions like."""
    buffer = np.empty(shape[0] * shape[1] * 4 + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    matrix = buffer[start : start + shape[0] * shape[1] * 4].view(np.float32).reshape(shape)
    matrix[...] = value
    return matrix


@kernel
def squared_norm(x: Any, bias: float) -> float:
    """|x|^2, intercept included."""
    total = np.float32(0.0)
    for i in range(length(x)):
        total += entry(x, i) * entry(x, i)
    return np.float64(total) + bias * bias


# ---------------------------------------------------------------- scores and updates


def _dense_scores(W, x, bias, out):  # type: ignore[no-untyped-def]
    k, d = W.shape[0], x.shape[0]
    zero = np.float32(0.0)
    r = 0
    while r + 5 <= k:  # x is read once for five labels
        a, b, c, e, f = zero, zero, zero, zero, zero
        for j in range(d):
            v = x[j]
            a += W[r, j] * v
            b += W[r + 1, j] * v
            c += W[r + 2, j] * v
            e += W[r + 3, j] * v
            f += W[r + 4, j] * v
        out[r], out[r + 1], out[r + 2], out[r + 3], out[r + 4] = a, b, c, e, f
        r += 5
    while r < k:
        a = zero
        for j in range(d):
            a += W[r, j] * x[j]
        out[r] = a
        r += 1
    if bias != 0.0:
        for r in range(k):
            out[r] += np.float32(bias) * W[r, d]


def _sparse_scores(W, x, bias, out):  # type: ignore[no-untyped-def]
    indices, values = x
    k = W.shape[1]
    w = W[W.shape[0] - 1]
    for r in range(k):
        out[r] = np.float32(bias) * w[r]
    for i in range(indices.shape[0]):
        v = values[i]
        w = W[indices[i]]
        for r in range(k):
            out[r] += v * w[r]


_scores = by_layout(1, _dense_scores, _sparse_scores)


@kernel
def scores(W: Any, x: Any, bias: float, out: Any) -> None:
    """out_r = w_r . x for every label r."""
    _scores(W, x, bias, out)


def _dense_add_outer(W, labels, coefficients, n, x, bias):  # type: ignore[no-untyped-def]
    d = x.shape[0]
    for i in range(n):
        c = np.float32(coefficients[i])
        if c != 0.0:
            w = W[labels[i]]
            for j in range(d):
                w[j] += c * x[j]
            w[d] += c * np.float32(bias)


def _sparse_add_outer(W, labels, coefficients, n, x, bias):  # type: ignore[no-untyped-def]
    indices, values = x
    for i in range(indices.shape[0]):
        v = values[i]
        w = W[indices[i]]
        for l in range(n):
            w[labels[l]] += np.float32(coefficients[l]) * v
    if bias != 0.0:
        w = W[W.shape[0] - 1]
        for l in range(n):
            w[labels[l]] += np.float32(coefficients[l]) * np.float32(bias)


_add_outer = by_layout(4, _dense_add_outer, _sparse_add_outer)


@kernel
def add_outer(W: Any, labels: Any, coefficients: Any, n: int, x: Any, bias: float) -> bool:
    """w_r += c_r x for the first n pairs (r, c_r); False, and nothing done, if W might overflow."""
    if not safe_to_add(coefficients, n, x):
        return False
    _add_outer(W, labels, coefficients, n, x, bias)
    return True


@kernel
def safe_to_add(coefficients: Any, n: int, x: Any) -> bool:
    """Whether adding c x keeps far from the largest float: |c| and |x| at most 10^15.

    Then even 10^8 such steps in one direction cannot make a weight infinite.
    """
    peak = 0.0
    for i in range(n):
        peak += abs(coefficients[i])
    return bool(peak <= 1e15 and squared_norm(x, 0.0) <= 1e30)


def _dense_centre(W, x):  # type: ignore[no-untyped-def]
    for j in range(W.shape[1]):
        mean = 0.0
        for r in range(W.shape[0]):
            mean += W[r, j]
        mean /= W.shape[0]
        for r in range(W.shape[0]):
            W[r, j] -= np.float32(mean)


def _sparse_centre(W, x):  # type: ignore[no-untyped-def]
    for j in range(W.shape[0]):
        mean = 0.0
        for r in range(W.shape[1]):
            mean += W[j, r]
        mean /= W.shape[1]
        for r in range(W.shape[1]):
            W[j, r] -= np.float32(mean)


# Subtract the mean of all labels' weights: no ranking changes, and float32 stays sharp.
centre = by_layout(1, _dense_centre, _sparse_centre)


# ---------------------------------------------------------------- sets


@kernel
def top_positions(s: Any, eligible: Any, top: Any) -> None:
    """The positions in ``eligible`` of the best ``len(top)`` scores, best first; ties: first wins."""
    m = top.shape[0]
    filled = 0
    for p in range(eligible.shape[0]):
        value = s[eligible[p]]
        if filled == m:
            if not value > s[eligible[top[m - 1]]]:
                continue
            i = m - 1
        else:
            i = filled
            filled += 1
        while i > 0 and value > s[eligible[top[i - 1]]]:
            top[i] = top[i - 1]
            i -= 1
        top[i] = p


@kernel
def contains(labels: Any, label: int) -> bool:
    for i in range(labels.shape[0]):
        if labels[i] == label:
            return True
    return False


@kernel
def softmax(s: Any, labels: Any, sharpness: float, p: Any) -> None:
    """p_i = softmax(sharpness s) over the given labels, in their order."""
    n, a = labels.shape[0], np.float32(sharpness)
    high = s[labels[0]]
    for i in range(1, n):
        high = max(high, s[labels[i]])
    total = 0.0
    for i in range(n):
        p[i] = np.exp(a * (s[labels[i]] - high))
        total += p[i]
    scale = 1.0 / total
    for i in range(n):
        p[i] *= scale


# ---------------------------------------------------------------- randomness


@kernel
def _mix(z: Any) -> Any:
    """The finaliser of SplitMix64: a bijection of 64 bits in which every bit depends on every bit."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def uniform(seed: int, round_: int, draw: int) -> float:
    """A number in [0, 1) that is a pure function of (seed, round, draw)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    z = _mix(np.uint64(seed) * golden + golden)
    z = _mix(z + np.uint64(round_) * golden + golden)
    z = _mix(z + np.uint64(draw) * golden + golden)
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
