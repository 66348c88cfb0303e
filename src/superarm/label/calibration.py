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
    chances: Array = 1.0 / (1.0 + np.exp(-np.clip(ab[0] + ab[1] * z, -30.0, 30.0)))
    return chances


def fit(z: Array, e: Array, mean: Any = (0.0, 1.0), sd: Any = (1.0, 0.5)) -> tuple[Array, Array]:
    """a and b, and their covariance, from checks in their order.

    Args:
        z: logit d of each.
        e: the chance that its label was wrong.
        mean, sd: of the prior.
    """
    n = len(z)
    weight = np.exp(-(n - np.arange(n)) / max(FEWEST, RECENT * n))
    X, centre, precision = np.c_[np.ones(n), z], np.asarray(mean, float), np.diag(1.0 / np.asarray(sd) ** 2)
    ab, bend = centre.copy(), precision
    for _ in range(50):  # Newton's method
        q = chance(ab, z)
        slope = X.T @ (weight * (e - q)) - precision @ (ab - centre)
        bend = (X * (weight * q * (1.0 - q))[:, None]).T @ X + precision
        step = np.linalg.solve(bend, slope)
        ab = ab + step
        if abs(step).max() < 1e-6:
            break
    return ab, np.linalg.inv(bend)
