"""Dilute: the paper's draw around the top set (Batra & Manwani 2021, eq. 5).

With the top set Y^ (the m best of n labels), P(r) = (1-gamma)/m 1[r in Y^] + gamma/n, and labels are
drawn one after another without replacement. Only two weights occur,

    a = (1-gamma)/m + gamma/n   inside Y^,        b = gamma/n   outside,

so a set's probability depends on j = |S n Y^| alone, and drawing costs O(m) whatever n is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp
from typing import Any, NamedTuple, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label
from superarm.explore.distributions import SetDistribution, log_comb
from superarm.explore.rule import Rule, RuleParams
from superarm.native.rule import RuleKernel
from superarm.native.rules import DiluteKernel, log_set_table
from superarm.parameters import check_number


class Dilute(Rule):
    """The paper's draw around the top set.

    Args:
        gamma: the share of exploration, in (0, 1].
    """

    name = "dilute"

    def __init__(
        self,
        *,
        gamma: float = 0.1,
        **common: Unpack[RuleParams],
    ) -> None:
        super().__init__(**common)
        self.gamma = check_number("gamma", type(self).__name__, gamma, 0.0, 1.0)

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return DiluteKernel(k, seed, self.gamma)

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        return DiluteDistribution(eligible, m, top, record["gamma"])


class DiluteDistribution(SetDistribution):
    """Inside and outside of the top set, all labels are alike."""

    def __init__(self, eligible: Sequence[Label], m: int, top: Sequence[Label], gamma: float) -> None:
        super().__init__(eligible, m)
        self.top = frozenset(top)
        self._log_set = log_set_probabilities(len(self.eligible), m, gamma)
        self._within = np.array([label in self.top for label in self.eligible])
        all_shown = m >= len(self.eligible)
        self._inclusion = (
            Inclusion(1.0, 1.0, 1.0, 1.0, 1.0) if all_shown else inclusion(len(eligible), m, gamma)
        )

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if len(shown) != self.m or not shown <= self.position.keys():
            return 0.0
        return exp(self._log_set[len(shown & self.top)])

    def inclusion(self) -> Array:
        return np.where(self._within, self._inclusion.inside, self._inclusion.outside)

    def pair_inclusion(self) -> Array:
        first, second = self._within[:, None], self._within[None, :]
        p = self._inclusion
        both = np.where(first & second, p.both_inside, p.one_each)
        both = np.where(~first & ~second, p.both_outside, both)
        np.fill_diagonal(both, self.inclusion())
        return both


# ---------------------------------------------------------------- probabilities


def weights(n: int, m: int, gamma: float) -> tuple[float, float]:
    """The weights a, of a label inside the top set, and b, of one outside."""
    return (1.0 - gamma) / m + gamma / n, gamma / n


def log_set_probabilities(n: int, m: int, gamma: float) -> Array:
    """Return the log of the probability of a set of m out of n labels with |S n Y^| = j, j = 0..m.

    With n <= m all n are shown.
    """
    return np.asarray(log_set_table(n, min(n, m), gamma))


def overlap_probabilities(n: int, m: int, gamma: float) -> Array:
    """P(|S n Y^| = j) for j = 0..m."""
    log_set = log_set_probabilities(n, m, gamma)
    logs = [
        log_comb(m, j) + log_comb(n - m, m - j) + log_set[j] if m - j <= n - m else -np.inf
        for j in range(m + 1)
    ]
    return np.asarray(np.exp(np.array(logs)))


class Inclusion(NamedTuple):
    """Probabilities that a label (or both of two labels) of Y^ / outside Y^ is shown."""

    inside: float
    outside: float
    both_inside: float
    both_outside: float
    one_each: float


def inclusion(n: int, m: int, gamma: float) -> Inclusion:
    """Inclusion probabilities of single labels and pairs (0 where no such pair exists)."""
    p, j = overlap_probabilities(n, m, gamma), np.arange(m + 1)
    out, rest = m - j, n - m

    def mean(counts: Array, total: int) -> float:
        return float(p @ counts) / total if total else 0.0

    return Inclusion(
        mean(j, m),
        mean(out, rest),
        mean(j * (j - 1), m * (m - 1)),
        mean(out * (out - 1), rest * (rest - 1)),
        mean(j * out, m * rest),
    )
