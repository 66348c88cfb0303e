"""How far a step goes: for sparse rows, a pace for each label and each feature.

    dense    w_r += c_r x~
    sparse   w_jr += f_r c_r x~_j / (0.06 + sqrt(G_j))          for each non-zero j and the constant

With e = c / step, the error of each label,

    H_r += rate (e_r^2 - H_r),       f_r = sqrt(H' / (H_r + 0.1 H')),   H' the mean of H over labels
    G_j += x~_j^2 sum_r (f_r e_r)^2  counted before use

Rare labels and rare words take larger steps than frequent ones, and early steps are larger than late
ones. With ``forget``, G forgets as the counts of features do (scaling.py): halved now and then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.averaging import shrink, step
from superarm.kernels.compiling import by_row

__all__ = ["Pace", "paced_step"]

FLOOR, SOFT, TINY = 0.1, 0.06, 1e-12

Array = np.ndarray[Any, Any]


class Pace(NamedTuple):
    """What has been stepped so far, by label and by feature; of dense rows, nothing."""

    step: float
    H: Array  # the running mean of e^2
    G: Array  # the sum of squared steps, the constant last
    updates: Array  # that G remembers

    @classmethod
    def start(cls, d: int, k: int, *, sparse: bool, step: float) -> Pace:
        labels, features = (k, d + 1) if sparse else (1, 1)
        return cls(step, np.zeros(labels), np.zeros(features, np.float32), np.zeros(1))


def _dense(pace, averaged, rate, c, f):  # type: ignore[no-untyped-def]
    step(averaged, c, f)


def _sparse(pace, averaged, rate, c, f):  # type: ignore[no-untyped-def]
    H, G, W, A = pace.H, pace.G, averaged.W, averaged.A
    indices, values, k, last = f.x.indices, f.x.values, W.shape[1], W.shape[0] - 1
    mean = 0.0
    for r in range(k):
        e = c[r] / pace.step
        H[r] += rate * (e * e - H[r])
        mean += H[r]
    mean /= k
    squares = 0.0
    for r in range(k):
        c[r] *= np.sqrt((mean + TINY) / (H[r] + FLOOR * mean + TINY))
        squares += c[r] * c[r]
    squared_step, inverse = np.float32(squares / (pace.step * pace.step)), np.float32(1.0 / averaged.omega[0])
    for i in range(indices.shape[0] + 1):
        at, v = last, np.float32(f.bias)
        if i < indices.shape[0]:
            at, v = np.int64(indices[i]), f.factor * values[i]
        G[at] += v * v * squared_step
        v /= np.float32(SOFT) + np.sqrt(G[at])
        w, a = W[at], A[at]
        for r in range(k):
            g = np.float32(c[r]) * v
            w[r] += g
            a[r] += inverse * g
    shrink(averaged)
    pace.updates[0] += 1.0
    if pace.updates[0] * averaged.forget > 1.0:
        pace.updates[0] *= 0.5
        for j in range(G.shape[0]):
            G[j] *= np.float32(0.5)


# w_r += c_r x at each label's and feature's pace, and the average follows. It may change c.
paced_step = by_row(4, _dense, _sparse)
