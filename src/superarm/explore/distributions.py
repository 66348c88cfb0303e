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
    """Return the log of n over r."""
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1)


def uniform_pair_probability(n: int, m: int) -> float:
    """Return the probability that a uniform set of m out of n shows both of two labels."""
    return m * (m - 1) / (n * (n - 1)) if n > 1 else 0.0


class SetDistribution(ABC):
    """The distribution of a set of m out of the eligible labels."""

    def __init__(self, eligible: Sequence[Label], m: int) -> None:
        self.eligible, self.m = tuple(eligible), m
        self.position = {label: i for i, label in enumerate(self.eligible)}

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """Return the probability that exactly these labels are shown, in whatever order."""

    @abstractmethod
    def inclusion(self) -> Array:
        """Return, for each eligible label, the probability that it is shown."""

    @abstractmethod
    def pair_inclusion(self) -> Array:
        """Return, for each pair of eligible labels, the probability that both are shown: E[1_S 1_S']."""


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
        self.probabilities: dict[frozenset[Label], float] = {}
        for labels, probability in sets:
            key = frozenset(labels)
            self.probabilities[key] = self.probabilities.get(key, 0.0) + probability

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if not shown <= self.position.keys():
            return 0.0
        probability = (1.0 - self.uniform) * self._few_probability(shown)
        if self.uniform and len(shown) == self.m:
            probability += self.uniform * exp(-log_comb(len(self.eligible), self.m))
        return probability

    def inclusion(self) -> Array:
        few = (1.0 - self.uniform) * self._few_inclusion()
        return np.asarray(few + self.uniform * self.m / len(self.eligible))

    def pair_inclusion(self) -> Array:
        n, m = len(self.eligible), self.m
        few = (1.0 - self.uniform) * self._few_pair_inclusion()
        if not self.uniform:
            return few
        uniform = np.full((n, n), uniform_pair_probability(n, m))
        np.fill_diagonal(uniform, m / n)
        return np.asarray(few + self.uniform * uniform)

    def _few_probability(self, shown: frozenset[Label]) -> float:
        """Return the probability of these labels among the few sets."""
        return self.probabilities.get(shown, 0.0)

    def _few_inclusion(self) -> Array:
        shown = np.zeros(len(self.eligible))
        for labels, probability in self.probabilities.items():
            shown[[self.position[label] for label in labels]] += probability
        return shown

    def _few_pair_inclusion(self) -> Array:
        both = np.zeros((len(self.eligible), len(self.eligible)))
        for labels, probability in self.probabilities.items():
            positions = [self.position[label] for label in labels]
            both[np.ix_(positions, positions)] += probability
        return both


class TiedSets(FewSets):
    """One of a few sets, in which tied labels may stand for each other: all of a group alike.

    Args:
        eligible: the labels that could be shown.
        m: how many were shown.
        sets: a few sets and their probabilities, for one order of the tied labels.
        groups: lists of tied labels; a label that is in none is a group of its own.
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
        self.group_size = Counter(self.group.values())
        # the probability of each way to take labels from groups: pairs (group, how many)
        self.group_counts: Counter[frozenset[tuple[int, int]]] = Counter()
        for labels, probability in self.probabilities.items():
            self.group_counts[self._count_groups(labels)] += probability  # type: ignore[assignment]

    def _count_groups(self, labels: Iterable[Label]) -> frozenset[tuple[int, int]]:
        return frozenset(Counter(self.group[label] for label in labels).items())

    def _few_probability(self, shown: frozenset[Label]) -> float:
        counts = self._count_groups(shown)
        return self.group_counts[counts] / prod(
            comb(self.group_size[group], count) for group, count in counts
        )

    def _few_inclusion(self) -> Array:
        shown = np.zeros(len(self.eligible))
        for counts, probability in self.group_counts.items():
            for group, count in counts:
                shown[group] += probability * count / self.group_size[group]
        return shown[[self.group[label] for label in self.eligible]]

    def _few_pair_inclusion(self) -> Array:
        n = len(self.eligible)
        group = np.array([self.group[label] for label in self.eligible])
        size = np.array([self.group_size[g] for g in range(n)])
        is_same = group[:, None] == group[None, :]
        total = np.zeros((n, n))
        for counts, probability in self.group_counts.items():
            shown = np.zeros(n)
            shown[[g for g, _ in counts]] = [count for _, count in counts]
            first = shown[group] / size[group]  # that a label is shown
            second = np.maximum(shown[group] - 1, 0) / np.maximum(
                size[group] - 1, 1
            )  # and another of its group
            both = first[:, None] * np.where(is_same, second[None, :], first[None, :])
            np.fill_diagonal(both, first)
            total += probability * both
        return total
