"""What a logged row is worth for a question that was not asked when it was written.

A policy B shows its top set T_B, or draws around it with gamma_B. Logged were a set S, drawn with
known probability p(S), and the bit f. Two weights w with E[w f] = B's hit rate:

    set      w = P_B(S) / p(S)                 needs B to show exactly the logged set at times
    linear   w = pi_B' G^-1 1_S                G = E[1_S 1_S'], pi_B B's inclusion probabilities

The second is the pseudo-inverse estimator (Swaminathan et al. 2017): given x, E[f | S] is the sum
of p_r over S, so G^-1 1_S f is an unbiased estimate of every label's probability p, also where
some people want none of the labels. It answers for sets of any size. For the draw of the paper's
eq. 5, G has two blocks (inside and outside of the logged top set), and its inverse is closed. For
sets drawn in any other way with known p(S) > 0, rows are first weighted to a uniform draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from superarm.explore.dilute import inclusion, overlap_probabilities, table
from superarm.explore.draws import log_comb
from superarm.logs.batches import Batch

__all__ = ["Choice", "Drawn", "Odds", "Weights", "drawn", "linear_weights", "logged_odds", "set_weights"]

Array = np.ndarray[Any, Any]


class Drawn(NamedTuple):
    """How sets of m out of n are drawn with gamma: tables by j = |S n T|."""

    m: int
    rest: int
    log_set: Array  # log probability of a set
    mean_j: float
    var_j: float
    inside: float  # inclusion probabilities
    outside: float
    gap_in: float  # G: the diagonal of each block is ``gap`` above its other entries,
    gap_out: float  # ``pair``; between the blocks all entries are ``cross``
    pair_in: float
    pair_out: float
    cross: float

    def sums(self, inside: Array, outside: Array) -> tuple[Array, Array]:
        """The sums of z = G^-1 1_A over each block, for a set A with so many labels in each."""
        a, b = self.gap_in + self.m * self.pair_in, self.m * self.cross
        c, d = self.rest * self.cross, self.gap_out + self.rest * self.pair_out
        det = a * d - b * c
        return (d * inside - b * outside) / det, (a * outside - c * inside) / det

    def product(self, a: tuple[Array, Array], b: tuple[Array, Array], both: tuple[Array, Array]) -> Array:
        """1_A' G^-1 1_B from the numbers of labels (inside, outside) in A, in B, and in both."""
        z_in, z_out = self.sums(*b)
        value = (both[0] - a[0] * (self.pair_in * z_in + self.cross * z_out)) / self.gap_in
        value = value + (both[1] - a[1] * (self.pair_out * z_out + self.cross * z_in)) / self.gap_out
        return np.asarray(value)


@lru_cache(maxsize=4096)
def drawn(n: int, m: int, gamma: float) -> Drawn:
    """The tables for one design; 1 <= m < n."""
    pi, j = inclusion(n, m, gamma), np.arange(m + 1)
    odds = overlap_probabilities(n, m, gamma)
    mean = float(odds @ j)
    return Drawn(
        m=m,
        rest=n - m,
        log_set=table(n, m, gamma).log_set,
        mean_j=mean,
        var_j=float(odds @ (j - mean) ** 2),
        inside=pi.inside,
        outside=pi.outside,
        gap_in=pi.inside - pi.both_inside,
        gap_out=pi.outside - pi.both_outside,
        pair_in=pi.both_inside,
        pair_out=pi.both_outside,
        cross=pi.one_each,
    )


def _groups(*columns: Array) -> list[tuple[tuple[float, ...], Array]]:
    """Rows that agree in all columns; a row with NaN belongs to no group."""
    known = np.flatnonzero(~np.any([np.isnan(column) for column in columns], axis=0))
    code = np.zeros(len(known), np.int64)
    for column in columns:
        part = column[known]
        if len(part) and (part != part[0]).any():
            values, place = np.unique(part, return_inverse=True)
            code = code * len(values) + place
    found = []
    for value in np.unique(code):
        rows = known[code == value]
        found.append((tuple(float(column[rows[0]]) for column in columns), rows))
    return found


@dataclass(frozen=True, slots=True)
class Choice:
    """What a policy would show for each row of a batch."""

    top: Array  # n x k: its set
    gamma: float | None = None  # it draws around that set; None shows the set itself

    def mixture(self, n: Array) -> tuple[Array, Array]:
        """Inclusion probabilities (inside, outside) of its set, for n eligible labels."""
        inside, outside = np.ones(len(n)), np.zeros(len(n))
        if self.gamma is not None:
            for (total, m), rows in _groups(n, self.top.sum(axis=1)):
                if m < total:
                    plan = drawn(int(total), int(m), self.gamma)
                    inside[rows], outside[rows] = plan.inside, plan.outside
        return inside, outside

    def expected(self, p: Array, eligible: Array) -> Array:
        """The expected hit where labels have probabilities p."""
        inside, outside = self.mixture(eligible.sum(axis=1))
        on_top = (p * self.top).sum(axis=1)
        return np.asarray(outside * (p * eligible).sum(axis=1) + (inside - outside) * on_top)


class Odds(NamedTuple):
    """What a batch says about its draws, by row."""

    n: Array  # eligible labels
    m: Array  # shown labels
    j: Array  # shown labels that are in the logged top set
    propensity: Array  # as claimed, or from the design; NaN if unknown
    by_design: Array  # from top and gamma; NaN if unknown
    log_sets: Array  # log of the number of sets there are
    surprise: Array  # j minus its mean under the claimed design
    variance: Array


class Weights(NamedTuple):
    """Weights w, and E[w^2] over the draw of the logged set (NaN where the design is unknown)."""

    w: Array
    square: Array


def logged_odds(batch: Batch) -> Odds:
    """The probabilities of the logged sets."""
    n, m = batch.eligible.sum(axis=1), batch.shown.sum(axis=1)
    j = (batch.shown & batch.top).sum(axis=1)
    by_design, surprise, variance = (np.full(len(n), np.nan) for _ in range(3))
    for (total, size, gamma), rows in _groups(n, m, batch.gamma):
        if size >= total:
            by_design[rows], surprise[rows], variance[rows] = 1.0, 0.0, 0.0
            continue
        plan = drawn(int(total), int(size), gamma)
        by_design[rows] = np.exp(plan.log_set[j[rows]])
        surprise[rows], variance[rows] = j[rows] - plan.mean_j, plan.var_j
    claimed = np.where(np.isnan(batch.propensity), by_design, batch.propensity)
    log_sets = np.zeros(len(n))
    for (total, size), rows in _groups(n, m):
        log_sets[rows] = log_comb(int(total), int(size))
    return Odds(n, m, j, claimed, by_design, log_sets, surprise, variance)


def set_weights(batch: Batch, odds: Odds, choice: Choice) -> Weights:
    """P_B(S) / p(S); NaN where p is unknown."""
    size, shared = choice.top.sum(axis=1), (batch.shown & choice.top).sum(axis=1)
    chance, square = np.zeros(len(batch)), np.full(len(batch), np.nan)
    for (total, m, b), rows in _groups(odds.n, odds.m, size):
        if m == b:
            if choice.gamma is None or m >= total:
                chance[rows] = shared[rows] == m
            else:
                chance[rows] = np.exp(drawn(int(total), int(m), choice.gamma).log_set[shared[rows]])
    common = (batch.top & choice.top).sum(axis=1)
    for (total, m, gamma, b, a), rows in _groups(odds.n, odds.m, batch.gamma, size, common):
        if m < total and m == b:
            square[rows] = _square(int(total), int(m), gamma, int(a), choice.gamma)
        else:
            square[rows] = float(m == b)
    return Weights(np.asarray(chance / odds.propensity), square)


@lru_cache(maxsize=65536)
def _square(n: int, m: int, gamma: float, common: int, gamma_b: float | None) -> float:
    """E[w^2] = sum over sets of P_B(S)^2 / p(S), where the two top sets share ``common`` labels."""
    logged = drawn(n, m, gamma).log_set
    if gamma_b is None:
        return float(np.exp(-logged[common]))
    own = drawn(n, m, gamma_b).log_set
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


def linear_weights(batch: Batch, odds: Odds, choice: Choice) -> Weights:
    """pi_B' G^-1 1_S; NaN where the log does not say how probable the set was."""
    inside, outside = choice.mixture(odds.n)
    mine, shown, top = choice.top, batch.shown, batch.top

    def count(labels: Array) -> tuple[Array, Array]:
        within = (labels & top).sum(axis=1)
        return within, labels.sum(axis=1) - within

    counts = [count(labels) for labels in (mine, shown, mine & shown)]
    w, square = np.full(len(batch), np.nan), np.full(len(batch), np.nan)
    by_weight = np.isnan(batch.gamma) & ~np.isnan(odds.propensity)
    design_gamma = np.where(by_weight, 1.0, batch.gamma)
    for (total, m, gamma), rows in _groups(odds.n, odds.m, design_gamma):
        if m >= total:  # everything was shown: it answers for that set alone
            same = (mine[rows] == shown[rows]).all(axis=1)
            w[rows] = square[rows] = np.where(same, 1.0, np.nan)
            continue
        plan = drawn(int(total), int(m), gamma)
        b, s, both = ((x[rows], y[rows]) for x, y in counts)
        whole = np.full(len(rows), m), np.full(len(rows), total - m)
        out, extra = outside[rows], inside[rows] - outside[rows]
        w[rows] = out * plan.product(whole, s, s) + extra * plan.product(b, s, both)
        square[rows] = (
            out**2 * plan.product(whole, whole, whole)
            + 2 * out * extra * plan.product(whole, b, b)
            + extra**2 * plan.product(b, b, b)
        )
    free = by_weight & (odds.m < odds.n)
    w[free] *= np.exp(-odds.log_sets[free]) / odds.propensity[free]
    square[free] = np.nan
    return Weights(w, square)
