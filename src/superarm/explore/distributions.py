"""Distributions of sets: how probable is a set, a label, a pair of labels?

A rule at one moment is a `SetDistribution`. Most are a `Mixture`: a few sets S_i with probabilities d_i of their own,
and with probability u the dilute draw around a top set (`superarm.explore.Dilute`; gamma = 1 is the uniform one). In
`TiedSets`, labels that are tied stand for each other in the few sets.

Off-policy evaluation solves G z = pi, with G = E[1_S 1_S'] (logs/weights.py). Labels that are in the same of the few
sets, or tied, form a block: any two of them may be exchanged in G. There are few blocks, and `BlockMoments` solves
for them instead of for all labels. Any other distribution tells its G, which is inverted as it is.
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
        deviation, rate = (
            pi - means[block],
            np.where(excess > NEGLIGIBLE, 1.0 / np.maximum(excess, NEGLIGIBLE), 0.0),
        )
        scaled = inverse @ (root * means)
        wrong = np.abs(matrix @ scaled - root * means).max()
        if not max(wrong, np.abs(deviation[rate[block] == 0.0]).max(initial=0.0)) < ROUNDING:
            return np.full(len(pi), nan)
        return np.asarray((scaled / np.maximum(root, 1.0))[block] + deviation * rate[block])

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
        eligible: the labels that can be shown; a range, if they are all numbers from 0 on.
        m: how many are shown; the most of them, where ``sizes_vary``.
    """

    sizes_vary = False

    def __init__(self, eligible: Iterable[Label], m: int) -> None:
        self.eligible: Sequence[Label] = eligible if isinstance(eligible, range) else tuple(eligible)
        self.m = m

    @abstractmethod
    def probability(self, labels: Iterable[Label]) -> float:
        """Return the probability that exactly these labels are shown, in whatever order."""

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
        if not self.dilute_share or len(labels) != self.m or not self._are_eligible(labels):
            return 0.0
        by_overlap = log_set_probabilities(len(self.eligible), self.m, self.gamma)
        return self.dilute_share * exp(by_overlap[len(labels & self.top)])

    def inclusion(self) -> Array:
        inside, outside = self.dilute_share * self._dilute.inclusion if self.dilute_share else (0.0, 0.0)
        pi = np.full(len(self.eligible), outside)
        if inside != outside:
            pi[self._positions(self.top)] = inside
        for labels, probability in self.sets.items():
            pi[self._positions(labels)] += probability
        return pi

    def pair_inclusion(self) -> Array:
        return self._blocks.matrix()

    def _solve(self, pi: Array) -> Array:
        return self._blocks.solve(pi)

    @property
    def _dilute(self) -> DiluteMoments:
        return dilute_moments(len(self.eligible), self.m, self.gamma)

    @cached_property
    def _blocks(self) -> BlockMoments:
        """Blocks of labels that are in the same sets, and all of them in the top set or none."""
        top = self.top if self.dilute_share else frozenset()
        sets_of: dict[Label, list[int]] = {label: [] for label in top}
        for i, labels in enumerate(self.sets):
            for label in labels:
                sets_of.setdefault(label, []).append(i)
        # first the labels that are in none
        numbers: dict[tuple[bool, tuple[int, ...]], int] = {(False, ()): 0}
        block = np.zeros(len(self.eligible), np.intp)
        for place, (label, sets) in zip(self._positions(sets_of), sets_of.items(), strict=True):
            block[place] = numbers.setdefault((label in top, tuple(sets)), len(numbers))
        member = np.zeros((len(self.sets), len(numbers)))
        for (_, in_sets), i in numbers.items():
            member[list(in_sets), i] = 1.0
        weighted = np.array([*self.sets.values()])[:, None] * member
        inclusion, pairs = weighted.sum(axis=0), member.T @ weighted
        if self.dilute_share:
            side = np.array([0 if in_top else 1 for in_top, _ in numbers])
            inclusion += self.dilute_share * self._dilute.inclusion[side]
            pairs += self.dilute_share * self._dilute.pairs[side[:, None], side]
        return BlockMoments(block, inclusion, pairs)


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
        groups: Sequence[Sequence[Label]],
        uniform: float = 0.0,
    ) -> None:
        super().__init__(eligible, m)
        self.one_order = Mixture(self.eligible, m, sets, uniform)
        self.sizes_vary = self.one_order.sizes_vary
        self._tied = {label: i for i, labels in enumerate(groups) if len(labels) > 1 for label in labels}
        self._tied_count = Counter(self._tied.values())  # of the labels in each group
        # by how many labels of a group are shown
        self.by_counts: dict[frozenset[tuple[Any, int]], float] = {}
        for labels, probability in self.one_order.sets.items():
            counts = self._group_counts(labels)
            self.by_counts[counts] = self.by_counts.get(counts, 0.0) + probability

    def _group_counts(self, labels: Iterable[Label]) -> frozenset[tuple[Any, int]]:
        """Return how many labels of each group are among ``labels``; one that is not tied is a group, (label,)."""
        return frozenset(Counter(self._tied.get(label, (label,)) for label in labels).items())

    def _size(self, group: Any) -> int:
        return self._tied_count.get(group, 1)

    def probability(self, labels: Iterable[Label]) -> float:
        shown = frozenset(labels)
        if not self._are_eligible(shown):
            return 0.0
        counts = self._group_counts(shown)
        n_sets = prod(comb(self._size(group), count) for group, count in counts)
        return self.by_counts.get(counts, 0.0) / n_sets + self.one_order.dilute_probability(shown)

    def inclusion(self) -> Array:
        return np.asarray(self._blocks.inclusion[self._blocks.block])

    def mean_over_ties(self, values: Array) -> Array:
        block = self._blocks.block  # of tied labels, or of some that are always shown together
        return np.asarray((np.bincount(block, values) / np.maximum(np.bincount(block), 1))[block])

    def pair_inclusion(self) -> Array:
        return self._blocks.matrix()

    def _solve(self, pi: Array) -> Array:
        return self._blocks.solve(pi)

    @cached_property
    def _blocks(self) -> BlockMoments:
        """A block for each group of ties, for untied labels in the same sets, and for the labels that are in no set."""
        sets_of: dict[Any, list[int]] = {}
        for i, counts in enumerate(self.by_counts):
            for group, _ in counts:
                sets_of.setdefault(group, []).append(i)
        numbers: dict[Any, int] = {(): 0}  # of blocks; first the labels that are in no set
        number_of = {
            group: numbers.setdefault(tuple(sets) if isinstance(group, tuple) else group, len(numbers))
            for group, sets in sets_of.items()
        }
        block = np.zeros(len(self.eligible), np.intp)
        untied = {group[0]: i for group, i in number_of.items() if isinstance(group, tuple)}
        tied = {label: number_of[group] for label, group in self._tied.items() if group in number_of}
        block[self._positions([*untied, *tied])] = [*untied.values(), *tied.values()]
        share, both = np.zeros((2, len(self.by_counts), len(numbers)))  # of a label, of two labels of a block
        for i, counts in enumerate(self.by_counts):
            for group, count in counts:
                size = self._size(group)
                share[i, number_of[group]] = count / size
                both[i, number_of[group]] = count / size * ((count - 1) / (size - 1) if size > 1 else 1.0)
        p, uniform = np.array([*self.by_counts.values()]), self.one_order.dilute_share
        n, m = len(self.eligible), self.m
        inclusion, pairs = p @ share, share.T @ (p[:, None] * share)
        np.fill_diagonal(pairs, p @ both)
        return BlockMoments(
            block, inclusion + uniform * m / n, pairs + uniform * m * (m - 1) / max(n * (n - 1), 1)
        )
