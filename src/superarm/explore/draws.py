"""How sets are drawn, as one can ask about it: how probable is a set, a label, a pair of labels?

A rule at one moment is a `Draw`. Most show one of a few sets, or now and then a uniform one: `FewSets`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import exp, lgamma
from typing import Any

import numpy as np

from superarm.labels import Label

__all__ = ["Draw", "FewSets", "log_comb"]


def log_comb(n: int, r: int) -> float:
    """log of n over r."""
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1)


class Draw(ABC):
    """The distribution of a set of m out of the eligible labels."""

    def __init__(self, eligible: Sequence[Label], m: int) -> None:
        self.eligible, self.m = tuple(eligible), m
        self.position = {label: i for i, label in enumerate(self.eligible)}

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """The probability that exactly these labels are shown, in whatever order."""

    @abstractmethod
    def inclusion(self) -> np.ndarray[Any, Any]:
        """For each eligible label, the probability that it is shown."""

    @abstractmethod
    def pairs(self) -> np.ndarray[Any, Any]:
        """For each pair of eligible labels, the probability that both are shown: E[1_S 1_S']."""


class FewSets(Draw):
    """One of a few sets, each with its probability; with ``uniform``, a share of all sets alike."""

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
        if len(shown) != self.m or not shown <= self.position.keys():
            return 0.0
        flat = exp(-log_comb(len(self.eligible), self.m)) if self.uniform else 0.0
        return (1.0 - self.uniform) * self.chances.get(shown, 0.0) + self.uniform * flat

    def inclusion(self) -> np.ndarray[Any, Any]:
        return np.diagonal(self.pairs()).copy()

    def pairs(self) -> np.ndarray[Any, Any]:
        n, m = len(self.eligible), self.m
        few = np.zeros((n, n))
        for labels, chance in self.chances.items():
            at = [self.position[label] for label in labels]
            few[np.ix_(at, at)] += chance
        if not self.uniform:
            return few
        both = m * (m - 1) / (n * (n - 1)) if n > 1 else 0.0
        flat = np.full((n, n), both)
        np.fill_diagonal(flat, m / n)
        return np.asarray((1.0 - self.uniform) * few + self.uniform * flat)
