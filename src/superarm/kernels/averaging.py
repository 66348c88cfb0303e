"""Weights W that keep moving, and their running average, for dense and sparse rows.

After update t the average moves by rho_t (W - average), rho_t = max(3 / (t + 3), forget).

    dense    A is the average; it takes W in every 8 updates (every update at first), with the rho of
             all of them at once
    sparse   average = W - omega A, exactly: an update adds (c x) / omega to A and omega shrinks by
             1 - rho, so only the non-zeros of x are touched

``omega`` holds: dense, the product of 1 - rho since W was last taken in; sparse, omega; and the
number of updates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import by_row, kernel
from superarm.kernels.linear import scores, weights

__all__ = ["Averaged", "average_scores", "averaging_rate", "last_scores", "step"]

AVERAGE = 3.0
EVERY = 8
SMALL = 3e-4  # dense steps below it can wait until the average takes W in; most of them are

Array = np.ndarray[Any, Any]


class Averaged(NamedTuple):
    """The weights, and what their average is kept in."""

    W: Array
    A: Array
    omega: Array
    forget: float

    @classmethod
    def start(cls, shape: tuple[int, int], forget: float) -> Averaged:
        return cls(weights(shape), weights(shape), np.array([1.0, 0.0]), forget)


@kernel
def averaging_rate(updates: float, forget: float) -> float:
    """rho of the update that follows ``updates`` earlier ones."""
    return max(AVERAGE / (updates + 1.0 + AVERAGE), forget)


def _dense_scores(averaged, f, average, last):  # type: ignore[no-untyped-def]
    scores(averaged.A, f, average)


def _sparse_scores(averaged, f, average, last):  # type: ignore[no-untyped-def]
    scores(averaged.W, f, last)
    scores(averaged.A, f, average)
    w = np.float32(averaged.omega[0])
    for r in range(last.shape[0]):
        average[r] = last[r] - w * average[r]


def _dense_step(averaged, c, f):  # type: ignore[no-untyped-def]
    W, A, omega = averaged.W, averaged.A, averaged.omega
    x, k, d, factor, bias = f.x, W.shape[0], f.x.shape[0], f.factor, np.float32(f.bias)
    omega[0] *= 1.0 - averaging_rate(omega[1], averaged.forget)
    omega[1] += 1.0
    take = omega[1] < 64.0 or omega[1] % EVERY == 0.0
    rate = np.float32(1.0 - omega[0])
    for r in range(k):
        g = factor * np.float32(c[r])
        w, a = W[r], A[r]
        w[d] += np.float32(c[r]) * bias
        if take:
            for j in range(d):
                v = w[j] + g * x[j]
                w[j] = v
                a[j] += rate * (v - a[j])
            a[d] += rate * (w[d] - a[d])
        elif abs(c[r]) > SMALL:
            for j in range(d):
                w[j] += g * x[j]
    if take:
        omega[0] = 1.0


def _sparse_step(averaged, c, f):  # type: ignore[no-untyped-def]
    W, A, omega = averaged.W, averaged.A, averaged.omega
    indices, values = f.x.indices, f.x.values
    k, last = W.shape[1], W.shape[0] - 1
    inverse = np.float32(1.0 / omega[0])
    for i in range(indices.shape[0] + 1):
        at, v = last, np.float32(f.bias)
        if i < indices.shape[0]:
            at, v = np.int64(indices[i]), f.factor * values[i]
        w, a = W[at], A[at]
        for r in range(k):
            g = np.float32(c[r]) * v
            w[r] += g
            a[r] += inverse * g
    omega[0] *= 1.0 - averaging_rate(omega[1], averaged.forget)
    omega[1] += 1.0
    if omega[0] < 1e-12:  # rare: start omega anew before 1 / omega outgrows float32
        for i in range(A.shape[0]):
            for r in range(k):
                A[i, r] *= np.float32(omega[0])
        omega[0] = 1.0


# Scores of the average; for sparse rows those of W come along, and `last_scores` has nothing to do.
average_scores = by_row(1, _dense_scores, _sparse_scores)
last_scores = by_row(1, lambda averaged, f, last: scores(averaged.W, f, last), lambda averaged, f, last: None)
# w_r += c_r x for every label r, and the average follows.
step = by_row(2, _dense_step, _sparse_step)
