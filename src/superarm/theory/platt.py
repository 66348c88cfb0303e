"""Expectations calibrated by answers (Platt scaling):  Pr(f = 1) = sigmoid(a + b x), x the logit that was expected."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm._types import Array


def sigmoid(x: Any) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def logit(p: Any) -> Array:
    """Return log(p / (1 - p)), of 0 and 1 as of what is a millionth away from them."""
    p = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.asarray(np.log(p / (1.0 - p)))


def fit_platt(x: Array, n: Array, hits: Array, mean: Any, precision: Any, steps: int) -> tuple[Array, Array]:
    """Return a and b of greatest posterior probability, and their covariance.

    Args:
        x: the logits that were expected.
        n: how many answers, or how much weight, each stands for.
        hits: how many of these were yes.
        mean: the mean of the normal prior of a and b.
        precision: 1 / variance of a and of b, in that prior.
        steps: the most steps of Newton's method.
    """
    (a, b), (m_a, m_b), (w_a, w_b) = mean, mean, precision
    h = np.diag([w_a, w_b])
    for _ in range(steps):
        p = sigmoid(a + b * x)
        error, spread = hits - n * p, n * p * (1.0 - p)
        g = np.array([error.sum() - w_a * (a - m_a), (error * x).sum() - w_b * (b - m_b)])
        cross = (spread * x).sum()
        h = np.array([[spread.sum() + w_a, cross], [cross, (spread * x * x).sum() + w_b]])
        step = np.linalg.solve(h, g)
        step /= max(1.0, np.abs(step).max())  # where it is flat, Newton's steps are too bold
        a, b = float(a + step[0]), float(max(b + step[1], 0.0))
        if np.abs(step).max() < 1e-9:
            break
    return np.array([a, b]), np.linalg.inv(h)
