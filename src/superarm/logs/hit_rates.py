"""From weighted rows to an estimate with an interval, and whether it can be trusted.

    ips         mean of w f
    snips       sum of w f / sum of w
    dr          mean of w f - b (w - 1) - c (w q_S - q_B)      q: what is expected of B's and the logged set
    pi, pi-dr   the same as ips and dr, with the linear weights (see weights.py)

(w - 1) and (w q_S - q_B) are 0 on average, so b and c may be anything: they are those of least variance in the sample
(control variates; Vlassis et al. 2021), by which dr is never worse than the others for long. b = 0 and c = 1 is the
doubly robust estimate as it is usually written.

All are sums over rows, so a log of any length is read once and nothing is kept. The intervals are
Student's, with as many degrees of freedom as the weights leave effective rows: n E[w]^2 / E[w^2],
where E[w^2] is exact if the log says how its sets were drawn (a sample of heavy weights looks
harmless just when the heavy ones are missing), and else the sample's. If a few rows are much heavier than
the others, the spread is known from those alone: it is as well known as from (sum E[w^2])^2 / sum E[w^4] rows, with
E[w^4] = E[w^2]^3 of a weight that is either 0 or heavy.

Some rows cannot answer: their sets could not show what the policy would. A few others would need weights so
heavy that they drown the rest. Which ones is decided by E[w^2] alone, never by what was drawn, so that the
others stay unbiased. In such rows any outcome is possible, and the interval is made wider by their share; the value
takes q_B there (ips and snips: what the others gave).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, nan, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from superarm._intervals import student_margin
from superarm._types import Array
from superarm.logs.weights import ImportanceWeights

ESTIMATORS = ("ips", "snips", "dr", "pi", "pi-dr")
MIN_ROWS = 100  # effective rows, below which no interval is to be trusted
MIN_HITS = 20  # and effective hits
MIN_VARIANCE_ROWS = 40  # and rows that the spread is known from
MIN_COUNT = 10  # hits or misses, too few for the spread to be known
WARNING_Z = 4.0  # standard errors that are no accident
MAX_UNSUPPORTED = 1 / 3  # the share of rows that may be unable to answer
BINS = 64  # of rows, by the power of two of E[w^2]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimate of a policy's hit rate.

    Attributes:
        name: one of `ESTIMATORS`; or "nested", made of those of smaller and larger sets.
        value, low, high: the estimate and its interval, within 0 and 1; NaN where there is a problem.
        rows: rows it could use.
        n_eff: how many rows of equal weight would know as much.
        max_weight: the largest weight.
        overlap: of these, the share with a weight other than 0.
        mean_weight: its expectation is 1; else sets are missing, or probabilities are wrong.
        unsupported: the share of rows that cannot answer; the interval allows for any outcome in them.
        problem: why it cannot be trusted; empty if it can.
        width: the width of the interval as it would be uncut: cutting it to [0, 1] does not make it sharper.
    """

    name: str
    value: float
    low: float
    high: float
    rows: int
    n_eff: float
    max_weight: float
    overlap: float
    mean_weight: float
    unsupported: float = 0.0
    problem: str = ""
    width: float = field(init=False)

    def __post_init__(self) -> None:
        value, low, high = (nan,) * 3 if self.problem else (self.value, self.low, self.high)
        object.__setattr__(self, "width", 2.0 * max(value - low, high - value))
        for name, number in {"value": value, "low": low, "high": high}.items():
            object.__setattr__(self, name, float(np.clip(number, 0.0, 1.0)))  # NaN stays NaN


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the sound estimate with the narrowest interval before cutting to [0, 1]; ``None`` if there is none."""
    sound = [estimate for estimate in estimates if not estimate.problem]
    return min(sound, key=lambda estimate: estimate.width, default=None)


@dataclass(frozen=True, slots=True)
class RequiredData:
    """What it takes to estimate a policy's hit rate.

    Attributes:
        rows: so many rows like these; ``None`` if no number of them is enough.
        uniform: or this share of uniform sets in as many rows; ``None`` if there is no such share.
        propensities: ``"missing"`` where too many rows have none; ``"wrong"`` or ``"doubtful"`` where weights do not
            average 1: ``"doubtful"`` if sets that were never possible would explain it, too; else empty.
        fewer_labels: whether an answer for fewer labels of the same ranking would tell the least hit rate.
    """

    rows: int | None
    uniform: float | None
    propensities: Literal["", "missing", "doubtful", "wrong"] = ""
    fewer_labels: bool = False


# the Gram matrix of rows is the sum of v v' over their vectors v = (1, y, u, c):
# y = w f, u = w times its control (1 in expectation), c = w q_S - q_B (0 in expectation)
ONE, Y, U, C = range(4)
CONTROLS, EXPECTED_CONTROLS = [U, C], np.array([1.0, 0.0])


class RowSums(NamedTuple):
    """Sums over rows, for each bin or for several bins together."""

    gram: Array
    used: Array  # rows with a weight other than 0
    hits: Array
    weight: Array  # E[w]
    weight_square: Array  # E[w^2]
    weight_fourth: Array  # E[w^4]
    residual: Array  # (f - q_S)^2
    predicted: Array

    @property
    def rows(self) -> Array:
        return np.asarray(self.gram[..., ONE, ONE])

    @property
    def n_eff(self) -> Array:
        """The effective sample size."""
        return np.asarray(self.weight**2 / np.maximum(self.weight_square, 1e-300))

    @property
    def variance_rows(self) -> Array:
        """How many rows the spread is known from."""
        return np.asarray(self.weight_square**2 / np.maximum(self.weight_fourth, 1e-300))

    @property
    def means(self) -> Array:
        """The means of (1, y, u, c)."""
        return np.asarray(self.gram[ONE] / self.gram[ONE, ONE])

    @property
    def covariance(self) -> Array:
        """The covariance matrix of (1, y, u, c)."""
        return np.asarray(self.gram / self.gram[ONE, ONE] - np.outer(self.means, self.means))

    def mean_weight(self) -> tuple[float, float]:
        """Return the mean of w times its control, which is 1 in expectation, and its standard error."""
        n = float(self.rows)
        error = sqrt(max(self.covariance[U, U], 0.0) / (n - 1)) if n > 1 else nan
        return float(self.means[U]), error

    def weight_bias(self) -> int:
        """Return -1 or 1 where weights average less or more than 1, and it is no accident; else 0."""
        mean, error = self.mean_weight()
        margin = WARNING_Z * error + 1e-6
        return int(mean > 1.0 + margin) - int(mean < 1.0 - margin)

    def plain(self) -> tuple[float, float]:
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
        means, covariance = self.means, self.covariance
        shared = covariance[CONTROLS, Y]
        b = np.linalg.pinv(covariance[np.ix_(CONTROLS, CONTROLS)], rcond=1e-9, hermitian=True) @ shared
        value = means[Y] - b @ (means[CONTROLS] - EXPECTED_CONTROLS)
        return float(value), float(covariance[Y, Y] - b @ shared)


class HitRateSums:
    """Sums over rows of one kind of weight."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # "set" or "linear"
        self.max_weight = 0.0
        self.unknown = 0  # rows that do not say how probable their set was
        self.unsupported = np.zeros(2)  # rows that cannot answer, and the sum of the predictions for them
        # by how heavy a row's weight may be
        self.bins = RowSums(np.zeros((BINS, 4, 4)), *np.zeros((7, BINS)))
        self.uniform = np.zeros(2)  # E[w] and E[w^2], had the sets been uniform

    def add(
        self,
        weights: ImportanceWeights,
        f: Array,
        q_policy: Array,
        q_logged: Array,
        predicted: Array,
        control: Array,
        known: Array,
    ) -> None:
        """Add rows with weights w and bits f.

        Args:
            q_policy, q_logged: what is expected of the policy's set and the logged one, such that E[w q_S] = q_B.
            predicted: the expected hit of the policy's set, used where the row cannot answer.
            control: w times this has expectation 1.
            known: rows whose propensity is known.
        """
        answers = ~np.isnan(weights.w)
        self.unknown += int((~known).sum())
        self.unsupported += [(~answers).sum(), predicted[~answers].sum()]
        flat = ~np.isnan(weights.uniform)
        self.uniform += [(1.0 / control)[flat].sum(), weights.uniform[flat].sum()]
        columns = (weights.w, weights.square, f, q_policy, q_logged, predicted, control)
        w, square, f, q_policy, q_logged, predicted, control = (column[answers] for column in columns)
        if not len(w):
            return
        y, u, c = w * f, w * control, w * q_logged - q_policy
        self.max_weight = max(self.max_weight, float(np.abs(w).max()))
        exact = ~np.isnan(square)
        heavy = np.ceil(np.log2(np.maximum(np.where(exact, square, 1.0), 1.0))).clip(0, BINS - 1)
        v = np.stack([np.ones(len(w)), y, u, c], axis=1)
        rows = RowSums(
            gram=v[:, :, None] * v[:, None, :],
            used=w != 0,
            hits=f,
            weight=np.where(exact, 1.0 / control, w),
            weight_square=np.where(exact, square, w**2),
            weight_fourth=np.where(exact, square**3 * control**2, w**4),
            residual=(f - q_logged) ** 2,
            predicted=predicted,
        )
        for sums, terms in zip(self.bins, rows, strict=True):
            np.add.at(sums, heavy.astype(np.int64), terms)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as JSON-ready values, for `from_dict`."""
        arrays = {
            "unsupported": self.unsupported.tolist(),
            "bins": [sums.tolist() for sums in self.bins],
            "uniform": self.uniform.tolist(),
        }
        return {"kind": self.kind, "max_weight": self.max_weight, "unknown": self.unknown, **arrays}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HitRateSums:
        sums = cls(data["kind"])
        sums.max_weight, sums.unknown = data["max_weight"], data["unknown"]
        sums.unsupported, sums.uniform = np.array(data["unsupported"]), np.array(data["uniform"])
        sums.bins = RowSums(*map(np.array, data["bins"]))
        return sums

    @property
    def rows(self) -> int:
        return round(float(self.bins.rows.sum() + self.unsupported[0]))

    @property
    def expected(self) -> float:
        """The mean of the predictions."""
        return float(self.unsupported[1] + self.bins.predicted.sum()) / self.rows if self.rows else nan

    def _trimmed(self) -> tuple[RowSums, float, float]:
        """Return the sums over the rows to use, the share of the others, and the sum of the predictions for those."""
        up_to = RowSums(*(np.cumsum(sums, axis=0) for sums in self.bins))
        n, rows = self.rows, up_to.rows
        share = 1.0 - rows / n
        left = up_to.residual[-1] / max(rows[-1], 1.0)
        width = 4.0 * np.sqrt(np.maximum(left * up_to.weight_square, 0.0)) / n + share
        enough = (up_to.n_eff >= MIN_ROWS) & (up_to.variance_rows >= MIN_VARIANCE_ROWS)
        width += np.where(enough, 0.0, 10.0)  # better a wide interval than one that is not to be trusted
        width[(share > MAX_UNSUPPORTED) & (rows < rows[-1])] = np.inf
        cut = int(np.argmin(width))
        kept = RowSums(*(sums[cut] for sums in up_to))
        return kept, float(share[cut]), float(self.unsupported[1] + up_to.predicted[-1] - kept.predicted)

    def estimates(self, level: float = 0.95) -> list[Estimate]:
        """Return all estimates that these weights give, with intervals of this level."""
        names = ("ips", "snips", "dr") if self.kind == "set" else ("pi", "pi-dr")
        if self.rows < 2 or self.bins.rows.sum() < 2:
            why = "the log never shows a set of this policy's"
            if self.unknown and self.unknown >= self.unsupported[0]:
                why = "the log does not say how probable its sets were"
            elif self.rows < 2:
                why = "too few rows"
            return [Estimate(name, nan, nan, nan, 0, 0.0, 0.0, 0.0, nan, 1.0, why) for name in names]
        s, unsupported, q_unsupported = self._trimmed()
        n, n_eff = float(s.rows), float(min(s.rows, s.n_eff))
        freedom = min(n_eff, float(s.variance_rows)) - 1
        problem = self._problem(s, unsupported)

        def estimate(name: str, value: float, variance: float, predicted: float, fitted: int = 0) -> Estimate:
            error = sqrt(max(variance, 0.0) / max(n - 1, 1))
            if n_eff > 0 and n_eff * min(value, 1 - value) < MIN_COUNT:
                # of what has hardly been seen, the sample's own spread says little: two rows more,
                # a hit and a miss
                moderate = (n_eff * min(max(value, 0.0), 1.0) + 1) / (n_eff + 2)
                error = max(error, sqrt(moderate * (1 - moderate) / n_eff))
            if fitted and s.residual < MIN_COUNT:
                # answers that were not expected: as if there had been one more
                error = max(error, sqrt((s.residual + 1.0) * s.weight_square / n) / n)
            margin = student_margin(error, freedom - fitted, level)
            return Estimate(
                name=name,
                value=(1.0 - unsupported) * value + predicted,
                low=(1.0 - unsupported) * max(0.0, value - margin),
                high=(1.0 - unsupported) * min(1.0, value + margin) + unsupported,
                rows=round(n),
                n_eff=n_eff,
                max_weight=self.max_weight,
                overlap=float(s.used) / n,
                mean_weight=s.mean_weight()[0],
                unsupported=unsupported,
                problem=problem,
            )

        simple, ratio = s.plain(), s.self_normalized()
        estimates = [estimate(names[0], *simple, unsupported * simple[0])]
        if self.kind == "set":
            estimates.append(estimate("snips", *ratio, unsupported * ratio[0]))
        robust = estimate(names[-1], *s.controlled(), q_unsupported / self.rows, len(CONTROLS))
        return [*estimates, robust]

    def _problem(self, s: RowSums, unsupported: float) -> str:
        """Return why the sums over the rows to use give no sound estimate; empty if they do."""
        n_eff, variance_rows = (float(min(s.rows, number)) for number in (s.n_eff, s.variance_rows))
        mean, bias = s.mean_weight()[0], s.weight_bias()
        # by the log's own hit rate: a rule that looked at the weighted hits would pick lucky samples
        hits, row_count = n_eff * float(s.hits / s.rows), f"{self.rows:,}"
        if s.used == 0:
            return "the log never shows a set of this policy's"
        if unsupported > MAX_UNSUPPORTED:
            why = "do not say how probable their set was" if self.unknown else "could not show its sets"
            return f"{unsupported:.0%} of {row_count} rows {why}; at most {MAX_UNSUPPORTED:.0%} may"
        if n_eff < MIN_ROWS:
            size = f"an effective sample size of {n_eff:.0f}, from {s.used:,.0f} of {row_count} rows"
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
        rows = uniform = None
        propensities: Literal["", "missing", "doubtful", "wrong"] = ""
        if not hit_rate:  # rows without a hit do not tell
            return RequiredData(rows, uniform)
        min_n_eff = max(MIN_ROWS, MIN_HITS / hit_rate)
        unsupported = 1.0
        if self.bins.rows.sum() >= 2:
            s, unsupported, _ = self._trimmed()
            n_eff, variance_rows, bias = float(s.n_eff), float(s.variance_rows), s.weight_bias()
            if unsupported <= MAX_UNSUPPORTED and n_eff > 0 and not bias:  # else more rows are of no use
                rows = ceil(self.rows * max(min_n_eff / n_eff, MIN_VARIANCE_ROWS / variance_rows, 1.0))
            if bias and n_eff >= MIN_ROWS and variance_rows >= MIN_VARIANCE_ROWS:
                propensities = "doubtful" if bias < 0 else "wrong"
        if unsupported > MAX_UNSUPPORTED and self.unknown:
            propensities = "missing"
        mean, square = self.uniform
        if mean > 0 and propensities not in ("missing", "wrong"):
            share = float(min_n_eff * square / mean**2)  # a share u makes E[w^2] at most 1/u of theirs
            uniform = share if share < max_uniform else None
        return RequiredData(rows, uniform, propensities)
