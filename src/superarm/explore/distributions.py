"""Distributions of sets: how probable is a set, a label, a pair of labels?

A rule at one moment is a `SetDistribution`. Ours are a `Mixture`: a few sets S_i with probabilities d_i of their own,
and with probability u the dilute draw around a top set (`superarm.explore.Dilute`; gamma = 1 is the uniform one).
Where labels are tied, any of them may be in the place of another in the few sets.

Off-policy evaluation solves G z = pi, with G = E[1_S 1_S'] (logs/weights.py). Labels that are in the same of the few
sets, or tied, form a block: any two of them may be exchanged in G. There are few blocks, and `BlockMoments` solves
for them instead of for all labels. Of any other distribution, the whole matrix G is inverted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import comb, exp, nan, prod
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label
from superarm.explore.dilute_probabilities import DiluteMoments, dilute_moments, log_set_probabilities

NEGLIGIBLE = 1e-12  # probabilities up to this count as 0
ROUNDING = 1e-6  # how far G z may be from pi
SINGULAR = 1e-12  # eigenvalues of G up to this share of the largest count as 0

TieCounts = frozenset[tuple[Label, int]]  # how many labels of each tie a set has, by the first of the tie


class BlockMoments:
    """G = E[1_S 1_S'] of labels in blocks: it is the same for all labels of a block.

    Args:
        block: the number of each label's block.
        inclusion: the probability that a label of each block is shown.
        pairs: the probability that two different labels of these blocks are shown together.

    Within a block, G - pairs is a multiple of the identity. So G acts on the means of the blocks as a small matrix, and
    on the deviations from them as a number for each block.
    """

    def __init__(self, block: Array, inclusion: Array, pairs: Array) -> None:
        self.block, self.inclusion, self.pairs = block, inclusion, pairs
        self._sizes = np.bincount(block, minlength=len(inclusion)).astype(np.float64)
        self._excess = inclusion - np.diagonal(pairs)  # of the diagonal of G

    def matrix(self) -> Array:
        """Return G."""
        G = self.pairs[self.block[:, None], self.block]
        np.fill_diagonal(G, self.inclusion[self.block])
        return np.asarray(G)

    def solve(self, pi: Array) -> Array:
        """Return the least z with G z = pi; NaN where there is none."""
        matrix, inverse = self._matrices
        block, excess, root = self.block, self._excess, np.sqrt(self._sizes)
        means = np.bincount(block, pi, len(root)) / np.maximum(self._sizes, 1.0)
        deviation = pi - means[block]
        factor = np.where(excess > NEGLIGIBLE, 1.0 / np.maximum(excess, NEGLIGIBLE), 0.0)[block]
        scaled = inverse @ (root * means)
        residual = np.abs(matrix @ scaled - root * means).max()
        if not max(residual, np.abs(deviation[factor == 0.0]).max(initial=0.0)) < ROUNDING:
            return np.full(len(pi), nan)
        return np.asarray((scaled / np.maximum(root, 1.0))[block] + deviation * factor)

    @cached_property
    def _matrices(self) -> tuple[Array, Array]:
        """G for vectors that are constant in each block, by their root mean squares, and its pseudo-inverse."""
        root = np.sqrt(self._sizes)
        matrix = np.diag(self._excess) + root[:, None] * self.pairs * root
        values, vectors = np.linalg.eigh(matrix)
        kept = values > SINGULAR * values[-1]
        return matrix, (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


class SetDistribution(ABC):
    """The distribution of a set of labels.

    Attributes:
        eligible: the labels that can be shown; a range where these are all indices from 0 on.
        m: how many are shown; the most of them, where ``sizes_vary``.
    """

    sizes_vary = False

    def __init__(self, eligible: Iterable[Label], m: int) -> None:
        self.eligible: Sequence[Label] = eligible if isinstance(eligible, range) else tuple(eligible)
        self.m = m

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """Return the probability that exactly these labels are shown, in whatever order; 0 if one is not eligible."""

    @abstractmethod
    def pair_inclusion(self) -> Array:
        """Return G = E[1_S 1_S']: for each pair of eligible labels, the probability that both are shown."""

    def inclusion(self) -> Array:
        """Return the probability that it is shown, for each eligible label."""
        return np.diagonal(self.pair_inclusion()).copy()

    def mean_over_ties(self, values: Array) -> Array:
        """Return the mean of ``values`` over the labels that are tied with it, for each eligible label."""
        return values

    def solve(self, pi: Array) -> Array:
        """Return z with G z = pi, for a vector over the eligible labels; NaN where there is none."""
        if self.m == 1 and not self.sizes_vary:  # G is diagonal
            p, needed = self.inclusion(), pi > NEGLIGIBLE
            if not (p[needed] > NEGLIGIBLE).all():
                return np.full(len(pi), nan)
            return np.where(needed, pi, 0.0) / np.where(needed, p, 1.0)
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
    def _position(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.eligible)}

    def _positions(self, labels: Iterable[Label]) -> list[int]:
        """Return the places of labels among the eligible ones."""
        if isinstance(self.eligible, range):  # from 0 on
            return list(labels)
        return [self._position[label] for label in labels]

    def _are_eligible(self, labels: Iterable[Label]) -> bool:
        known = self.eligible if isinstance(self.eligible, range) else self._position
        return all(label in known for label in labels)


class Mixture(SetDistribution):
    """A few sets, each with its probability; with ``dilute_share``, also dilute draws around a top set.

    Args:
        eligible: the labels that can be shown.
        m: how many labels a dilute draw shows; as many as ``top`` has.
        sets: a few sets, of any size, and their probabilities; 1 in sum.
        dilute_share: the share of dilute draws; ``sets`` have the rest.
        top: their top set.
        gamma: their share of exploration; 1 draws uniformly, whatever ``top`` is, which may then be left out.
        ties: lists of tied labels. ``sets`` are those for one order of these; all other orders are as probable. Dilute
            draws beside them must be uniform.
    """

    def __init__(
        self,
        eligible: Iterable[Label],
        m: int,
        sets: Iterable[tuple[Iterable[Label], float]] = (),
        dilute_share: float = 0.0,
        top: Iterable[Label] = (),
        gamma: float = 1.0,
        ties: Iterable[Sequence[Label]] = (),
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
        self.ties = {labels[0]: labels for labels in ties if len(labels) > 1}  # by the first label of each
        self._first_of_ties = {label: first for first, labels in self.ties.items() for label in labels}

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
        if not labels:
            return cls.certain(eligible, ())
        return cls(eligible, len(labels), dilute_share=1.0, top=labels, gamma=gamma)

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if not self.ties:
            return self.sets.get(shown, 0.0) + self.dilute_probability(shown)
        counts = self._count_by_tie(shown)
        n_alike = prod(comb(len(self._tied_with(first)), count) for first, count in counts)
        return self._probability_of_counts.get(counts, 0.0) / n_alike + self.dilute_probability(shown)

    def dilute_probability(self, labels: frozenset[Label]) -> float:
        """Return the probability that a dilute draw shows exactly these labels."""
        if not self.dilute_share or len(labels) != self.m or not self._are_eligible(labels):
            return 0.0
        by_overlap = log_set_probabilities(len(self.eligible), self.m, self.gamma)
        return self.dilute_share * exp(by_overlap[len(labels & self.top)])

    def inclusion(self) -> Array:
        if self.ties:
            return np.asarray(self._blocks.inclusion[self._blocks.block])
        inside, outside = self.dilute_share * self._dilute.inclusion if self.dilute_share else (0.0, 0.0)
        pi = np.full(len(self.eligible), outside)
        if inside != outside:
            pi[self._positions(self.top)] = inside
        for labels, probability in self.sets.items():
            pi[self._positions(labels)] += probability
        return pi

    def mean_over_ties(self, values: Array) -> Array:
        if not self.ties:
            return values
        block = self._blocks.block  # of tied labels, or of some that are always shown together
        return np.asarray((np.bincount(block, values) / np.maximum(np.bincount(block), 1))[block])

    def pair_inclusion(self) -> Array:
        return self._blocks.matrix()

    def _solve(self, pi: Array) -> Array:
        return self._blocks.solve(pi)

    @property
    def _dilute(self) -> DiluteMoments:
        return dilute_moments(len(self.eligible), self.m, self.gamma)

    def _tied_with(self, first: Label) -> Sequence[Label]:
        """Return the tied labels of which this is the first; of an untied label, itself alone."""
        return self.ties.get(first, (first,))

    def _count_by_tie(self, labels: Iterable[Label]) -> TieCounts:
        return frozenset(Counter(self._first_of_ties.get(label, label) for label in labels).items())

    @cached_property
    def _probability_of_counts(self) -> dict[TieCounts, float]:
        """The sets by what all orders of the ties have in common: how many labels of each tie are shown."""
        by_counts: dict[TieCounts, float] = {}
        for labels, probability in self.sets.items():
            counts = self._count_by_tie(labels)
            by_counts[counts] = by_counts.get(counts, 0.0) + probability
        return by_counts

    @cached_property
    def _blocks(self) -> BlockMoments:
        """A block for each tie, and for untied labels in the same sets, all of them in the top set or none."""
        is_uniform = self.gamma == 1.0
        top = frozenset() if is_uniform or not self.dilute_share else self.top
        sets_of: dict[Label, list[int]] = {label: [] for label in top}
        for i, counts in enumerate(self._probability_of_counts):
            for first, _ in counts:
                sets_of.setdefault(first, []).append(i)
        numbers: dict[Any, int] = {(False, ()): 0}  # of blocks; first the labels that are in none
        number_of: dict[Label, int] = {}
        block = np.zeros(len(self.eligible), np.intp)
        for first, sets in sets_of.items():
            key = first if first in self.ties else (first in top, tuple(sets))
            number_of[first] = numbers.setdefault(key, len(numbers))
            block[self._positions(self._tied_with(first))] = number_of[first]
        p = np.array([*self._probability_of_counts.values()])
        one, two = np.zeros((2, len(p), len(numbers)))  # the probability of a label, and of two, of a block
        for i, counts in enumerate(self._probability_of_counts):
            for first, count in counts:
                size = len(self._tied_with(first))
                one[i, number_of[first]] = count / size
                two[i, number_of[first]] = count / size * ((count - 1) / (size - 1) if size > 1 else 1.0)
        inclusion, pairs = p @ one, one.T @ (p[:, None] * one)
        np.fill_diagonal(pairs, p @ two)
        if self.dilute_share:
            side = np.array([0 if is_uniform or key[0] else 1 for key in numbers])
            inclusion += self.dilute_share * self._dilute.inclusion[side]
            pairs += self.dilute_share * self._dilute.pairs[side[:, None], side]
        return BlockMoments(block, inclusion, pairs)
