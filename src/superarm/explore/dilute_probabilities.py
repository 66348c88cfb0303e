"""Exact probabilities of the dilute draw, the paper's draw around a top set (dilute.py has its equation)."""

from __future__ import annotations

from functools import lru_cache
from math import lgamma
from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.native.stateless_rules import log_set_table


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


class DiluteMoments(NamedTuple):
    """E[1_S] and E[1_S 1_S'] of a dilute draw: block 0 are the labels of the top set, block 1 the others.

    Attributes:
        inclusion: the probability that a label of each block is shown.
        pairs: the probability that two different labels of these blocks are shown together; 0 where there are none.
    """

    inclusion: Array
    pairs: Array


@lru_cache(maxsize=4096)
def dilute_moments(n: int, m: int, gamma: float) -> DiluteMoments:
    """Return the moments of the dilute draw of m out of n labels."""
    p, inside = overlap_probabilities(n, m, gamma), np.arange(m + 1)
    outside, rest = m - inside, n - m

    def mean(counts: Array, total: int) -> float:
        return float(p @ counts) / total if total else 0.0

    two_inside = mean(inside * (inside - 1), m * (m - 1))
    two_outside = mean(outside * (outside - 1), rest * (rest - 1))
    one_each = mean(inside * outside, m * rest)
    return DiluteMoments(
        inclusion=np.array([mean(inside, m), mean(outside, rest)]),
        pairs=np.array([[two_inside, one_each], [one_each, two_outside]]),
    )
