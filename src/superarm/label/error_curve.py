"""How often a model is wrong that doubts its best label by d = 1 - max p, with z = logit d.

    Pr(e = 1)  =  phi + (1 - phi) sigmoid(a + b z)

A b below 1 is a model that is too sure of itself. phi is a **floor**: the share of rows that are wrong however sure the
model is (noisy labels, near-duplicates with other labels). `ErrorCurve` is the posterior of all three on a grid, with
the priors  a ~ N(0, 1),  b ~ N(1, 0.5),  phi ~ Beta(1/2, FLOOR_PRIOR).
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.theory.platt import sigmoid

# trials fade over this share of all of them, and over this number at least
RECENT_SHARE, MIN_RECENT = 0.5, 50.0
FLOOR_PRIOR = 10.0  # as if half an error had been found in so many audits
NODES = np.linspace(-14.0, 14.0, 57)  # values of z between which curves are straight
SLOPES, OFFSETS = (
    grid.ravel() for grid in np.meshgrid(np.linspace(0.0, 1.75, 15), np.linspace(-3.0, 3.0, 19))
)
# sigmoid(a + b z) of each a and b at the nodes
SIGMOIDS_AT_NODES = sigmoid(OFFSETS[:, None] + SLOPES[:, None] * NODES)
N_FLOORS = 24


def recency_weights(n: int) -> Array:
    """Return the weights of n trials in their order: recent ones count more."""
    weights: Array = np.exp(-(n - np.arange(n)) / max(MIN_RECENT, RECENT_SHARE * n))
    return weights


class ErrorCurve:
    """The posterior of phi, a and b after some trials.

    Args:
        z: logit d of each trial.
        e: the probability that its label was wrong.
        weight: how much each trial counts.

    Attributes:
        floor, slope: the means of phi and b.
    """

    def __init__(self, z: Array, e: Array, weight: Array) -> None:
        n_wrong, n_right = weights_at_nodes(z, weight * e), weights_at_nodes(z, weight * (1.0 - e))
        some = n_wrong + n_right > 0.0
        n, k = float(weight.sum()) + FLOOR_PRIOR, float(n_wrong.sum()) + 0.5
        # phi = sin² t: under Beta(1/2, 1/2) t is uniform, and its posterior about as wide everywhere
        farthest = np.arcsin(min(1.0, k / n) ** 0.5) + 2.5 / n**0.5
        t = (np.arange(N_FLOORS) + 0.5) * min(farthest, 1.5) / N_FLOORS
        self._floors = np.sin(t) ** 2
        rest = np.cos(t) ** 2
        curves, floors = SIGMOIDS_AT_NODES[None, :, some], self._floors[:, None, None]
        log_posterior = np.log(floors + (1.0 - floors) * curves) @ n_wrong[some]
        log_posterior += np.log1p(-SIGMOIDS_AT_NODES[:, some]) @ n_right[some]
        log_posterior += np.log(rest)[:, None] * (n_right.sum() + FLOOR_PRIOR - 0.5)
        log_posterior -= OFFSETS**2 / 2.0 + 2.0 * (SLOPES - 1.0) ** 2
        posterior = np.exp(log_posterior - log_posterior.max())
        self._posterior = posterior / posterior.sum()
        self.floor = float(self._floors @ self._posterior.sum(axis=1))
        self.slope = float(self._posterior.sum(axis=0) @ SLOPES)
        self._mean = self.floor + (1.0 - self._floors) @ self._posterior @ SIGMOIDS_AT_NODES

    def error_probabilities(self, z: Array) -> Array:
        """Return Pr(e = 1) of items, given logit d of each."""
        probabilities: Array = np.interp(z, NODES, self._mean)
        return probabilities

    def quantile(self, z: Array, weight: Array, share: float) -> float:
        """Return a quantile of the sum of weight × Pr(e = 1) over items, given logit d of each.

        As in the interval of Clopper and Pearson, half an error more counts for upper ones, half an error less for
        lower ones: work that stops as soon as a bound is low enough stops too often at a lucky moment.
        """
        by_curve, floors = SIGMOIDS_AT_NODES @ weights_at_nodes(z, weight), self._floors[:, None]
        sums = (floors * weight.sum() + (1.0 - floors) * by_curve).ravel()
        posterior = (self._posterior * floors ** (0.5 if share > 0.5 else -0.5)).ravel()
        order = np.argsort(sums)
        below = np.cumsum(posterior[order])
        return float(np.interp(share * below[-1], below, sums[order]))


def weights_at_nodes(z: Array, weight: Array) -> Array:
    """Share the weight of each item between the two nodes that z is between, as linear interpolation does."""
    position = np.clip((z - NODES[0]) / (NODES[1] - NODES[0]), 0.0, len(NODES) - 1.001)
    node = position.astype(np.intp)
    part = position - node
    size = len(NODES)
    at_nodes: Array = np.bincount(node, weight * (1.0 - part), size)
    return at_nodes + np.bincount(node + 1, weight * part, size)
