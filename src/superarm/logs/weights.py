"""Importance weights: what a logged row is worth for a policy that did not choose its set.

A policy B shows its top set, or draws its set by a rule. Logged were a set S, drawn with known
probability p(S), and the bit f. Two weights w with E[w f] = B's hit rate:

    set      w = P_B(S) / p(S)                 needs the log to show B's sets at times
    linear   w = pi_B' G^+ 1_S                 G = E[1_S 1_S'], pi_B B's inclusion probabilities

The second is the pseudo-inverse estimator (Swaminathan et al. 2017): given x, E[f | S] is the sum
of p_r over S, so G^-1 1_S f is an unbiased estimate of every label's probability p, also where
some people want none of the labels. It answers for sets of any size. A rule's distribution knows p(S) and G
(explore/distributions.py); rows with a known p(S) > 0 and no rule are first weighted to a uniform draw. Where the log
does not say how a set was drawn, or could not have shown what B would show, the weight is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, nan
from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.explore import Mixture, SetDistribution
from superarm.explore.dilute_probabilities import log_comb, log_set_probabilities
from superarm.explore.distributions import NEGLIGIBLE
from superarm.logs.batches import LogBatch


class ImportanceWeights(NamedTuple):
    """Weights of rows; NaN where a row cannot have one."""

    w: Array
    mean: Array  # E[w] of each row, given all but the draw
    mean_square: Array  # E[w^2] of each row; NaN if it is not known
    uniform_mean_square: Array  # the same, had the set been drawn uniformly; NaN if it is not known

    def take(self, rows: Array) -> ImportanceWeights:
        """Return the weights of some rows, by a mask or by their indices."""
        return ImportanceWeights(*(column[rows] for column in self))


class WeightedRows(NamedTuple):
    """Rows of a log, with their weights for one policy."""

    hit: Array
    shown: Array
    has_propensity: Array
    inclusion: Array  # for each row and label, the probability that the policy shows it
    by_set: ImportanceWeights
    linear: ImportanceWeights

    def take(self, rows: Array) -> WeightedRows:
        """Return some of the rows, by their indices."""
        parts = (part.take(rows) if isinstance(part, ImportanceWeights) else part[rows] for part in self)
        return WeightedRows._make(parts)


def weigh_rows(batch: LogBatch, policy: Sequence[SetDistribution]) -> WeightedRows:
    """Return the rows of a batch with their weights for a policy, given its distribution in each row."""
    pi = inclusion_of_all(policy, batch.shown.shape[1])
    has_propensity = ~np.isnan(batch.propensity)
    by_set, linear = set_weights(batch, policy), linear_weights(batch, pi)
    return WeightedRows(batch.hit, batch.shown, has_propensity, pi, by_set, linear)


def inclusion_of_all(distributions: Sequence[SetDistribution], k: int) -> Array:
    """Return the inclusion probabilities of all k labels, a row for each distribution over label indices."""
    pi = np.zeros((len(distributions), k))
    for row, distribution in zip(pi, distributions, strict=True):
        row[eligible_index(distribution)] = distribution.inclusion()
    return pi


def set_weights(batch: LogBatch, policy: Sequence[SetDistribution]) -> ImportanceWeights:
    """Return P_B(S) / p(S), for a policy's distribution in each row."""
    w, squares, unknown = np.full((3, len(batch)), np.nan)
    for i, (drawn_from, policy_draw) in enumerate(zip(batch.distributions, policy, strict=True)):
        if policy_draw.m == batch.n_shown[i] or (drawn_from is not None and drawn_from.sizes_vary):
            square = np.nan if drawn_from is None else mean_square(policy_draw, drawn_from)
            if not np.isposinf(square):
                squares[i] = square
                w[i] = policy_draw.probability(batch.sets[i]) / batch.propensity[i]
    return ImportanceWeights(w, np.ones(len(batch)), squares, unknown)


def linear_weights(batch: LogBatch, pi: Array) -> ImportanceWeights:
    """Return pi_B' G^+ 1_S, for a policy's inclusion probabilities pi."""
    n = batch.n_eligible.astype(np.float64)
    m = batch.n_shown
    shown = batch.shown
    with np.errstate(divide="ignore", invalid="ignore"):  # where all labels are shown, sets cannot be drawn
        # of a uniform draw, G = diag(diagonal_excess) + pair 11'
        pair = m * (m - 1) / (n * (n - 1))
        diagonal_excess = m / n - pair
        shrunk = pair / (diagonal_excess + n * pair) * pi.sum(axis=1)
        uniform = ((pi**2).sum(axis=1) - shrunk * pi.sum(axis=1)) / diagonal_excess
        w = ((pi * shown).sum(axis=1) - shrunk * m) / diagonal_excess
        w *= np.exp(-batch.log_n_sets) / batch.propensity
    squares = np.full(len(batch), np.nan)
    everything = m == n  # all eligible labels were shown, which says nothing about fewer
    same = (np.abs(pi - shown) < 1e-9).all(axis=1)
    w[everything] = squares[everything] = np.where(same, 1.0, np.nan)[everything]
    uniform[everything] = np.nan
    for i, drawn_from in enumerate(batch.distributions):
        if drawn_from is not None and (drawn_from.sizes_vary or not everything[i]):
            w[i], squares[i] = _linear_weight(drawn_from, pi[i], shown[i], batch.rule_propensity[i])
    mean = np.maximum(pi.sum(axis=1), 1e-300) / m
    return ImportanceWeights(w, mean, squares, uniform)


def _linear_weight(
    logged: SetDistribution, pi: Array, shown: Array, probability: float
) -> tuple[float, float]:
    """Return pi' G^+ 1_S and its mean square, for a policy's inclusion probabilities pi of all labels.

    NaN where pi is outside of the range of G (no weight is right if the policy shows labels that could not be
    shown), or where the shown set was impossible (the rule is not the one that drew it).
    """
    if not probability > 0.0:
        return nan, nan
    eligible = eligible_index(logged)
    policy = pi[eligible]
    z = logged.solve(policy)
    return float(z[shown[eligible]].sum()), float(z @ policy)


def eligible_index(distribution: SetDistribution) -> list[int] | slice:
    """Return what picks the eligible labels from an array over all labels: their indices, or a slice of all."""
    return slice(None) if isinstance(distribution.eligible, range) else list(distribution.eligible)


# ---------------------------------------------------------------- E[w^2] of two distributions


def mean_square(policy: SetDistribution, logged: SetDistribution) -> float:
    """Return E[w^2] of w = P_B(S) / p(S): the sum of P_B(S)^2 / p(S) over all sets S.

    inf where a set of the policy's cannot be logged; NaN where the sum is not known.
    """
    n = len(logged.eligible)
    m = policy.m
    if m >= n and not logged.sizes_vary:
        return 1.0
    if not isinstance(policy, Mixture) or policy.ties:
        return nan
    if not isinstance(logged, Mixture) or logged.ties:
        if policy.dilute_share:
            return nan
        terms = [(p, logged.probability(labels)) for labels, p in policy.sets.items()]
        return sum(b * b / p for b, p in terms) if all(p > NEGLIGIBLE for _, p in terms) else np.inf
    if not logged.dilute_share:
        terms = [(policy.probability(labels), p) for labels, p in logged.sets.items()]
        return sum(b * b / p for b, p in terms) if sum(b for b, _ in terms) > 1.0 - 1e-6 else np.inf
    if policy.dilute_share and m != logged.m:
        return np.inf
    total = 0.0
    if policy.dilute_share:
        common = len(policy.top & logged.top)
        dilute = _dilute_mean_square(n, m, logged.gamma, policy.gamma, common)
        total = policy.dilute_share**2 / logged.dilute_share * dilute
    for labels in policy.sets.keys() | logged.sets.keys():
        b, p = policy.probability(labels), logged.probability(labels)
        if b > 0.0:
            total += b**2 / p if p > 0.0 else np.inf
        if policy.dilute_share and len(labels) == m:
            total -= policy.dilute_probability(labels) ** 2 / logged.dilute_probability(labels)
    return total


@lru_cache(maxsize=65536)
def _dilute_mean_square(n: int, m: int, gamma: float, gamma_b: float, common: int) -> float:
    """Return E[w^2] of two dilute draws, with gamma and gamma_b, whose top sets share ``common`` labels."""
    logged, policy = log_set_probabilities(n, m, gamma), log_set_probabilities(n, m, gamma_b)
    total = 0.0
    apart = m - common
    for both in range(common + 1):  # labels of S in both top sets, in B's alone, in the log's alone
        for policy_only in range(min(apart, m - both) + 1):
            for logged_only in range(min(apart, m - both - policy_only) + 1):
                rest = m - both - policy_only - logged_only
                if rest <= n - common - 2 * apart:
                    chosen = (both, policy_only, logged_only, rest)
                    sizes = (common, apart, apart, n - common - 2 * apart)
                    log_n_sets = sum(map(log_comb, sizes, chosen))
                    total += exp(log_n_sets + 2 * policy[both + policy_only] - logged[both + logged_only])
    return total
