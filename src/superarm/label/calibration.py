"""How often a model is wrong that doubts its best label by d = 1 - max p:  logit Pr(e = 1) = a + b logit d.

By maximum likelihood from checks (rows whose label was found later), recent ones count more, with the priors
a ~ N(0, 1) and b ~ N(1, 0.5). A b below 1 is a model that is too sure of itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["chance", "fit", "logit"]

RECENT = 0.5  # of all checks: how far back they count
FEWEST = 50.0

Array = np.ndarray[Any, Any]


def logit(wrong: Any) -> Any:
    """log(e / (1 - e)), for chances that are not quite 0 or 1."""
    e = np.clip(wrong, 1e-6, 1.0 - 1e-6)
    return np.log(e / (1.0 - e))


def chance(ab: Array, z: Array) -> Array:
    """Pr(e = 1) where logit d = z."""
    return 1.0 / (1.0 + np.exp(-np.clip(ab[0] + ab[1] * z, -30.0, 30.0)))


def fit(z: Array, e: Array) -> Array:
    """a and b, by Newton's method, from checks in their order: logit d, and the chance that the label was wrong."""
    n = len(z)
    weight = np.exp(-(n - np.arange(n)) / max(FEWEST, RECENT * n))
    X, mean, precision = np.c_[np.ones(n), z], np.array([0.0, 1.0]), np.diag([1.0, 4.0])
    ab = mean.copy()
    for _ in range(50):
        q = chance(ab, z)
        slope = X.T @ (weight * (e - q)) - precision @ (ab - mean)
        step = np.linalg.solve((X * (weight * q * (1.0 - q))[:, None]).T @ X + precision, slope)
        ab = ab + step
        if abs(step).max() < 1e-6:
            break
    return ab
