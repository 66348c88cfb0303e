"""How the set of a row is drawn: how probable is a set, or a label in it; and G = E[1_S 1_S'] for linear weights.

Most draws are mixtures: a few sets S_i with probabilities d_i of their own, and with probability u the paper's draw
around a top set (`superarm.explore.Dilute`; gamma = 1 is the uniform one). Then

    G = u D + M' M        the rows of M are sqrt(d_i) 1_{S_i}

D has one block inside and one outside of the top set, and so has its inverse; Woodbury's identity adds the few sets.
Every other draw (tied scores, slots, somebody's own rule) tells its G, which is inverted as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from math import exp, nan

import numpy as np

from superarm._types import Array
from superarm.explore import FewSets, SetDistribution
from superarm.explore.dilute import inclusion, log_set_probabilities
from superarm.explore.distributions import log_comb

NEGLIGIBLE = 1e-12  # probabilities below this count as 0
ROUNDING = 1e-6  # how far G G^+ pi may be from pi
LabelNumbers = frozenset[int]


class SetDraw(ABC):
    """How the set of one row is drawn, over label numbers.

    Attributes:
        eligible: the labels that could be shown.
        m: how many are shown; the most of them, where ``sizes_vary``.
    """

    sizes_vary = False

    def __init__(self, eligible: Sequence[int] | Array, m: int) -> None:
        self.eligible, self.m = np.asarray(eligible, np.intp), m

    @abstractmethod
    def probability(self, labels: LabelNumbers) -> float:
        """The probability that exactly these labels are shown."""

    @abstractmethod
    def inclusion(self, k: int) -> Array:
        """For each of k labels, the probability that it is shown."""

    @abstractmethod
    def _solve(self, pi: Array) -> Array:
        """z with G z = pi; NaN where there is none."""

    def expected_overlap(self, top: Array) -> float:
        """How many labels of a top set, a mask, are shown on average."""
        return float(self.inclusion(len(top))[top].sum())

    def linear_weight(self, pi: Array, shown: LabelNumbers) -> tuple[float, float]:
        """pi' G^+ 1_S and its mean square, for a policy's inclusion probabilities pi of all labels.

        NaN where pi is outside of the range of G (no weight is right if the policy shows labels that could not be
        shown), or where the shown set was impossible (the rule is not the one that drew it).
        """
        if not self.probability(shown) > 0.0:
            return nan, nan
        if self.m == 1 and not self.sizes_vary:  # G is diagonal
            p = self.inclusion(len(pi))
            wanted = pi > NEGLIGIBLE
            z = np.where(wanted, pi, 0.0) / np.where(wanted, np.where(p > NEGLIGIBLE, p, nan), 1.0)
        else:
            z = self._solve(pi)
        return float(z[list(shown)].sum()), float(z @ pi)


class MixtureDraw(SetDraw):
    """A few sets with probabilities of their own, and a share of the paper's draw around a top set.

    Args:
        eligible: the labels that could be shown, in increasing order.
        m: the labels of a set of the paper's draw; as many as ``top`` has.
        sets: the few sets and their probabilities.
        share: the probability of the paper's draw.
        top: its top set.
        gamma: its share of exploration; 1 draws uniformly, whatever ``top`` is.
    """

    def __init__(
        self,
        eligible: Sequence[int] | Array,
        m: int,
        sets: dict[LabelNumbers, float],
        share: float = 0.0,
        top: Iterable[int] = (),
        gamma: float = 1.0,
    ) -> None:
        super().__init__(eligible, m)
        self.sets, self.share, self.top, self.gamma = sets, share, frozenset(top), gamma
        if share and m >= len(self.eligible):  # that shows all labels
            everything = frozenset(self.eligible.tolist())
            self.sets, self.share = {**sets, everything: sets.get(everything, 0.0) + share}, 0.0
        self.sizes_vary = any(len(labels) != m for labels in self.sets)

    @classmethod
    def always(cls, eligible: Sequence[int] | Array, labels: Iterable[int]) -> MixtureDraw:
        """The draw that shows these labels and no others."""
        shown = frozenset(labels)
        return cls(eligible, len(shown), {shown: 1.0})

    @classmethod
    def around(cls, eligible: Sequence[int] | Array, top: Iterable[int], gamma: float) -> MixtureDraw:
        """The paper's draw around a top set."""
        labels = frozenset(top)
        return cls(eligible, len(labels), {}, 1.0, labels, gamma) if labels else cls.always(eligible, ())

    def probability(self, labels: LabelNumbers) -> float:
        return self.sets.get(labels, 0.0) + self.paper_probability(labels)

    def paper_probability(self, labels: LabelNumbers) -> float:
        """The probability that these labels are shown by the paper's draw."""
        if not self.share or len(labels) != self.m:
            return 0.0
        by_overlap = log_set_probabilities(len(self.eligible), self.m, self.gamma)
        return self.share * exp(by_overlap[len(labels & self.top)])

    def inclusion(self, k: int) -> Array:
        pi = np.zeros(k)
        if self.share:
            pi[self.eligible] = (self.share * self._paper.inclusion)[self._block]
        for labels, probability in self.sets.items():
            pi[list(labels)] += probability
        return pi

    @property
    def _paper(self) -> PaperMatrix:
        return paper_matrix(len(self.eligible), self.m, self.gamma)

    @cached_property
    def _block(self) -> Array:
        """For each of the eligible labels, 0 if it is in the top set, else 1."""
        block = np.ones(len(self.eligible), np.intp)
        block[np.searchsorted(self.eligible, list(self.top))] = 0
        return block

    def _solve(self, pi: Array) -> Array:
        z = np.zeros(len(pi))
        if not self.share:
            labels, M, inverse = self._few_sets
            v = inverse.T @ pi[labels]
            outside = pi.sum() - pi[labels].sum()
            z[labels] = inverse @ v if max(outside, np.abs(M.T @ v - pi[labels]).max()) < ROUNDING else nan
            return z
        own = self._paper.solve(pi[self.eligible], self._block) / self.share
        if self.sets:
            M, solved, inverse = self._woodbury
            own -= solved @ (inverse @ (M @ own))
        z[self.eligible] = own
        return z

    @cached_property
    def _few_sets(self) -> tuple[Array, Array, Array]:
        """The labels of the few sets, M over them, and its pseudo-inverse."""
        labels = np.array(sorted(frozenset().union(*self.sets)), np.intp)
        M = self._matrix(labels)
        return labels, M, np.linalg.pinv(M, rcond=1e-6)

    @cached_property
    def _woodbury(self) -> tuple[Array, Array, Array]:
        """M over the eligible labels, (u D)^-1 M', and (I + M (u D)^-1 M')^-1."""
        M = self._matrix(self.eligible)
        solved = np.stack([self._paper.solve(row, self._block) / self.share for row in M], axis=1)
        return M, solved, np.linalg.inv(np.eye(len(M)) + M @ solved)

    def _matrix(self, labels: Array) -> Array:
        """M over these labels, in increasing order."""
        M = np.zeros((len(self.sets), len(labels)))
        for row, (chosen, probability) in zip(M, self.sets.items(), strict=True):
            row[np.searchsorted(labels, list(chosen))] = probability**0.5
        return M


class DistributionDraw(SetDraw):
    """Any other distribution: its G is inverted as it is."""

    def __init__(self, distribution: SetDistribution) -> None:
        super().__init__(np.array(distribution.eligible, np.intp), distribution.m)
        self.distribution = distribution
        few = distribution if isinstance(distribution, FewSets) else None
        self.sizes_vary = few is not None and any(len(labels) != self.m for labels in few.probabilities)

    def probability(self, labels: LabelNumbers) -> float:
        return self.distribution.probability(labels)

    def inclusion(self, k: int) -> Array:
        pi = np.zeros(k)
        pi[self.eligible] = self.distribution.inclusion()
        return pi

    def expected_overlap(self, top: Array) -> float:
        if isinstance(self.distribution, FewSets):  # of tied labels, ``top`` holds those that came first
            return _few_sets_draw(self.distribution).expected_overlap(top)
        return super().expected_overlap(top)

    def _solve(self, pi: Array) -> Array:
        G, inverse = self._matrix_and_inverse
        z, own = np.zeros(len(pi)), pi[self.eligible]
        solved = inverse @ own
        z[self.eligible] = solved if np.abs(G @ solved - own).max() < ROUNDING else nan
        return z

    @cached_property
    def _matrix_and_inverse(self) -> tuple[Array, Array]:
        G = self.distribution.pair_inclusion()
        return G, np.linalg.pinv(G, rcond=1e-9, hermitian=True)


def draw_from(distribution: SetDistribution) -> SetDraw:
    """The draw that a rule's distribution over label numbers describes."""
    if type(distribution) is FewSets:  # and no subclass: tied labels are no mixture of a few sets
        return _few_sets_draw(distribution)
    return DistributionDraw(distribution)


def _few_sets_draw(given: FewSets) -> MixtureDraw:
    sets = {labels: (1.0 - given.uniform) * p for labels, p in given.probabilities.items() if p > NEGLIGIBLE}
    return MixtureDraw(np.sort(given.eligible), given.m, sets, given.uniform, given.eligible[: given.m])


# ---------------------------------------------------------------- the paper's draw


class PaperMatrix:
    """D = E[1_S 1_S'] of the paper's draw of m out of n labels; block 0 are those in the top set, block 1 the others.

    The vectors are over the eligible labels; ``block`` says in which block each of these is.
    """

    def __init__(self, n: int, m: int, gamma: float) -> None:
        p = inclusion(n, m, gamma)
        self.inclusion = np.array([p.inside, p.outside])
        # D = diag(gap) + pairs, both the same within a block
        self.pairs = np.array([[p.both_inside, p.one_each], [p.one_each, p.both_outside]])
        self.gap = self.inclusion - np.diagonal(self.pairs)
        # D^-1 = diag(1 / gap) (I - pairs_of_inverse), in the same way
        sums = np.diag(self.gap) + np.array([[m], [n - m]]) * self.pairs
        self.pairs_of_inverse = self.pairs @ np.linalg.inv(sums)

    def solve(self, values: Array, block: Array) -> Array:
        """D^-1 times a vector."""
        both = self.pairs_of_inverse @ np.bincount(block, values, 2)
        return np.asarray((values - both[block]) / self.gap[block])


@lru_cache(maxsize=4096)
def paper_matrix(n: int, m: int, gamma: float) -> PaperMatrix:
    """D of the paper's draw; 1 <= m < n."""
    return PaperMatrix(n, m, gamma)


# ---------------------------------------------------------------- two draws


def mean_square(policy: SetDraw, logged: SetDraw) -> float:
    """E[w^2] of w = P_B(S) / p(S): the sum of P_B(S)^2 / p(S) over all sets S.

    inf where a set of the policy's cannot be logged; NaN where the sum is not known.
    """
    n, m = len(logged.eligible), policy.m
    if m >= n and not logged.sizes_vary:
        return 1.0
    if not isinstance(policy, MixtureDraw):
        return nan
    if not isinstance(logged, MixtureDraw):
        if policy.share:
            return nan
        terms = [(p, logged.probability(labels)) for labels, p in policy.sets.items()]
        return sum(b * b / p for b, p in terms) if all(p > NEGLIGIBLE for _, p in terms) else np.inf
    if not logged.share:
        terms = [(policy.probability(labels), p) for labels, p in logged.sets.items()]
        return sum(b * b / p for b, p in terms) if sum(b for b, _ in terms) > 1.0 - 1e-6 else np.inf
    if policy.share and m != logged.m:
        return np.inf
    total = 0.0
    if policy.share:
        common = len(policy.top & logged.top)
        total = policy.share**2 / logged.share * _paper_mean_square(n, m, logged.gamma, policy.gamma, common)
    for labels in policy.sets.keys() | logged.sets.keys():
        b, p = policy.probability(labels), logged.probability(labels)
        if b > 0.0:
            total += b**2 / p if p > 0.0 else np.inf
        if policy.share and len(labels) == m:
            total -= policy.paper_probability(labels) ** 2 / logged.paper_probability(labels)
    return total


@lru_cache(maxsize=65536)
def _paper_mean_square(n: int, m: int, gamma: float, gamma_b: float, common: int) -> float:
    """The same for two of the paper's draws, with gamma and gamma_b, whose top sets share ``common`` labels."""
    logged, policy = log_set_probabilities(n, m, gamma), log_set_probabilities(n, m, gamma_b)
    total, apart = 0.0, m - common
    for both in range(common + 1):  # labels of S in both top sets, in B's alone, in the log's alone
        for ours in range(min(apart, m - both) + 1):
            for theirs in range(min(apart, m - both - ours) + 1):
                rest = m - both - ours - theirs
                if rest <= n - common - 2 * apart:
                    parts = ((common, both), (apart, ours), (apart, theirs), (n - common - 2 * apart, rest))
                    sets = sum(log_comb(size, chosen) for size, chosen in parts)
                    total += exp(sets + 2 * policy[both + ours] - logged[both + theirs])
    return total
