"""Exact probabilities by enumeration: slow, small and obviously right."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations
from math import log

import numpy as np

SIZES = [(k, m) for k in range(2, 8) for m in range(1, k)]
GAMMAS = [0.05, 0.3, 1.0]


def label_probabilities(k, m, gamma):
    """P of the paper's eq. 5, for the top set {0, ..., m-1}."""
    return np.array([(1 - gamma) / m * (r < m) + gamma / k for r in range(k)])


def ordered_draws(k, m, gamma):
    """Every ordered draw of m labels, with its probability Z."""
    P = label_probabilities(k, m, gamma)
    draws = {}
    for order in permutations(range(k), m):
        z, left = 1.0, 1.0
        for r in order:
            z *= P[r] / left
            left -= P[r]
        draws[order] = z
    return draws


def set_probabilities(k, m, gamma):
    """Every set of m labels, with its probability."""
    sets = defaultdict(float)
    for order, z in ordered_draws(k, m, gamma).items():
        sets[frozenset(order)] += z
    return dict(sets)


def group(r, shown, m):
    """The place of label r among the groups S n Y^, S - Y^, Y^ - S, rest."""
    return (0 if r in shown else 2) + (0 if r < m else 1)


def log_ordered_probability(n, m, gamma, in_top):
    """log Z of an ordered draw, given for each drawn label whether it is in the top set."""
    a, b = (1 - gamma) / m + gamma / n, gamma / n
    inside = outside = 0
    total = 0.0
    for flag in in_top:
        total += log(a if flag else b) - log((m - inside) * a + (n - m - outside) * b)
        inside, outside = inside + flag, outside + (not flag)
    return total
