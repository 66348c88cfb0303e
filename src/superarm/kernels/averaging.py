"""Weights W that keep moving, and their running average, for dense and sparse rows.

After update t the average moves by rho_t (W - average), rho_t = max(w / (t + w), forget), with a
window w of 3 (dense) or 20 (sparse).

    dense    A is the average; it takes W in every 8 updates (every update at first), with the rho of
             all of them at once; in between, steps below SMALL (most of them) are not made
    sparse   average = W - omega A, exactly: what a step adds to W, it adds to A divided by omega, and
             omega shrinks by 1 - rho, so only the non-zeros of x are touched (pace.py has the step)

``omega`` holds: dense, the product of 1 - rho since W was last taken in; sparse, omega; and the
number of updates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import by_row, kernel
from superarm.kernels.linear import scores, weights

__all__ = ["Averaged", "average_scores", "averaging_rate", "last_scores", "shrink", "step"]

DENSE, SPARSE = 3.0, 20.0
EVERY = 8
SMALL = 3e-4  # dense steps below it are left out (but for the constant) when the average does not take W in

Array = np.ndarray[Any, Any]


class Averaged(NamedTuple):
    """The weights, and what their average is kept in."""

    W: Array
    A: Array
    omega: Array
    forget: float
    window: float

    @classmethod
    def start(cls, shape: tuple[int, int], forget: float, *, sparse: bool) -> Averaged:
        window = SPARSE if sparse else DENSE
        return cls(weights(shape), weights(shape), np.array([1.0, 0.0]), forget, window)


@kernel
def averaging_rate(updates: float, forget: float, window: float) -> float:
    """rho of the update that follows ``updates`` earlier ones."""
    return max(window / (updates + 1.0 + window), forget)


def _dense_scores(averaged, f, average, last):  # type: ignore[no-untyped-def]
    scores(averaged.A, f, average)


def _sparse_scores(averaged, f, average, last):  # type: ignore[no-untyped-def]
    scores(averaged.W, f, last)
    scores(averaged.A, f, average)
    w = np.float32(averaged.omega[0])
    for r in range(last.shape[0]):
        average[r] = last[r] - w * average[r]


@kernel
def step(averaged: Averaged, c: Any, f: Any) -> None:
    """w_r += c_r x for every label r and a dense row, and the average follows."""
    W, A, omega = averaged.W, averaged.A, averaged.omega
    x, k, d, factor, bias = f.x, W.shape[0], f.x.shape[0], f.factor, np.float32(f.bias)
    omega[0] *= 1.0 - averaging_rate(omega[1], averaged.forget, averaged.window)
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


@kernel
def shrink(averaged: Averaged) -> None:
    """Sparse rows: the average takes in an update that A already has."""
    A, omega = averaged.A, averaged.omega
    omega[0] *= 1.0 - averaging_rate(omega[1], averaged.forget, averaged.window)
    omega[1] += 1.0
    if omega[0] < 1e-12:  # rare: start omega anew before 1 / omega outgrows float32
        for i in range(A.shape[0]):
            for r in range(A.shape[1]):
                A[i, r] *= np.float32(omega[0])
        omega[0] = 1.0


# Scores of the average; for sparse rows those of W come along, and `last_scores` has nothing to do.
average_scores = by_row(1, _dense_scores, _sparse_scores)
last_scores = by_row(1, lambda averaged, f, last: scores(averaged.W, f, last), lambda averaged, f, last: None)
