"""Rows on one scale, so that no step needs tuning to the data. Scaling belongs to the learner.

**Unit**: x~ = x / |x|, as the paper's learners assume.

**Standard**, learnt online:

    dense    z_j = clip((x_j - mean_j) / sd_j, ±5),  x~ = z sqrt((1 - bias^2) / (|z| rms|z|))
    sparse   z_j = x_j (log((n + 1) / df_j) + 0.1),  x~ = z sqrt(1 - bias^2) / |z|

mean, sd and the root mean square of |z| run over the rows seen so far; df_j counts those whose
feature j is not zero. Beside x~ stands the constant feature ``bias``. Multiplying all features by a
number changes nothing. `standardise` reads the statistics, `absorb` counts a row in. ``forget`` (0
for never) is the least weight of a new row.

**Named rows** (superarm/named.py) are dense, and their first n columns are numbers: column n + j says
whether number j is missing. Then z_j = 0, and its statistics stay. All columns after n are marks of 0
and ±1, which keep their scale (sd = 1): a rare word is not louder than a common one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import by_row, kernel
from superarm.kernels.linear import Features
from superarm.kernels.ranking import LARGEST
from superarm.rows import SparseRow

__all__ = ["Standard", "StandardScratch", "Unit", "absorb", "standardise", "unit"]

CLIP = 5.0
HUGE = 1e15

Array = np.ndarray[Any, Any]


class Unit(NamedTuple):
    """Rows of length 1, beside a constant."""

    bias: float


class Standard(NamedTuple):
    """The statistics of the rows seen so far."""

    bias: float
    forget: float
    mean: Array  # dense
    var: Array
    inverse: Array  # 1 / sd, now and then brought up to date
    df: Array  # sparse
    seen: Array  # rows counted, mean |z|^2, when 1 / sd is due again
    numbers: int  # of named rows: how many columns may be missing; else 0
    known: Array  # how often each of them was not

    @classmethod
    def start(cls, d: int, *, sparse: bool, bias: float, forget: float) -> Standard:
        mean, var, inverse = np.zeros((3, 1 if sparse else d), np.float32)
        df = np.zeros(d if sparse else 1, np.float32)
        return cls(bias, forget, mean.copy(), var.copy(), inverse.copy(), df, np.zeros(3), 0, np.zeros(0))

    def named(self, numbers: int) -> Standard:
        """The same for rows with names, of which so many columns are numbers."""
        return self._replace(numbers=numbers, known=np.zeros(numbers))


class StandardScratch(NamedTuple):
    z: Array

    @classmethod
    def of(cls, d: int) -> StandardScratch:
        return cls(np.zeros(d, np.float32))


# ---------------------------------------------------------------- length 1


@kernel
def _factor(values: Any) -> Any:
    """1 / |values|, and the squared length that this gives: 1, or 0 for a row of zeros; NaN and inf: inf."""
    total = np.float32(0.0)
    for i in range(values.shape[0]):
        total += values[i] * values[i]
    if 1e-30 < total < 1e30:
        return np.float32(1.0) / np.sqrt(total), 1.0
    # squares outside of float32's range, a row of zeros, or NaN: slowly, in float64
    wide = 0.0
    for i in range(values.shape[0]):
        wide += np.float64(values[i]) * np.float64(values[i])
    if wide == 0.0:
        return np.float32(1.0), 0.0
    factor = np.float32(1.0 / np.sqrt(wide))
    return factor, 1.0 if 0.0 < factor <= LARGEST else np.inf


def _dense_unit(scaling, scratch, x):  # type: ignore[no-untyped-def]
    factor, squares = _factor(x)
    return Features(x, factor, scaling.bias, squares)


def _sparse_unit(scaling, scratch, x):  # type: ignore[no-untyped-def]
    factor, squares = _factor(x.values)
    return Features(x, factor, scaling.bias, squares)


# x / |x| as Features; a row of zeros stays.
unit = by_row(2, _dense_unit, _sparse_unit)


# ---------------------------------------------------------------- standardised


@kernel
def _centred(x: Any, mean: Any, inverse: Any, z: Any) -> Any:
    """Fill z; its squared length, and how many entries of x are huge."""
    high, low = np.float32(CLIP), np.float32(-CLIP)
    total, huge = np.float32(0.0), 0
    for j in range(z.shape[0]):
        huge += not abs(x[j]) <= HUGE
        v = min(high, max(low, (x[j] - mean[j]) * inverse[j]))
        z[j] = v
        total += v * v
    return total, huge


def _dense_standardise(scaling, scratch, x):  # type: ignore[no-untyped-def]
    mean, z = scaling.mean, scratch.z
    d, n = x.shape[0], scaling.numbers
    if n == 0:
        total, huge = _centred(x, mean, scaling.inverse, z)
    else:  # what is missing is as the mean. (No sums here: they would depend on who inlines this.)
        for j in range(n):
            z[j] = x[j] if x[n + j] == 0.0 else mean[j]
        for j in range(n, d):
            z[j] = x[j]
        total, huge = _centred(z, mean, scaling.inverse, z)
    scale: Any = np.float32(1.0)
    squares: Any = np.float64(total)
    if huge:  # a step refuses it; NaN and inf, which clipping would hide, are shown by the scores
        squares = np.inf
        for j in range(d):
            if not abs(x[j]) <= LARGEST:
                scale = np.float32(np.nan)
    elif total > 0.0:
        typical = scaling.seen[1] if scaling.seen[1] > 0.0 else np.float64(total)
        scale = np.float32(np.sqrt((1.0 - scaling.bias * scaling.bias) / np.sqrt(total * typical)))
        squares *= np.float64(scale) * np.float64(scale)
    for j in range(d):
        z[j] *= scale
    return Features(z, np.float32(1.0), scaling.bias, squares)


def _sparse_standardise(scaling, scratch, x):  # type: ignore[no-untyped-def]
    indices, values, n = x.indices, x.values, x.indices.shape[0]
    df, z, rows = scaling.df, scratch.z, scaling.seen[0] + 2.0
    total = np.float32(0.0)
    for i in range(n):
        v = values[i] * np.float32(np.log(max(1.0, rows / (df[indices[i]] + 1.0))) + 0.1)
        z[i] = v
        total += v * v
    if total > 0.0:
        scale = np.float32(np.sqrt((1.0 - scaling.bias * scaling.bias) / total))
        for i in range(n):
            z[i] *= scale
    squares = np.inf  # what is huge, a step refuses
    if total <= 1e30:
        squares = 1.0 - scaling.bias * scaling.bias if total > 0.0 else 0.0
    return Features(SparseRow(indices, z[:n], x.width), np.float32(1.0), scaling.bias, squares)


@kernel
def _count_in(x: Any, mean: Any, var: Any, inverse: Any, a: Any, b: Any) -> Any:
    """Move mean and var; the squared length of z, as it was before. (From 0 on, a loop is vectorised.)"""
    high, low = np.float32(CLIP), np.float32(-CLIP)
    total = np.float32(0.0)
    for j in range(x.shape[0]):
        gap = x[j] - mean[j]
        v = min(high, max(low, gap * inverse[j]))
        total += v * v
        mean[j] += a * gap
        var[j] = b * (var[j] + a * gap * gap)
    return total


def _dense_absorb(scaling, x):  # type: ignore[no-untyped-def]
    mean, var, inverse, seen = scaling.mean, scaling.var, scaling.inverse, scaling.seen
    d = x.shape[0]
    rate = max(1.0 / (seen[0] + 1.0), scaling.forget)
    a, b = np.float32(rate), np.float32(1.0 - rate)
    total = np.float32(0.0)
    high, low = np.float32(CLIP), np.float32(-CLIP)
    n, known = scaling.numbers, scaling.known
    for j in range(n):
        if x[n + j] == 0.0:
            gap = x[j] - mean[j]
            v = min(high, max(low, gap * inverse[j]))
            total += v * v
            own = np.float32(max(1.0 / (known[j] + 1.0), scaling.forget))
            known[j] += 1.0
            mean[j] += own * gap
            var[j] = (np.float32(1.0) - own) * (var[j] + own * gap * gap)
    total += _count_in(x[n:], mean[n:], var[n:], inverse[n:], a, b)
    seen[0] += 1.0
    seen[1] += (np.float64(total) - seen[1]) * max(1.0 / seen[0], 0.001, scaling.forget)
    if seen[0] >= seen[2]:  # 1/sd moves slowly: every row at first, then after each further 1 %
        seen[2] = seen[0] + 1.0 + np.floor(seen[0] * 0.01)
        for j in range(d):
            inverse[j] = np.float32(1.0) / np.sqrt(var[j]) if var[j] > 1e-30 else np.float32(0.0)
        for j in range(n, d if n else 0):  # marks keep their scale
            inverse[j] = min(inverse[j], np.float32(1.0))


def _sparse_absorb(scaling, x):  # type: ignore[no-untyped-def]
    indices, df, seen = x.indices, scaling.df, scaling.seen
    seen[0] += 1.0
    for i in range(indices.shape[0]):
        df[indices[i]] += np.float32(1.0)
    if scaling.forget > 0.0 and seen[0] * scaling.forget > 1.0:  # halve the past now and then
        seen[0] *= 0.5
        for j in range(df.shape[0]):
            df[j] *= np.float32(0.5)


# x~ as Features, in scratch space.
standardise = by_row(2, _dense_standardise, _sparse_standardise)
# Count a row in.
absorb = by_row(1, _dense_absorb, _sparse_absorb)
