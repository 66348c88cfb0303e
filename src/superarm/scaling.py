"""Rows on one scale, learnt online, so that no learner's step needs tuning to the data.

    dense    z_j = clip((x_j - mean_j) / sd_j, ±5),  x~ = z sqrt((1 - bias^2) / (|z| rms|z|))
    sparse   z_j = x_j (log((n + 1) / df_j) + 0.1),  x~ = z sqrt(1 - bias^2) / |z|

mean, sd and the root mean square of |z| run over the rows seen so far; df_j counts those whose
feature j is not zero. Beside x~ stands the constant feature ``bias``. Multiplying all features by a
number changes nothing. `prepare` reads the statistics, `absorb` counts a row in. ``forget`` (0 for
never) is the least weight of a new row.

The state of a learner that uses them has: mean, var, inverse, z (float32, d; dense), df (float32, d;
sparse, with z), seen (float64, 3: rows counted, mean squared |z|, when 1/sd is due again), bias, forget.
"""

from __future__ import annotations

import numpy as np

from superarm.numerics import by_layout

__all__ = ["absorb", "prepare", "prepared"]

CLIP = 5.0
LARGEST = np.finfo(np.float32).max


def _dense_prepare(state, x):  # type: ignore[no-untyped-def]
    mean, inverse, z = state.mean, state.inverse, state.z
    d = x.shape[0]
    high, low = np.float32(CLIP), np.float32(-CLIP)
    total, bad = np.float32(0.0), 0
    for j in range(d):
        bad += not abs(x[j]) <= LARGEST
        v = min(high, max(low, (x[j] - mean[j]) * inverse[j]))
        z[j] = v
        total += v * v
    if bad:  # clipping would hide NaN and inf: let the scores show them
        z[0] = np.nan
    elif total > 0.0:
        typical = state.seen[1] if state.seen[1] > 0.0 else np.float64(total)
        scale = np.float32(np.sqrt((1.0 - state.bias * state.bias) / np.sqrt(total * typical)))
        for j in range(d):
            z[j] *= scale
    return z


def _sparse_prepare(state, x):  # type: ignore[no-untyped-def]
    indices, values = x
    df, z, n = state.df, state.z, state.seen[0] + 2.0
    total = np.float32(0.0)
    for i in range(indices.shape[0]):
        v = values[i] * np.float32(np.log(max(1.0, n / (df[indices[i]] + 1.0))) + 0.1)
        z[i] = v
        total += v * v
    if total > 0.0:
        scale = np.float32(np.sqrt((1.0 - state.bias * state.bias) / total))
        for i in range(indices.shape[0]):
            z[i] *= scale
    return indices, z[: indices.shape[0]]


def _dense_absorb(state, x):  # type: ignore[no-untyped-def]
    mean, var, inverse, seen = state.mean, state.var, state.inverse, state.seen
    d = x.shape[0]
    rate = max(1.0 / (seen[0] + 1.0), state.forget)
    a, b = np.float32(rate), np.float32(1.0 - rate)
    total = np.float32(0.0)
    high, low = np.float32(CLIP), np.float32(-CLIP)
    for j in range(d):
        gap = x[j] - mean[j]
        v = min(high, max(low, gap * inverse[j]))
        total += v * v
        mean[j] += a * gap
        var[j] = b * (var[j] + a * gap * gap)
    seen[0] += 1.0
    seen[1] += (np.float64(total) - seen[1]) * max(1.0 / seen[0], 0.001, state.forget)
    if seen[0] >= seen[2]:  # 1/sd moves slowly: every row at first, then after each further 1 %
        seen[2] = seen[0] + 1.0 + np.floor(seen[0] * 0.01)
        for j in range(d):
            inverse[j] = np.float32(1.0) / np.sqrt(var[j]) if var[j] > 1e-30 else np.float32(0.0)


def _sparse_absorb(state, x):  # type: ignore[no-untyped-def]
    indices = x[0]
    df, seen = state.df, state.seen
    seen[0] += 1.0
    for i in range(indices.shape[0]):
        df[indices[i]] += np.float32(1.0)
    if state.forget > 0.0 and seen[0] * state.forget > 1.0:  # halve the past now and then
        seen[0] *= 0.5
        for j in range(df.shape[0]):
            df[j] *= np.float32(0.5)


# x~ for a row x, in scratch space of the state.
prepare = by_layout(1, _dense_prepare, _sparse_prepare)
# What the last `prepare` of x left there.
prepared = by_layout(
    1, lambda state, x: state.z[: x.shape[0]], lambda state, x: (x[0], state.z[: x[0].shape[0]])
)
# Count a row in.
absorb = by_layout(1, _dense_absorb, _sparse_absorb)
