"""Exact probabilities of the dilute draw, the paper's draw around a top set (dilute.py has its equation)."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import lgamma

import numpy as np

from superarm._types import Array
from superarm.native.rules import log_set_table


def log_comb(n: int, r: int) -> float:
    """Return the logarithm of n over r."""
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1)


def label_weights(n: int, m: int, gamma: float) -> tuple[float, float]:
    """Return the weights a, of a label inside the top set, and b, of one outside."""
    return (1.0 - gamma) / m + gamma / n, gamma / n


def log_set_probabilities(n: int, m: int, gamma: float) -> Array:
    """Return log P(S) of a set S of m out of n labels for each overlap j = |S n Y^|; with n <= m all n are shown."""
    return np.asarray(log_set_table(n, min(n, m), gamma))


def overlap_probabilities(n: int, m: int, gamma: float) -> Array:
    """Return P(|S n Y^| = j) for j = 0..m."""
    log_set = log_set_probabilities(n, m, gamma)
    logs = [
        log_comb(m, j) + log_comb(n - m, m - j) + log_set[j] if m - j <= n - m else -np.inf
        for j in range(m + 1)
    ]
    return np.asarray(np.exp(np.array(logs)))


class DiluteMoments:
    """E[1_S] and D = E[1_S 1_S'] of the dilute draw of m out of n labels.

    Both are the same for all labels of a block: block 0 are the labels of the top set, block 1 the others.

    Attributes:
        inclusion: the probability that a label of each block is shown.
        pairs: the probability that two different labels of these blocks are shown together; 0 where there are none.
    """

    def __init__(self, n: int, m: int, gamma: float) -> None:
        p, inside = overlap_probabilities(n, m, gamma), np.arange(m + 1)
        outside, rest = m - inside, n - m

        def mean(counts: Array, total: int) -> float:
            return float(p @ counts) / total if total else 0.0

        self.sizes = np.array([m, rest])
        self.inclusion = np.array([mean(inside, m), mean(outside, rest)])
        one_each = mean(inside * outside, m * rest)
        self.pairs = np.array(
            [
                [mean(inside * (inside - 1), m * (m - 1)), one_each],
                [one_each, mean(outside * (outside - 1), rest * (rest - 1))],
            ]
        )
        # D = diag(diagonal_excess) + pairs
        self.diagonal_excess = self.inclusion - np.diagonal(self.pairs)

    def solve(self, values: Array, block: Array) -> Array:
        """Return D^-1 times ``values``, one for each label, of which ``block`` tells the block; for m < n."""
        shared = self._pairs_of_inverse @ np.bincount(block, values, 2)
        return np.asarray((values - shared[block]) / self.diagonal_excess[block])

    @cached_property
    def _pairs_of_inverse(self) -> Array:
        """P in D^-1 = diag(1 / diagonal_excess) (I - P), the same within a block as well."""
        sums = np.diag(self.diagonal_excess) + self.sizes[:, None] * self.pairs
        return np.asarray(self.pairs @ np.linalg.inv(sums))


@lru_cache(maxsize=4096)
def dilute_moments(n: int, m: int, gamma: float) -> DiluteMoments:
    """Return the moments of the dilute draw of m out of n labels."""
    return DiluteMoments(n, m, gamma)
