"""Importance weights: what a logged row is worth for a policy that did not choose its set.

A policy B shows its top set, or draws its set by a rule. Logged were a set S, drawn with known
probability p(S), and the bit f. Two weights w with E[w f] = B's hit rate:

    set      w = P_B(S) / p(S)                 needs the log to show B's sets at times
    linear   w = pi_B' G^+ 1_S                 G = E[1_S 1_S'], pi_B B's inclusion probabilities

The second is the pseudo-inverse estimator (Swaminathan et al. 2017): given x, E[f | S] is the sum
of p_r over S, so G^-1 1_S f is an unbiased estimate of every label's probability p, also where
some people want none of the labels. It answers for sets of any size. set_draws.py knows p(S) and G of a rule;
rows with a known p(S) > 0 and no rule are first weighted to a uniform draw. Rows whose weight nobody can know
are NaN: the log does not say how its set was drawn, or could not have shown what B would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.explore.distributions import log_comb
from superarm.logs.batches import Batch
from superarm.logs.set_draws import SetDraw, mean_square


class ImportanceWeights(NamedTuple):
    """Weights of rows; NaN where a row cannot have one."""

    w: Array
    square: Array  # E[w^2] of each row, given all but the draw; NaN if it is not known
    uniform: Array  # the same, had the set been drawn uniformly

    def part(self, i: Array) -> ImportanceWeights:
        """Those of some of the rows."""
        return ImportanceWeights(*(column[i] for column in self))


class Propensities(NamedTuple):
    """Row by row, how probable the logged sets were."""

    n: Array  # eligible labels
    m: Array  # shown labels
    propensity: Array  # p(S): as logged, else by the rule; NaN if neither is known
    by_rule: Array  # NaN if the log does not say how the set was drawn
    log_sets: Array  # log of the number of sets that were possible
    excess: Array  # |S n top|, less its expectation by the rule

    def part(self, i: Array) -> Propensities:
        """Those of some of the rows."""
        return Propensities(*(column[i] for column in self))


class PolicyWeights(NamedTuple):
    """What rows are worth for one policy."""

    inclusion: Array  # for each row and label, the probability that the policy shows it
    by_set: ImportanceWeights
    linear: ImportanceWeights

    def part(self, i: Array) -> PolicyWeights:
        """Those of some of the rows."""
        return PolicyWeights(self.inclusion[i], self.by_set.part(i), self.linear.part(i))


def logged_propensities(batch: Batch) -> Propensities:
    """The probabilities of the logged sets."""
    n, m = batch.eligible.sum(axis=1), batch.shown.sum(axis=1)
    by_rule, excess = np.full((2, len(batch)), np.nan)
    for i, draw in enumerate(batch.draws):
        if draw is not None:
            by_rule[i] = draw.probability(batch.sets[i])
            excess[i] = (batch.shown[i] & batch.top[i]).sum() - draw.expected_overlap(batch.top[i])
    propensity = np.where(np.isnan(batch.propensity), by_rule, batch.propensity)
    propensity = np.where(propensity > 0.0, propensity, np.nan)  # what was shown can not have been impossible
    log_sets = np.array([log_comb(*sizes) for sizes in zip(n.tolist(), m.tolist(), strict=True)])
    return Propensities(n, m, propensity, by_rule, log_sets, excess)


def policy_weights(batch: Batch, logged: Propensities, policy: Sequence[SetDraw]) -> PolicyWeights:
    """The weights for a policy that would draw its sets so, a draw for each row."""
    pi = np.stack([draw.inclusion(batch.shown.shape[1]) for draw in policy])
    return PolicyWeights(pi, set_weights(batch, logged, policy), linear_weights(batch, logged, pi))


def set_weights(batch: Batch, logged: Propensities, policy: Sequence[SetDraw]) -> ImportanceWeights:
    """P_B(S) / p(S), for a policy's draw in each row."""
    w, square, unknown = np.full((3, len(batch)), np.nan)
    for i, (draw, own) in enumerate(zip(batch.draws, policy, strict=True)):
        if own.m == logged.m[i] or (draw is not None and draw.sizes_vary):
            possible = np.nan if draw is None else mean_square(own, draw)
            if not np.isposinf(possible):
                square[i] = possible
                w[i] = own.probability(batch.sets[i]) / logged.propensity[i]
    return ImportanceWeights(w, square, unknown)


def linear_weights(batch: Batch, logged: Propensities, pi: Array) -> ImportanceWeights:
    """pi_B' G^+ 1_S, for a policy's inclusion probabilities pi."""
    n, m, shown = logged.n.astype(np.float64), logged.m, batch.shown
    with np.errstate(divide="ignore", invalid="ignore"):  # where all labels are shown, sets cannot be drawn
        # of a uniform draw, G = gap I + pair 11'
        pair = m * (m - 1) / (n * (n - 1))
        gap = m / n - pair
        shrunk = pair / (gap + n * pair) * pi.sum(axis=1)
        uniform = ((pi**2).sum(axis=1) - shrunk * pi.sum(axis=1)) / gap
        w = ((pi * shown).sum(axis=1) - shrunk * m) / gap * np.exp(-logged.log_sets) / logged.propensity
    square = np.full(len(batch), np.nan)
    everything = m == n  # it answers for that set alone
    same = (np.abs(pi - shown) < 1e-9).all(axis=1)
    w[everything] = square[everything] = np.where(same, 1.0, np.nan)[everything]
    uniform[everything] = np.nan
    for i, draw in enumerate(batch.draws):
        if draw is not None and (draw.sizes_vary or not everything[i]):
            w[i], square[i] = draw.linear_weight(pi[i], batch.sets[i])
    return ImportanceWeights(w, square, uniform)
