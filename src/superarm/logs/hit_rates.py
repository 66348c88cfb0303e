"""From weighted rows to an estimate with an interval, and whether it can be trusted.

    ips         mean of w f
    snips       sum of w f / sum of w
    dr          mean of w f - b (w - 1) - c (w q_logged - q_policy)
    pi, pi-dr   the same as ips and dr, with the linear weights (see weights.py)

q_policy and q_logged are what is expected of the policy's set and of the logged one. (w - 1) and
(w q_logged - q_policy) are 0 on average, so b and c may be anything: they are those of least variance in the sample
(control variates; Vlassis et al. 2021), so with many rows dr has at most the variance of the others. b = 0 and c = 1
is the doubly robust estimate as it is usually written.

All are sums over rows, so a log of any length is read once and nothing is kept. The intervals are
Student's, with as many degrees of freedom as the weights leave effective rows: n E[w]^2 / E[w^2],
where E[w^2] is exact if the log says how its sets were drawn (a sample of heavy weights looks
harmless just when the heavy ones are missing), and else the sample's. If a few rows are much heavier than
the others, the spread is known from those alone: it is as well known as from (sum E[w^2])^2 / sum E[w^4] rows, with
E[w^4] = E[w^2]^3 of a weight that is either 0 or heavy.

Some rows have no weight: their sets could not show what the policy would. A few others would need weights so
heavy that they outweigh all the rest. These are left out, by E[w^2] alone and never by what was drawn, so that the
others stay unbiased. In such rows any outcome is possible, and the interval is made wider by their share; the value
takes q_policy there (ips, snips and pi: the value in the others).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, nan, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from superarm._intervals import student_margin
from superarm._types import Array
from superarm.logs.calibration import ExpectationCalibrator
from superarm.logs.results import Estimate, RequiredData
from superarm.logs.weights import ImportanceWeights, WeightedRows

MIN_ROWS = 100  # effective rows, below which no interval is to be trusted
MIN_HITS = 20  # and effective hits
MIN_VARIANCE_ROWS = 40  # and rows that the spread is known from
MIN_COUNT = 10  # hits or misses, too few for the spread to be known
WARNING_Z = 4.0  # standard errors that are no accident
MAX_UNSUPPORTED = 1 / 3  # the share of rows that may be left out
BINS = 64  # of rows, by the power of two of E[w^2]

# the Gram matrix of rows is the sum of v v' over their vectors v = (1, y, u, c):
# y = w f, u = w / E[w] (1 in expectation), c = w q_logged - q_policy (0 in expectation)
ONE, Y, U, C = range(4)
CONTROLS = {U: 1.0, C: 0.0}  # and what they are in expectation


class RowSums(NamedTuple):
    """Sums over rows, for each bin or for several bins together."""

    gram: Array
    used: Array  # rows with a weight other than 0
    hits: Array
    weight: Array  # E[w]
    weight_square: Array  # E[w^2]
    weight_fourth: Array  # E[w^4]
    residual: Array  # (f - q_logged)^2
    predicted: Array

    @property
    def rows(self) -> Array:
        return np.asarray(self.gram[..., ONE, ONE])

    @property
    def n_eff(self) -> Array:
        """The effective sample size."""
        return np.minimum(self.rows, self.weight**2 / np.maximum(self.weight_square, 1e-300))

    @property
    def variance_rows(self) -> Array:
        """The effective number of rows behind the estimated variance."""
        return np.minimum(self.rows, self.weight_square**2 / np.maximum(self.weight_fourth, 1e-300))

    @property
    def means(self) -> Array:
        """The means of (1, y, u, c)."""
        return np.asarray(self.gram[ONE] / self.gram[ONE, ONE])

    @property
    def covariance(self) -> Array:
        """The covariance matrix of (1, y, u, c)."""
        return np.asarray(self.gram / self.gram[ONE, ONE] - np.outer(self.means, self.means))

    def mean_weight(self) -> tuple[float, float]:
        """Return the mean of w / E[w], which is 1 in expectation, and its standard error."""
        n = float(self.rows)
        error = sqrt(max(self.covariance[U, U], 0.0) / (n - 1)) if n > 1 else nan
        return float(self.means[U]), error

    def weight_bias(self) -> int:
        """Return -1 or 1 where weights average less or more than 1, and it is no accident; else 0."""
        mean, error = self.mean_weight()
        margin = WARNING_Z * error + 1e-6
        return int(mean > 1.0 + margin) - int(mean < 1.0 - margin)

    def ips_terms(self) -> tuple[float, float]:
        """Return the mean and the variance of w f: ips and pi."""
        return float(self.means[Y]), float(self.covariance[Y, Y])

    def self_normalized(self) -> tuple[float, float]:
        """Return the sum of w f over that of w, and its variance: snips."""
        weight = float(self.means[U])
        if not weight:
            return nan, nan
        ratio = float(self.means[Y]) / weight
        residual = np.array([0.0, 1.0, -ratio, 0.0])  # w f - ratio w
        return ratio, float(residual @ self.gram @ residual) / float(self.rows) / weight**2

    def controlled(self) -> tuple[float, float]:
        """Return the mean and the variance of w f, less what its controls explain: dr and pi-dr."""
        controls, expected = list(CONTROLS), list(CONTROLS.values())
        shared = self.covariance[controls, Y]
        b = np.linalg.pinv(self.covariance[np.ix_(controls, controls)], rcond=1e-9, hermitian=True) @ shared
        value = self.means[Y] - b @ (self.means[controls] - expected)
        return float(value), float(self.covariance[Y, Y] - b @ shared)

    def standard_error(self, value: float, variance: float, *, with_controls: bool) -> float:
        """Return an estimate's standard error by the variance of its terms, not too small after few hits or misses."""
        n, n_eff = float(self.rows), float(self.n_eff)
        error = sqrt(max(variance, 0.0) / max(n - 1, 1))
        if n_eff > 0 and n_eff * min(value, 1 - value) < MIN_COUNT:
            # of what has hardly been seen, the sample's own spread says little: two rows more, a hit and a miss
            moderate = (n_eff * min(max(value, 0.0), 1.0) + 1) / (n_eff + 2)
            error = max(error, sqrt(moderate * (1 - moderate) / n_eff))
        if with_controls and self.residual < MIN_COUNT:
            # answers that were not expected: as if there had been one more
            error = max(error, sqrt((self.residual + 1.0) * self.weight_square / n) / n)
        return error


# of each kind of weights: an estimate, and the variance of its terms, by the sums over rows
Estimator = Callable[[RowSums], tuple[float, float]]
ESTIMATORS: dict[str, dict[str, Estimator]] = {
    "set": {"ips": RowSums.ips_terms, "snips": RowSums.self_normalized, "dr": RowSums.controlled},
    "linear": {"pi": RowSums.ips_terms, "pi-dr": RowSums.controlled},
}


class HitRateSums:
    """Sums over rows with one kind of weight: of whole sets, or linear ones."""

    def __init__(self, kind: Literal["set", "linear"]) -> None:
        self.kind = kind
        self.max_weight = 0.0
        self.without_propensity = 0  # rows that do not say how probable their set was
        self.unsupported = 0.0  # rows without a weight
        self.unsupported_predicted = 0.0  # the sum of the predictions for them
        self.bins = RowSums(np.zeros((BINS, 4, 4)), *np.zeros((7, BINS)))  # by how heavy weights may be
        self.uniform_weight = self.uniform_square = 0.0  # E[w] and E[w^2], had the sets been uniform

    def add(
        self,
        hit: Array,
        weights: ImportanceWeights,
        *,
        has_propensity: Array,
        q_policy: Array,
        q_logged: Array,
        predicted: Array,
    ) -> None:
        """Add rows, their outcomes and weights.

        Args:
            has_propensity: whether it is known how probable the set was.
            q_policy, q_logged: what is expected of the policy's set and the logged one: E[w q_logged] = q_policy.
            predicted: the expected hit of the policy's set, used where a row has no weight.
        """
        supported = ~np.isnan(weights.w)
        self.without_propensity += int((~has_propensity).sum())
        self.unsupported += float((~supported).sum())
        self.unsupported_predicted += float(predicted[~supported].sum())
        if_uniform = ~np.isnan(weights.uniform_mean_square)
        self.uniform_weight += float(weights.mean[if_uniform].sum())
        self.uniform_square += float(weights.uniform_mean_square[if_uniform].sum())
        if not supported.any():
            return
        w, mean, mean_square, _ = weights.take(supported)
        f, predicted = hit[supported], predicted[supported]
        q_policy, q_logged = q_policy[supported], q_logged[supported]
        self.max_weight = max(self.max_weight, float(np.abs(w).max()))
        exact = ~np.isnan(mean_square)
        v = np.stack([np.ones(len(w)), w * f, w / mean, w * q_logged - q_policy], axis=1)
        rows = RowSums(
            gram=v[:, :, None] * v[:, None, :],
            used=w != 0,
            hits=f,
            weight=np.where(exact, mean, w),
            weight_square=np.where(exact, mean_square, w**2),
            weight_fourth=np.where(exact, mean_square * (mean_square / mean) ** 2, w**4),
            residual=(f - q_logged) ** 2,
            predicted=predicted,
        )
        heaviness = np.where(exact, np.maximum(mean_square, 1.0), 1.0)
        bin_index = np.ceil(np.log2(heaviness)).clip(0, BINS - 1).astype(np.int64)
        for sums, terms in zip(self.bins, rows, strict=True):
            np.add.at(sums, bin_index, terms)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as JSON-ready values, for `from_dict`."""
        return {
            "kind": self.kind,
            "max_weight": self.max_weight,
            "unknown": self.without_propensity,
            "unsupported": [self.unsupported, self.unsupported_predicted],
            "bins": [sums.tolist() for sums in self.bins],
            "uniform": [self.uniform_weight, self.uniform_square],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HitRateSums:
        sums = cls(data["kind"])
        sums.max_weight = data["max_weight"]
        sums.without_propensity = data["unknown"]
        sums.unsupported, sums.unsupported_predicted = data["unsupported"]
        sums.uniform_weight, sums.uniform_square = data["uniform"]
        sums.bins = RowSums(*map(np.array, data["bins"]))
        return sums

    @property
    def rows(self) -> int:
        return round(float(self.bins.rows.sum()) + self.unsupported)

    @property
    def expected(self) -> float:
        """The mean of the predictions."""
        return self._predicted / self.rows if self.rows else nan

    @property
    def _predicted(self) -> float:
        return self.unsupported_predicted + float(self.bins.predicted.sum())

    def _kept_rows(self) -> tuple[RowSums, float]:
        """Return which rows to use, and the share of rows that are left out.

        The rows of the heaviest bins are left out, as many as make the interval narrowest.
        """
        up_to = RowSums(*(np.cumsum(sums, axis=0) for sums in self.bins))
        n = self.rows
        rows = up_to.rows
        left_out = 1.0 - rows / n
        residual = up_to.residual[-1] / max(rows[-1], 1.0)
        width = 4.0 * np.sqrt(np.maximum(residual * up_to.weight_square, 0.0)) / n + left_out
        enough = (up_to.n_eff >= MIN_ROWS) & (up_to.variance_rows >= MIN_VARIANCE_ROWS)
        width += np.where(enough, 0.0, 10.0)  # better a wide interval than one that is not to be trusted
        width[(left_out > MAX_UNSUPPORTED) & (rows < rows[-1])] = np.inf
        last = int(np.argmin(width))
        return RowSums(*(sums[last] for sums in up_to)), float(left_out[last])

    def estimates(self, level: float = 0.95) -> list[Estimate]:
        """Return all estimates that these weights give, with intervals of this level."""
        estimators = ESTIMATORS[self.kind]
        if self.rows < 2 or self.bins.rows.sum() < 2:
            why = "the log never shows a set of this policy's"
            if self.without_propensity and self.without_propensity >= self.unsupported:
                why = "the log does not say how probable its sets were"
            elif self.rows < 2:
                why = "too few rows"
            return [Estimate(name, nan, nan, nan, 0, 0.0, 0.0, 0.0, nan, 1.0, why) for name in estimators]
        kept, left_out = self._kept_rows()
        problem = self._problem(kept, left_out)
        predicted = (self._predicted - float(kept.predicted)) / self.rows  # of the rows left out
        share = 1.0 - left_out

        def estimate(name: str, estimator: Estimator) -> Estimate:
            value, variance = estimator(kept)
            with_controls = estimator is RowSums.controlled
            error = kept.standard_error(value, variance, with_controls=with_controls)
            freedom = float(min(kept.n_eff, kept.variance_rows)) - 1 - with_controls * len(CONTROLS)
            margin = student_margin(error, freedom, level)
            return Estimate(
                name=name,
                value=share * value + (predicted if with_controls else left_out * value),
                low=share * max(0.0, value - margin),
                high=share * min(1.0, value + margin) + left_out,
                rows=round(float(kept.rows)),
                n_eff=float(kept.n_eff),
                max_weight=self.max_weight,
                overlap=float(kept.used / kept.rows),
                mean_weight=kept.mean_weight()[0],
                unsupported=left_out,
                problem=problem,
            )

        return [estimate(name, estimator) for name, estimator in estimators.items()]

    def _problem(self, kept: RowSums, left_out: float) -> str:
        """Return why these rows give no sound estimate; empty if they do."""
        n_eff, variance_rows = float(kept.n_eff), float(kept.variance_rows)
        mean = kept.mean_weight()[0]
        bias = kept.weight_bias()
        # by the log's own hit rate: a rule that looked at the weighted hits would pick lucky samples
        hits = n_eff * float(kept.hits / kept.rows)
        row_count = f"{self.rows:,}"
        if kept.used == 0:
            return "the log never shows a set of this policy's"
        if left_out > MAX_UNSUPPORTED:
            why = (
                "do not say how probable their set was"
                if self.without_propensity
                else "could not show its sets"
            )
            return f"{left_out:.0%} of {row_count} rows {why}; at most {MAX_UNSUPPORTED:.0%} may"
        if n_eff < MIN_ROWS:
            size = f"an effective sample size of {n_eff:.0f}, from {kept.used:,.0f} of {row_count} rows"
            return f"{size}: it takes {MIN_ROWS}"
        if variance_rows < MIN_VARIANCE_ROWS:
            few = f"a few of {row_count} rows weigh so much that they decide: the spread is that of"
            return f"{few} {variance_rows:.0f} rows, and it takes {MIN_VARIANCE_ROWS}"
        if hits < MIN_HITS:
            size = f"an effective sample size of {n_eff:.0f}, from {row_count} rows, with {hits:.0f} hits"
            return f"{size}: it takes {MIN_HITS}"
        if bias < 0:
            return f"weights average {mean:.3f}, not 1: the log lacks sets it would show, or its propensities are wrong"
        if bias > 0:
            return f"weights average {mean:.3f}, not 1: the log's propensities are wrong"
        return ""

    def required_data(self, hit_rate: float, max_uniform: float = 1.0) -> RequiredData:
        """Return how many rows, or which share of uniform sets below ``max_uniform``, an answer would take."""
        if not hit_rate:  # rows without a hit do not tell
            return RequiredData(None, None)
        rows = uniform = None
        propensities: Literal["", "missing", "doubtful", "wrong"] = ""
        min_n_eff = max(MIN_ROWS, MIN_HITS / hit_rate)
        left_out = 1.0
        if self.bins.rows.sum() >= 2:
            kept, left_out = self._kept_rows()
            n_eff = float(kept.n_eff)
            variance_rows = float(kept.variance_rows)
            bias = kept.weight_bias()
            if left_out <= MAX_UNSUPPORTED and n_eff > 0 and not bias:  # else more rows are of no use
                rows = ceil(self.rows * max(min_n_eff / n_eff, MIN_VARIANCE_ROWS / variance_rows, 1.0))
            if bias and n_eff >= MIN_ROWS and variance_rows >= MIN_VARIANCE_ROWS:
                propensities = "doubtful" if bias < 0 else "wrong"
        if left_out > MAX_UNSUPPORTED and self.without_propensity:
            propensities = "missing"
        if self.uniform_weight > 0 and propensities not in ("missing", "wrong"):
            # a share u makes E[w^2] at most 1/u of theirs
            share = min_n_eff * self.uniform_square / self.uniform_weight**2
            uniform = share if share < max_uniform else None
        return RequiredData(rows, uniform, propensities)


class HitRateEstimator:
    """Estimates the hit rate of one policy from rows, as they come.

    Args:
        one_set: whether the policy shows one certain set for a row; else it draws one of several.
    """

    def __init__(self, *, one_set: bool) -> None:
        self.one_set = one_set
        self.by_set, self.linear = HitRateSums("set"), HitRateSums("linear")
        self.calibrator = ExpectationCalibrator()
        self.labels_shown = 0.0

    def add(self, rows: WeightedRows, p: Array) -> None:
        """Add rows, and the probabilities of their labels by the policy itself or a reward model."""
        hit = rows.hit
        pi = rows.inclusion
        self.labels_shown += float(pi.sum())
        expected = (p * pi).sum(axis=1), (p * rows.shown).sum(axis=1)
        calibrated = self.calibrator.calibrate(*expected, hit)
        given = {"has_propensity": rows.has_propensity, "predicted": calibrated[0]}
        # E[w q_logged] = q_policy: for one set by any q, else (a draw, linear weights) by a q that is a sum over labels
        q_policy, q_logged = calibrated if self.one_set else expected
        self.by_set.add(hit, rows.by_set, q_policy=q_policy, q_logged=q_logged, **given)
        self.linear.add(hit, rows.linear, q_policy=expected[0], q_logged=expected[1], **given)

    def estimates(self, level: float = 0.95) -> tuple[Estimate, ...]:
        """Return all estimates, with intervals of this level."""
        return (*self.by_set.estimates(level), *self.linear.estimates(level))

    @property
    def rows(self) -> int:
        return self.linear.rows

    @property
    def mean_size(self) -> float:
        """How many labels the policy would have shown, on average."""
        return self.labels_shown / self.rows if self.rows else nan
