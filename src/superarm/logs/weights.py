"""What a logged row is worth for a question that was not asked when it was written.

A policy B shows its top set T_B, or draws its set by a rule. Logged were a set S, drawn with known
probability p(S), and the bit f. Two weights w with E[w f] = B's hit rate:

    set      w = P_B(S) / p(S)                 needs the log to show B's sets at times
    linear   w = pi_B' G^+ 1_S                 G = E[1_S 1_S'], pi_B B's inclusion probabilities

The second is the pseudo-inverse estimator (Swaminathan et al. 2017): given x, E[f | S] is the sum
of p_r over S, so G^-1 1_S f is an unbiased estimate of every label's probability p, also where
some people want none of the labels. It answers for sets of any size. designs.py asks the rule for p(S) and G;
rows with a known p(S) > 0 and no rule are first weighted to a uniform draw. Rows whose weight nobody can know
are NaN: the log does not say how its set was drawn, or could not have shown what B would show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.explore import FewSets, SetDistribution
from superarm.explore.dilute import log_set_probabilities
from superarm.explore.distributions import log_comb
from superarm.logs.batches import Batch
from superarm.logs.designs import NEGLIGIBLE, Blocks, blocks


def _equal_rows(*columns: Array) -> list[tuple[tuple[float, ...], Array]]:
    """Rows that agree in all columns; a row with NaN belongs to no group."""
    known = np.flatnonzero(~np.any([np.isnan(column) for column in columns], axis=0))
    code = np.zeros(len(known), np.int64)
    for column in columns:
        part = column[known]
        if len(part) and (part != part[0]).any():
            values, number = np.unique(part, return_inverse=True)
            code = code * len(values) + number
    groups = []
    for value in np.unique(code):
        rows = known[code == value]
        groups.append((tuple(float(column[rows[0]]) for column in columns), rows))
    return groups


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """What a policy would show for each row of a batch: its top set, a draw around it, or any draw."""

    top: Array  # n x k
    gamma: float | None = None  # it draws around that set as in the paper
    distributions: list[SetDistribution] | None = None  # or so, for each row

    def inclusion(self, eligible: Array) -> Array:
        """n x k: the probability of each label to be shown."""
        pi = self.top.astype(np.float64)
        if self.distributions is not None:
            for i, one in enumerate(self.distributions):
                pi[i] = 0.0
                pi[i, list(one.eligible)] = one.inclusion()
        elif self.gamma is not None:
            for (n, m), rows in _equal_rows(eligible.sum(axis=1), self.top.sum(axis=1)):
                if 0 < m < n:
                    plan = blocks(int(n), int(m), self.gamma)
                    inside = np.where(self.top[rows], plan.inside, plan.outside)
                    pi[rows] = inside * eligible[rows]
        return pi

    def part(self, i: Array) -> PolicyChoice:
        """Some of the rows."""
        return PolicyChoice(
            self.top[i],
            self.gamma,
            None if self.distributions is None else [self.distributions[at] for at in i],
        )

    def size(self) -> Array:
        """How many labels the policy shows in each row."""
        if self.distributions is None:
            return np.asarray(self.top.sum(axis=1))
        return np.array([one.m for one in self.distributions])

    def chance(self, shown: Array, n: Array) -> Array:
        """The probability that it shows exactly these sets."""
        if self.distributions is not None:
            return np.array(
                [one.probability(np.flatnonzero(s)) for one, s in zip(self.distributions, shown, strict=True)]
            )
        m, shared = shown.sum(axis=1), (shown & self.top).sum(axis=1)
        same = m == self.size()
        chance: Array = (same & (shared == m)).astype(np.float64)
        if self.gamma is not None:
            for (total, size), rows in _equal_rows(n, np.where(same, m, np.nan)):
                if 0 < size < total:
                    chance[rows] = np.exp(blocks(int(total), int(size), self.gamma).log_set[shared[rows]])
        return chance

    def mixture(self, i: int) -> _Mixture | None:
        """The policy's draw in row i, as a sum of parts."""
        if self.distributions is not None:
            return _mixture_of(self.distributions[i])
        mine = frozenset(np.flatnonzero(self.top[i]).tolist())
        if self.gamma is None:
            return _Mixture({mine: 1.0}, 0.0, mine, 1.0)
        return _Mixture({}, 1.0, mine, self.gamma)


class Propensities(NamedTuple):
    """What a batch says about its draws, by row."""

    n: Array  # eligible labels
    m: Array  # shown labels
    j: Array  # shown labels that are in the logged top set
    propensity: Array  # as claimed, or from the rule; NaN if unknown
    by_design: Array  # from the rule; NaN if unknown
    log_sets: Array  # log of the number of sets there are
    surprise: Array  # j minus its mean under the rule
    variance: Array


class ImportanceWeights(NamedTuple):
    """Weights w (NaN where nobody knows), E[w^2] over the draw of the logged set (NaN where its rule is
    unknown), and what E[w^2] would be if the sets had been uniform."""

    w: Array
    square: Array
    uniform: Array


def logged_propensities(batch: Batch) -> Propensities:
    """The probabilities of the logged sets."""
    n, m = batch.eligible.sum(axis=1), batch.shown.sum(axis=1)
    j = (batch.shown & batch.top).sum(axis=1)
    by_design, surprise, variance = (np.full(len(n), np.nan) for _ in range(3))
    for (total, size, gamma), rows in _equal_rows(n, m, batch.gamma):
        if size >= total:
            by_design[rows], surprise[rows], variance[rows] = 1.0, 0.0, 0.0
            continue
        plan = blocks(int(total), int(size), gamma)
        by_design[rows] = np.exp(plan.log_set[j[rows]])
        surprise[rows], variance[rows] = j[rows] - plan.mean_j, plan.var_j
    for i, design in enumerate(batch.designs):
        if design is not None:
            by_design[i] = design.distribution.probability(np.flatnonzero(batch.shown[i]))
            mean, variance[i] = design.spread(np.flatnonzero(batch.top[i]))
            surprise[i] = j[i] - mean
    claimed = np.where(np.isnan(batch.propensity), by_design, batch.propensity)
    claimed = np.where(claimed > 0.0, claimed, np.nan)  # what was shown can not have been impossible
    log_sets = np.zeros(len(n))
    for (total, size), rows in _equal_rows(n, m):
        log_sets[rows] = log_comb(int(total), int(size))
    return Propensities(n, m, j, claimed, by_design, log_sets, surprise, variance)


# ---------------------------------------------------------------- by sets


class _Mixture(NamedTuple):
    """A draw as a sum: some sets with chances of their own, and a share of the paper's draw."""

    sets: Mapping[frozenset[int], float]
    share: float
    top: frozenset[int]
    gamma: float  # 1 is uniform, around any top set

    def base(self, labels: frozenset[int], n: int, m: int) -> float:
        if not self.share or len(labels) != m:
            return 0.0
        j = m if self.gamma == 1.0 else len(labels & self.top)
        return self.share * exp(log_set_probabilities(n, m, self.gamma)[j])

    def chance(self, labels: frozenset[int], n: int, m: int) -> float:
        return self.sets.get(labels, 0.0) + self.base(labels, n, m)


def _mixture_of(given: SetDistribution) -> _Mixture | None:
    if type(given) is not FewSets:  # with ties, or of another kind
        return None
    sets = {s: (1.0 - given.uniform) * p for s, p in given.chances.items() if p > NEGLIGIBLE}
    return _Mixture(sets, given.uniform, frozenset(), 1.0)


def set_weights(batch: Batch, logged: Propensities, choice: PolicyChoice) -> ImportanceWeights:
    """P_B(S) / p(S); NaN where p is unknown, or the log could not show all that B would."""
    size, square = choice.size(), np.full(len(batch), np.nan)
    w = choice.chance(batch.shown, logged.n) / logged.propensity
    by_row = np.array([design is not None for design in batch.designs])
    vary = np.array([design is not None and design.sizes_vary for design in batch.designs])
    fits = vary | (size == logged.m)
    w[~fits] = np.nan
    if choice.distributions is None:
        common = (batch.top & choice.top).sum(axis=1)
        for (n, m, gamma, b, a), rows in _equal_rows(logged.n, logged.m, batch.gamma, size, common):
            if m == b:
                square[rows] = _mean_square(int(n), int(m), gamma, int(a), choice.gamma) if m < n else 1.0
    else:
        by_row |= ~np.isnan(batch.gamma)
    for i in np.flatnonzero(by_row & fits):
        square[i] = _mean_square_by_row(batch, choice, int(i), int(logged.n[i]), int(size[i]))
    w[np.isposinf(square)] = np.nan
    square[np.isposinf(square)] = np.nan
    return ImportanceWeights(w, square, np.full(len(batch), np.nan))


def _mean_square_by_row(batch: Batch, choice: PolicyChoice, i: int, n: int, m: int) -> float:
    """E[w^2] where one of the two draws has a rule of its own; inf where B's sets are not all possible.

    m is the size of B's top set.
    """
    design, own = batch.designs[i], choice.mixture(i)
    if design is None:
        top = frozenset(np.flatnonzero(batch.top[i]).tolist())
        logged: _Mixture | None = _Mixture({}, 1.0, top, float(batch.gamma[i]))
    else:
        logged = _mixture_of(design.distribution)
    vary, theirs = (False, m) if design is None else (design.sizes_vary, design.m)
    if m >= n and not vary:
        return 1.0
    if logged is None and design is not None and own is not None and not own.share:
        shared = [(b, design.distribution.probability(s)) for s, b in own.sets.items()]
        return sum(b * b / p for b, p in shared) if all(p > NEGLIGIBLE for _, p in shared) else np.inf
    if logged is None or own is None:
        return np.nan
    if not logged.share:
        shared = [(own.chance(s, n, m), p) for s, p in logged.sets.items()]
        covered = sum(b for b, _ in shared)
        return sum(b * b / p for b, p in shared) if covered > 1.0 - 1e-6 else np.inf
    total = 0.0
    if own.share and m != theirs:
        return np.inf
    if own.share:
        common = m if 1.0 in (own.gamma, logged.gamma) else len(own.top & logged.top)
        total = own.share**2 / logged.share * _mean_square(n, m, logged.gamma, common, own.gamma)
    for s in own.sets.keys() | logged.sets.keys():
        mine, chance = own.chance(s, n, m), logged.chance(s, n, theirs)
        if mine > 0.0:
            total += mine**2 / chance if chance > 0.0 else np.inf
        if own.share and len(s) == m:
            total -= own.base(s, n, m) ** 2 / logged.base(s, n, theirs)
    return total


@lru_cache(maxsize=65536)
def _mean_square(n: int, m: int, gamma: float, common: int, gamma_b: float | None) -> float:
    """E[w^2] = sum over sets of P_B(S)^2 / p(S), where the two top sets share ``common`` labels."""
    logged = blocks(n, m, gamma).log_set
    if gamma_b is None:
        return float(np.exp(-logged[common]))
    own = blocks(n, m, gamma_b).log_set
    total, apart = 0.0, m - common
    for both in range(common + 1):  # labels of S in both top sets, in B's alone, in the log's alone
        for ours in range(min(apart, m - both) + 1):
            for theirs in range(min(apart, m - both - ours) + 1):
                rest = m - both - ours - theirs
                if rest <= n - common - 2 * apart:
                    parts = ((common, both), (apart, ours), (apart, theirs), (n - common - 2 * apart, rest))
                    sets = sum(log_comb(size, chosen) for size, chosen in parts)
                    total += np.exp(sets + 2 * own[both + ours] - logged[both + theirs])
    return float(total)


# ---------------------------------------------------------------- by labels


def linear_weights(batch: Batch, logged: Propensities, pi: Array) -> ImportanceWeights:
    """pi_B' G^+ 1_S, for a policy's inclusion probabilities pi."""
    shown = batch.shown
    w, square, uniform = np.full((3, len(batch)), np.nan)
    own = np.array([design is not None for design in batch.designs])
    by_weight = np.isnan(batch.gamma) & ~own & ~np.isnan(logged.propensity)
    # a uniform draw is one around any top set
    around = _BlockSums(pi, shown, np.where(by_weight[:, None], shown, batch.top))
    anywhere = _BlockSums(pi, shown, shown)
    for (total, m), rows in _equal_rows(logged.n, logged.m):
        if m < total:
            uniform[rows] = anywhere.mean_square(blocks(int(total), int(m), 1.0), rows)
        else:  # everything was shown: it answers for that set alone
            same = (np.abs(pi[rows] - shown[rows]) < 1e-9).all(axis=1)
            w[rows] = square[rows] = np.where(same, 1.0, np.nan)
    for (total, m, gamma), rows in _equal_rows(logged.n, logged.m, np.where(by_weight, 1.0, batch.gamma)):
        if m < total:
            plan = blocks(int(total), int(m), gamma)
            w[rows], square[rows] = around.weight(plan, rows), around.mean_square(plan, rows)
    for i in np.flatnonzero(own):
        design = batch.designs[i]
        assert design is not None
        if design.m == design.n and not design.sizes_vary:
            continue
        w[i], square[i] = design.linear(pi[i], shown[i])
    free = by_weight & (logged.m < logged.n)
    w[free] *= np.exp(-logged.log_sets[free]) / logged.propensity[free]
    square[free] = np.nan
    return ImportanceWeights(w, square, uniform)


class _BlockSums:
    """Sums over the labels inside and outside of a top set, by row."""

    def __init__(self, pi: Array, shown: Array, top: Array) -> None:
        def sums(values: Array) -> tuple[Array, Array]:
            inside = (values * top).sum(axis=1)
            return inside, values.sum(axis=1) - inside

        self.pi, self.shown, self.pi_shown, self.pi_pi = map(sums, (pi, shown, pi * shown, pi**2))

    def weight(self, plan: Blocks, rows: Array) -> Array:
        return plan.product(*_at(rows, self.pi, self.shown, self.pi_shown))

    def mean_square(self, plan: Blocks, rows: Array) -> Array:
        return plan.product(*_at(rows, self.pi, self.pi, self.pi_pi))


def _at(rows: Array, *sums: tuple[Array, Array]) -> list[tuple[Array, Array]]:
    return [(inside[rows], outside[rows]) for inside, outside in sums]
