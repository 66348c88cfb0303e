"""Distributions of sets: how probable is a set, a label, a pair of labels?

A rule at one moment is a `SetDistribution`. Most are a `Mixture`: a few sets S_i with probabilities d_i of their own,
and with probability u the dilute draw around a top set (`superarm.explore.Dilute`; gamma = 1 is the uniform one). Then

    G = E[1_S 1_S'] = u D + M' M        the rows of M are sqrt(d_i) 1_{S_i}

D has one block inside and one outside of the top set, and so has its inverse; Woodbury's identity adds the few sets.
Off-policy evaluation solves G z = pi (logs/weights.py). Any other distribution tells its G, which is inverted as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import comb, exp, nan, prod

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label
from superarm.explore.dilute_probabilities import DiluteMoments, dilute_moments, log_set_probabilities

NEGLIGIBLE = 1e-12  # probabilities up to this count as 0
ROUNDING = 1e-6  # how far G z may be from pi


class SetDistribution(ABC):
    """The distribution of a set of labels.

    Attributes:
        eligible: the labels that can be shown.
        m: how many are shown; the most of them, where ``sizes_vary``.
    """

    sizes_vary = False

    def __init__(self, eligible: Iterable[Label], m: int) -> None:
        self.eligible, self.m = tuple(eligible), m

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """Return the probability that exactly these labels are shown, in whatever order."""

    @abstractmethod
    def pair_inclusion(self) -> Array:
        """Return G = E[1_S 1_S']: for each pair of eligible labels, the probability that both are shown."""

    def inclusion(self) -> Array:
        """Return the probability that it is shown, for each eligible label."""
        return np.diagonal(self.pair_inclusion()).copy()

    def inclusion_given_top(self) -> Array:
        """Return the inclusion probabilities given the recorded top set; another one was possible only with ties."""
        return self.inclusion()

    def solve(self, pi: Array) -> Array:
        """Return z with G z = pi, for a vector over the eligible labels; NaN where there is none."""
        if self.m == 1 and not self.sizes_vary:  # G is diagonal
            p, needed = self.inclusion(), pi > NEGLIGIBLE
            return np.where(needed, pi, 0.0) / np.where(needed, np.where(p > NEGLIGIBLE, p, nan), 1.0)
        return self._solve(pi)

    def _solve(self, pi: Array) -> Array:
        G, inverse = self._pseudo_inverse
        z = inverse @ pi
        return np.asarray(z if np.abs(G @ z - pi).max() < ROUNDING else np.full(len(pi), nan))

    @cached_property
    def _pseudo_inverse(self) -> tuple[Array, Array]:
        G = self.pair_inclusion()
        return G, np.linalg.pinv(G, rcond=1e-9, hermitian=True)

    @cached_property
    def position(self) -> dict[Label, int]:
        """The place of each label among the eligible ones."""
        return {label: i for i, label in enumerate(self.eligible)}

    def _positions(self, labels: Iterable[Label]) -> list[int]:
        return [self.position[label] for label in labels]


class Mixture(SetDistribution):
    """A few sets, each with its probability; with ``dilute_share``, also dilute draws around a top set.

    Args:
        eligible: the labels that can be shown.
        m: how many labels a dilute draw shows; as many as ``top`` has.
        sets: a few sets, of any size, and their probabilities; 1 in sum.
        dilute_share: the share of dilute draws; ``sets`` have the rest.
        top: their top set.
        gamma: their share of exploration; 1 draws uniformly, whatever ``top`` is, which may then be left out.
    """

    def __init__(
        self,
        eligible: Iterable[Label],
        m: int,
        sets: Iterable[tuple[Iterable[Label], float]] = (),
        dilute_share: float = 0.0,
        top: Iterable[Label] = (),
        gamma: float = 1.0,
    ) -> None:
        super().__init__(eligible, m)
        self.dilute_share, self.gamma = dilute_share, gamma
        self.top = frozenset(top) or frozenset(self.eligible[:m])
        self.sets: dict[frozenset[Label], float] = {}
        for labels, probability in sets:
            self._add(labels, (1.0 - dilute_share) * probability)
        if dilute_share and m >= len(self.eligible):  # that shows all labels
            self._add(self.eligible, dilute_share)
            self.dilute_share = 0.0
        self.sizes_vary = any(len(labels) != m for labels in self.sets)

    def _add(self, labels: Iterable[Label], probability: float) -> None:
        if probability > NEGLIGIBLE:
            key = frozenset(labels)
            self.sets[key] = self.sets.get(key, 0.0) + probability

    @classmethod
    def certain(cls, eligible: Iterable[Label], labels: Iterable[Label]) -> Mixture:
        """Return the distribution that always shows these ``labels`` of the ``eligible`` ones."""
        shown = frozenset(labels)
        return cls(eligible, len(shown), [(shown, 1.0)])

    @classmethod
    def dilute(cls, eligible: Iterable[Label], top: Iterable[Label], gamma: float) -> Mixture:
        """Return the distribution of the dilute draw from ``eligible`` around ``top``, with this ``gamma``."""
        labels = frozenset(top)
        return cls(eligible, len(labels), (), 1.0, labels, gamma) if labels else cls.certain(eligible, ())

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        return self.sets.get(shown, 0.0) + self.dilute_probability(shown)

    def dilute_probability(self, labels: frozenset[Label]) -> float:
        """Return the probability that a dilute draw shows exactly these labels."""
        if not self.dilute_share or len(labels) != self.m or not all(r in self.eligible for r in labels):
            return 0.0
        by_overlap = log_set_probabilities(len(self.eligible), self.m, self.gamma)
        return self.dilute_share * exp(by_overlap[len(labels & self.top)])

    def inclusion(self) -> Array:
        pi = np.zeros(len(self.eligible))
        if self.dilute_share:
            pi += (self.dilute_share * self._moments.inclusion)[self._block]
        for labels, probability in self.sets.items():
            pi[self._positions(labels)] += probability
        return pi

    def pair_inclusion(self) -> Array:
        M = self._matrix()
        G = M.T @ M
        if self.dilute_share:
            both = self._moments.pairs[self._block[:, None], self._block]
            np.fill_diagonal(both, self._moments.inclusion[self._block])
            G += self.dilute_share * both
        return np.asarray(G)

    def _solve(self, pi: Array) -> Array:
        if not self.dilute_share:
            labels, M, inverse = self._few_sets
            v, z = inverse.T @ pi[labels], np.zeros(len(pi))
            unreachable = pi.sum() - pi[labels].sum()
            exact = max(unreachable, np.abs(M.T @ v - pi[labels]).max(initial=0.0)) < ROUNDING
            z[labels] = inverse @ v if exact else nan
            return z
        z = self._moments.solve(pi, self._block) / self.dilute_share
        if self.sets:
            M, solved, inverse = self._woodbury
            z -= solved @ (inverse @ (M @ z))
        return z

    @property
    def _moments(self) -> DiluteMoments:
        return dilute_moments(len(self.eligible), self.m, self.gamma)

    @cached_property
    def _block(self) -> Array:
        """For each of the eligible labels, 0 if it is in the top set, else 1."""
        block = np.ones(len(self.eligible), np.intp)
        block[self._positions(self.top)] = 0
        return block

    @cached_property
    def _few_sets(self) -> tuple[Array, Array, Array]:
        """The places of the labels of the few sets, M over them, and its pseudo-inverse."""
        M = self._matrix()
        labels = np.flatnonzero(M.any(axis=0))
        return labels, M[:, labels], np.linalg.pinv(M[:, labels], rcond=1e-6)

    @cached_property
    def _woodbury(self) -> tuple[Array, Array, Array]:
        """M, (u D)^-1 M', and (I + M (u D)^-1 M')^-1."""
        M = self._matrix()
        solved = np.stack([self._moments.solve(row, self._block) / self.dilute_share for row in M], axis=1)
        return M, solved, np.linalg.inv(np.eye(len(M)) + M @ solved)

    def _matrix(self) -> Array:
        M = np.zeros((len(self.sets), len(self.eligible)))
        for row, (labels, probability) in zip(M, self.sets.items(), strict=True):
            row[self._positions(labels)] = probability**0.5
        return M


class TiedSets(SetDistribution):
    """One of a few sets, in which tied labels stand for each other: all of a group are equally likely.

    Args:
        eligible: the labels that can be shown.
        m: how many labels a uniform set has.
        sets: a few sets and their probabilities, for one order of the tied labels.
        groups: lists of tied labels; a label that is in none is tied with no other.
        uniform: the share of sets drawn uniformly.
    """

    def __init__(
        self,
        eligible: Sequence[Label],
        m: int,
        sets: Iterable[tuple[Iterable[Label], float]],
        groups: Iterable[Sequence[Label]],
        uniform: float = 0.0,
    ) -> None:
        super().__init__(eligible, m)
        self.one_order = Mixture(self.eligible, m, sets, uniform)
        self.sizes_vary = self.one_order.sizes_vary
        self.group = {label: i for i, label in enumerate(self.eligible)}
        for tied in groups:
            self.group |= dict.fromkeys(tied, self.group[tied[0]])
        self.group_size = Counter(self.group.values())
        self.by_counts: dict[frozenset[tuple[int, int]], float] = {}  # by the labels shown of each group
        for labels, probability in self.one_order.sets.items():
            counts = self._group_counts(labels)
            self.by_counts[counts] = self.by_counts.get(counts, 0.0) + probability

    def _group_counts(self, labels: Iterable[Label]) -> frozenset[tuple[int, int]]:
        return frozenset(Counter(self.group[label] for label in labels).items())

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if not shown <= self.position.keys():
            return 0.0
        counts = self._group_counts(shown)
        n_sets = prod(comb(self.group_size[group], count) for group, count in counts)
        return self.by_counts.get(counts, 0.0) / n_sets + self.one_order.dilute_probability(shown)

    def inclusion(self) -> Array:
        by_group = np.zeros(len(self.eligible))
        for counts, probability in self.by_counts.items():
            for group, count in counts:
                by_group[group] += probability * count / self.group_size[group]
        uniform = self.one_order.dilute_share * self.m / len(self.eligible)
        return by_group[[self.group[label] for label in self.eligible]] + uniform

    def inclusion_given_top(self) -> Array:
        return self.one_order.inclusion()

    def pair_inclusion(self) -> Array:
        n = len(self.eligible)
        group = np.array([self.group[label] for label in self.eligible])
        size = np.array([self.group_size[g] for g in range(n)])
        same = group[:, None] == group[None, :]
        G = Mixture(self.eligible, self.m, (), self.one_order.dilute_share).pair_inclusion()
        for counts, probability in self.by_counts.items():
            shown = np.zeros(n)
            shown[[g for g, _ in counts]] = [count for _, count in counts]
            one = shown[group] / size[group]  # the share of its group that is shown
            another = np.maximum(shown[group] - 1, 0) / np.maximum(size[group] - 1, 1)
            both = one[:, None] * np.where(same, another[None, :], one[None, :])
            np.fill_diagonal(both, one)
            G += probability * both
        return np.asarray(G)
