"""How often a model is wrong that doubts its best label by d = 1 - max p:  logit Pr(e = 1) = a + b logit d.

By maximum likelihood from checks (items whose label was found later), recent ones count more, with the priors
a ~ N(0, 1) and b ~ N(1, 0.5). A b below 1 is a model that is too sure of itself.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.theory.platt import fit_platt, sigmoid

Pair = Array | tuple[float, float]  # of a and b
RECENT = 0.5  # of all checks: how far back they count
FEWEST = 50.0
STEPS = 50  # of Newton's method


def logit(wrong: Array | float) -> Array:
    """log(e / (1 - e)), for chances that are not quite 0 or 1."""
    e = np.clip(wrong, 1e-6, 1.0 - 1e-6)
    log_odds: Array = np.log(e / (1.0 - e))
    return log_odds


def chance(ab: Array, z: Array) -> Array:
    """Pr(e = 1) where logit d = z."""
    return sigmoid(ab[0] + ab[1] * z)


def fit(z: Array, e: Array, mean: Pair = (0.0, 1.0), sd: Pair = (1.0, 0.5)) -> tuple[Array, Array]:
    """a and b, and their covariance, from checks in their order.

    Args:
        z: logit d of each.
        e: the chance that its label was wrong.
        mean, sd: of the prior.
    """
    n = len(z)
    weight = np.exp(-(n - np.arange(n)) / max(FEWEST, RECENT * n))
    return fit_platt(z, weight, weight * e, mean, 1.0 / np.asarray(sd) ** 2, STEPS)
