"""How sets are drawn, as one can ask about it: how probable is a set, a label, a pair of labels?

A rule at one moment is a `SetDistribution`. Most show one of a few sets, or now and then a uniform one: `FewSets`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb, exp, lgamma, prod

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label


def log_comb(n: int, r: int) -> float:
    """log of n over r."""
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1)


def uniform_pair(n: int, m: int) -> float:
    """The probability that a uniform set of m out of n shows both of two labels."""
    return m * (m - 1) / (n * (n - 1)) if n > 1 else 0.0


class SetDistribution(ABC):
    """The distribution of a set of m out of the eligible labels."""

    def __init__(self, eligible: Sequence[Label], m: int) -> None:
        self.eligible, self.m = tuple(eligible), m
        self.position = {label: i for i, label in enumerate(self.eligible)}

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """The probability that exactly these labels are shown, in whatever order."""

    @abstractmethod
    def inclusion(self) -> Array:
        """For each eligible label, the probability that it is shown."""

    @abstractmethod
    def pairs(self) -> Array:
        """For each pair of eligible labels, the probability that both are shown: E[1_S 1_S']."""


class FewSets(SetDistribution):
    """One of a few sets, each with its probability; with ``uniform``, a share of all sets alike.

    Args:
        eligible: the labels that could be shown.
        m: how many a uniform set has.
        sets: a few sets and their probabilities; of any size.
        uniform: the share of sets drawn from all alike.
    """

    def __init__(
        self,
        eligible: Sequence[Label],
        m: int,
        sets: Iterable[tuple[Iterable[Label], float]],
        uniform: float = 0.0,
    ) -> None:
        super().__init__(eligible, m)
        self.uniform = uniform
        self.chances: dict[frozenset[Label], float] = {}
        for labels, chance in sets:
            key = frozenset(labels)
            self.chances[key] = self.chances.get(key, 0.0) + chance

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if not shown <= self.position.keys():
            return 0.0
        flat = exp(-log_comb(len(self.eligible), self.m)) if self.uniform and len(shown) == self.m else 0.0
        return (1.0 - self.uniform) * self._few(shown) + self.uniform * flat

    def inclusion(self) -> Array:
        few = np.zeros(len(self.eligible))
        for labels, chance in self.chances.items():
            few[[self.position[label] for label in labels]] += chance
        return np.asarray((1.0 - self.uniform) * few + self.uniform * self.m / len(self.eligible))

    def pairs(self) -> Array:
        n, m, few = len(self.eligible), self.m, self._few_pairs()
        if not self.uniform:
            return few
        flat = np.full((n, n), uniform_pair(n, m))
        np.fill_diagonal(flat, m / n)
        return np.asarray((1.0 - self.uniform) * few + self.uniform * flat)

    def _few(self, shown: frozenset[Label]) -> float:
        """The probability of these labels among the few sets."""
        return self.chances.get(shown, 0.0)

    def _few_pairs(self) -> Array:
        few = np.zeros((len(self.eligible), len(self.eligible)))
        for labels, chance in self.chances.items():
            at = [self.position[label] for label in labels]
            few[np.ix_(at, at)] += chance
        return few


class TiedSets(FewSets):
    """One of a few sets, in which tied labels may stand for each other: all of a group alike.

    Args:
        eligible: the labels that could be shown.
        m: how many were shown.
        sets: a few sets and their probabilities, for one order of the tied labels.
        groups: lists of tied labels; a label that is in none is tied with nobody.
        uniform: the share of sets drawn from all alike.
    """

    def __init__(
        self,
        eligible: Sequence[Label],
        m: int,
        sets: Iterable[tuple[Iterable[Label], float]],
        groups: Iterable[Sequence[Label]],
        uniform: float = 0.0,
    ) -> None:
        super().__init__(eligible, m, sets, uniform)
        self.group = {label: i for i, label in enumerate(self.eligible)}
        for tied in groups:
            self.group |= dict.fromkeys(tied, self.group[tied[0]])
        self.size = Counter(self.group.values())
        self.ways: Counter[frozenset[tuple[int, int]]] = Counter()  # how many of each group
        for labels, chance in self.chances.items():
            self.ways[self._way(labels)] += chance  # type: ignore[assignment]

    def _way(self, labels: Iterable[Label]) -> frozenset[tuple[int, int]]:
        return frozenset(Counter(self.group[label] for label in labels).items())

    def _few(self, shown: frozenset[Label]) -> float:
        way = self._way(shown)
        return self.ways[way] / prod(comb(self.size[group], count) for group, count in way)

    def inclusion(self) -> Array:
        return np.diagonal(self.pairs()).copy()

    def _few_pairs(self) -> Array:
        n = len(self.eligible)
        group = np.array([self.group[label] for label in self.eligible])
        size = np.array([self.size[g] for g in range(n)])
        few = np.zeros((n, n))
        for way, chance in self.ways.items():
            shown = np.zeros(n)
            shown[[g for g, _ in way]] = [count for _, count in way]
            one = shown[group] / size[group]  # the share of its group that is shown
            again = np.maximum(shown[group] - 1, 0) / np.maximum(size[group] - 1, 1)
            same = group[:, None] == group[None, :]
            both = one[:, None] * np.where(same, again[None, :], one[None, :])
            np.fill_diagonal(both, one)
            few += chance * both
        return few
