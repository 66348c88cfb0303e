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
the others, the spread is known from those alone: it is as steady as (sum E[w^2])^2 / sum E[w^4] rows, with
E[w^4] = E[w^2]^3 of a weight that is either 0 or heavy.

Some rows cannot answer: their sets could not show what the policy would. A few others would need weights so
heavy that they drown the rest. Which ones is decided by E[w^2] alone, never by what was drawn, so that the
others stay unbiased. In such rows any outcome is possible, and the interval is made wider by their share; the value
takes q_B there (ips and snips: what the others gave).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, nan, sqrt
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.logs.batches import Batch
from superarm.logs.calibration import Calibration
from superarm.logs.weights import ImportanceWeights, PolicyWeights, Propensities

T = TypeVar("T", float, Array)

ESTIMATORS = ("ips", "snips", "dr", "pi", "pi-dr")
LEAST_ROWS = 100  # effective rows, below which no interval is to be trusted
LEAST_HITS = 20  # and effective hits
LEAST_STEADY = 40  # and rows that the spread is known from
RARE = 10  # hits or misses, too few for the spread to be known
SURE = 4.0  # standard errors that are no accident
SILENT = 1 / 3  # the share of rows that may be unable to answer
BINS = 64  # of rows, by the power of two of E[w^2]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimate of a policy's hit rate.

    Attributes:
        name: one of `ESTIMATORS`; or "nested", made of those of smaller and larger sets.
        value, low, high: the estimate and its interval; NaN where there is none.
        rows: rows it could use.
        effective: how many rows of equal weight would know as much.
        largest: the largest weight.
        overlap: of these, the share with a weight other than 0.
        mean_weight: its expectation is 1; else sets are missing, or probabilities are wrong.
        silent: the share of rows that cannot answer; the interval allows for any outcome in them.
        problem: why it cannot be trusted; empty if it can.
    """

    name: str
    value: float
    low: float
    high: float
    rows: int
    effective: float
    largest: float
    overlap: float
    mean_weight: float
    silent: float = 0.0
    problem: str = ""

    @property
    def rate(self) -> float:
        """The value as a hit rate, which is never below 0 or above 1."""
        return float(np.clip(self.value, 0.0, 1.0))  # NaN stays NaN

    @property
    def width(self) -> float:
        """Of the interval, as it is before it is cut to [0, 1]: what is cut is no sharper for it."""
        return 2.0 * max(self.value - self.low, self.high - self.value)


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """The sound estimate with the narrowest interval."""
    sound = [estimate for estimate in estimates if not estimate.problem]
    return min(sound, key=lambda estimate: estimate.width, default=None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an answer would take: so many rows like these (``None``: no number of them would do), or
    this share of uniform sets in as many rows (``None``: more than all of them)."""

    rows: int | None
    uniform: float | None


def interval(value: float, error: float, freedom: float, level: float = 0.95) -> tuple[float, float]:
    """Student's interval, cut to [0, 1]."""
    need("logs")
    from scipy.special import stdtrit

    reach = float(stdtrit(max(freedom, 1.0), 0.5 + level / 2)) * error
    return max(0.0, value - reach), min(1.0, value + reach)


class _Sum(NamedTuple, Generic[T]):
    """Sums over rows, of y = w f, u = w times its control, c = w q_S - q_B, and their products."""

    rows: T
    used: T
    hits: T
    w: T
    ww: T
    y: T
    yy: T
    u: T
    uu: T
    uy: T
    c: T
    cc: T
    cy: T
    cu: T
    mean: T  # E[w]
    square: T  # E[w^2]
    fourth: T  # E[w^4]
    residual: T  # (f - q_S)^2
    guess: T


def _effective(s: _Sum[T]) -> tuple[T, T]:
    """The effective sample size, and how many rows the spread is known from."""
    square = np.maximum(s.square, 1e-300)
    return s.mean**2 / square, square**2 / np.maximum(s.fourth, 1e-300)


CONTROLS = 2


def _controlled(s: _Sum[float]) -> tuple[float, float]:
    """The mean and the variance of w f, less what its controls explain."""
    n, plain = s.rows, s.y / s.rows
    z = np.array([s.u / n - 1.0, s.c / n])
    squares = np.array([[s.uu, s.cu], [s.cu, s.cc]]) / n - np.outer([s.u, s.c], [s.u, s.c]) / n**2
    shared = np.array([s.uy - s.u * plain, s.cy - s.c * plain]) / n
    b = np.linalg.pinv(squares, rcond=1e-9, hermitian=True) @ shared
    return float(plain - b @ z), float(s.yy / n - plain**2 - b @ shared)


class Sums:
    """Sums over rows of one kind of weight."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # "set" or "linear"
        self.largest = 0.0
        self.unknown = 0  # rows that do not say how probable their set was
        self.silent = np.zeros(2)  # rows that cannot answer, and the sum of the guesses at them
        self.bins = np.zeros((BINS, len(_Sum._fields)))  # by how heavy the weights of a row may be
        self.uniform = np.zeros(2)  # E[w] and E[w^2], had the sets been uniform

    def add(
        self,
        weights: ImportanceWeights,
        f: Array,
        q_policy: Array,
        q_logged: Array,
        guess: Array,
        control: Array,
        known: Array,
    ) -> None:
        """Rows with weights w and bits f.

        Args:
            q_policy, q_logged: what is expected of the policy's set and the logged one, such that E[w q_S] = q_B.
            guess: what to think of the policy's set where the row cannot answer.
            control: w times this has expectation 1.
            known: rows whose propensity is known.
        """
        answers = ~np.isnan(weights.w)
        self.unknown += int((~known).sum())
        self.silent += [(~answers).sum(), guess[~answers].sum()]
        flat = ~np.isnan(weights.uniform)
        self.uniform += [(1.0 / control)[flat].sum(), weights.uniform[flat].sum()]
        columns = (weights.w, weights.square, f, q_policy, q_logged, guess, control)
        w, square, f, q_policy, q_logged, guess, control = (column[answers] for column in columns)
        if not len(w):
            return
        y, u, c = w * f, w * control, w * q_logged - q_policy
        self.largest = max(self.largest, float(np.abs(w).max()))
        exact = ~np.isnan(square)
        heavy = np.ceil(np.log2(np.maximum(np.where(exact, square, 1.0), 1.0))).clip(0, BINS - 1)
        mean, square = np.where(exact, 1.0 / control, w), np.where(exact, square, w**2)
        fourth = np.where(exact, square**3 * control**2, w**4)
        products = (w, w * w, y, y * y, u, u * u, u * y, c, c * c, c * y, c * u)
        terms = (np.ones(len(w)), w != 0, f, *products, mean, square, fourth, (f - q_logged) ** 2, guess)
        np.add.at(self.bins, heavy.astype(np.int64), np.stack(terms, axis=1).astype(np.float64))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; `from_dict` goes on from there."""
        arrays = {
            "silent": self.silent.tolist(),
            "bins": self.bins.tolist(),
            "uniform": self.uniform.tolist(),
        }
        return {"kind": self.kind, "largest": self.largest, "unknown": self.unknown, **arrays}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sums:
        sums = cls(data["kind"])
        sums.largest, sums.unknown = data["largest"], data["unknown"]
        sums.silent, sums.bins, sums.uniform = (np.array(data[n]) for n in ("silent", "bins", "uniform"))
        return sums

    @property
    def rows(self) -> int:
        return round(float(self.bins[:, 0].sum() + self.silent[0]))

    @property
    def expected(self) -> float:
        """The mean of the guesses."""
        total: _Sum[float] = _Sum(*self.bins.sum(axis=0).tolist())
        return float(self.silent[1] + total.guess) / self.rows if self.rows else nan

    def _kept(self) -> tuple[_Sum[float], float, float]:
        """Sums over the rows to use, the share of the others, and the sum of the guesses at those."""
        up_to: _Sum[Array] = _Sum(*np.cumsum(self.bins, axis=0).T)  # each an array over bins
        n = self.rows
        share = 1.0 - up_to.rows / n
        left = up_to.residual[-1] / max(up_to.rows[-1], 1.0)
        width = 4.0 * np.sqrt(np.maximum(left * up_to.square, 0.0)) / n + share
        effective, steady = _effective(up_to)
        enough = (effective >= LEAST_ROWS) & (steady >= LEAST_STEADY)
        width += np.where(enough, 0.0, 10.0)  # better a wide interval than one that is not to be trusted
        width[(share > SILENT) & (up_to.rows < up_to.rows[-1])] = np.inf
        cut = int(np.argmin(width))
        kept: _Sum[float] = _Sum(*np.transpose(up_to)[cut].tolist())
        return kept, float(share[cut]), float(self.silent[1] + up_to.guess[-1] - up_to.guess[cut])

    def estimates(self) -> list[Estimate]:
        """All estimates that these weights give."""
        names = ("ips", "snips", "dr") if self.kind == "set" else ("pi", "pi-dr")
        if self.rows < 2 or self.bins[:, 0].sum() < 2:
            why = "the log never shows a set of this policy's"
            if self.unknown >= self.silent[0]:
                why = "the log does not say how probable its sets were"
            return [Estimate(name, nan, nan, nan, 0, 0.0, 0.0, 0.0, nan, 1.0, why) for name in names]
        s, silent, q_silent = self._kept()
        n = s.rows
        effective, steady = (min(n, number) for number in _effective(s))
        mean = s.u / n
        mean_error = sqrt(max(s.uu / n - mean**2, 0.0) / (n - 1)) if n > 1 else nan
        problem = self._problem(s, effective, steady, silent, mean, mean_error)

        def estimate(name: str, value: float, variance: float, guess: float, fitted: int = 0) -> Estimate:
            error = sqrt(max(variance, 0.0) / max(n - 1, 1))
            if effective > 0 and effective * min(value, 1 - value) < RARE:
                # of what has hardly been seen, the sample's own spread says little: two rows more,
                # a hit and a miss
                moderate = (effective * min(max(value, 0.0), 1.0) + 1) / (effective + 2)
                error = max(error, sqrt(moderate * (1 - moderate) / effective))
            if fitted and s.residual < RARE:  # answers that were not expected: as if there had been one more
                error = max(error, sqrt((s.residual + 1.0) * s.square / n) / n)
            low, high = interval(value, error, min(effective, steady) - 1 - fitted)
            overall = (1.0 - silent) * value + guess
            low, high = (1.0 - silent) * low, (1.0 - silent) * high + silent
            return Estimate(
                name=name,
                value=overall,
                low=low,
                high=high,
                rows=round(n),
                effective=effective,
                largest=self.largest,
                overlap=s.used / n,
                mean_weight=mean,
                silent=silent,
                problem=problem,
            )

        plain = s.y / n
        robust = estimate(names[-1], *_controlled(s), q_silent / self.rows, CONTROLS)
        simple = estimate(names[0], plain, s.yy / n - plain**2, silent * plain)
        if self.kind == "linear":
            return [simple, robust]
        ratio = s.y / s.w if s.w else nan
        # the sum of (w f - ratio w)^2; f is 0 or 1, so the sum of w w f is that of (w f)^2
        spread = s.yy - 2 * ratio * s.yy + ratio**2 * s.ww if s.w else nan
        return [simple, estimate("snips", ratio, n * spread / s.w**2 if s.w else nan, silent * ratio), robust]

    def _problem(
        self, s: _Sum[float], effective: float, steady: float, silent: float, mean: float, error: float
    ) -> str:
        # by the log's own hit rate: a rule that looked at the weighted hits would pick lucky samples
        hits, row_count = effective * s.hits / s.rows, f"{self.rows:,}"
        if s.used == 0:
            return "the log never shows a set of this policy's"
        if silent > SILENT:
            why = "do not say how probable their set was" if self.unknown else "could not show its sets"
            return f"{silent:.0%} of {row_count} rows {why}: {SILENT:.0%} may at most"
        if effective < LEAST_ROWS:
            size = f"an effective sample size of {effective:.0f}, from {s.used:,.0f} of {row_count} rows"
            return f"{size}: it takes {LEAST_ROWS}"
        if steady < LEAST_STEADY:
            few = f"a few of {row_count} rows weigh so much that they decide: the spread is that of {steady:.0f} rows"
            return f"{few}, and it takes {LEAST_STEADY}"
        if hits < LEAST_HITS:
            size = f"an effective sample size of {effective:.0f}, from {row_count} rows, with {hits:.0f} hits"
            return f"{size}: it takes {LEAST_HITS}"
        if mean < 1.0 - SURE * error - 1e-6:
            return f"weights average {mean:.3f}, not 1: the log lacks sets it would show, or its propensities are wrong"
        if mean > 1.0 + SURE * error + 1e-6:
            return f"weights average {mean:.3f}, not 1: the log's propensities are wrong"
        return ""

    def wanted(self, hit_rate: float) -> Wanted:
        """How many rows, or which share of uniform sets, an answer would take."""
        least_effective = max(LEAST_ROWS, LEAST_HITS / hit_rate) if hit_rate else np.inf
        rows = uniform = None
        if self.bins[:, 0].sum() >= 2:
            s, silent, _ = self._kept()
            effective, steady = _effective(s)
            if silent <= SILENT and effective > 0:
                rows = ceil(self.rows * max(least_effective / effective, LEAST_STEADY / steady, 1.0))
        mean, square = self.uniform
        if mean > 0:  # mixing in a share u of uniform sets makes E[w^2] at most 1/u of theirs
            share = least_effective * square / mean**2
            uniform = float(share) if share <= 1.0 else None
        return Wanted(rows, uniform)


class HitRateEstimator:
    """Estimates the hit rate of one policy from rows, as they come.

    Args:
        one_set: whether there is one set that the policy would show for a row; else it draws one of several.
    """

    def __init__(self, *, one_set: bool) -> None:
        self.one_set = one_set
        self.by_set, self.linear, self.calibration = Sums("set"), Sums("linear"), Calibration()
        self.rows, self.labels_shown = 0, 0.0

    def add(self, batch: Batch, logged: Propensities, weights: PolicyWeights, p: Array) -> None:
        """Rows, their weights, and the probabilities that the policy itself or a reward model gives their labels."""
        pi, known = weights.inclusion, ~np.isnan(logged.propensity)
        self.rows, self.labels_shown = self.rows + len(batch), self.labels_shown + float(pi.sum())
        expected = (p * pi).sum(axis=1), (p * batch.shown).sum(axis=1)
        calibrated = self.calibration.calibrate(*expected, batch.hit)
        guess = calibrated[0]
        # E[w q_S] = q_B: for one set by any q, for a draw or linear weights by a q that is a sum over labels
        q, q_logged = calibrated if self.one_set else expected
        self.by_set.add(weights.by_set, batch.hit, q, q_logged, guess, np.ones(len(batch)), known)
        control = logged.m / np.maximum(pi.sum(axis=1), 1e-300)
        self.linear.add(weights.linear, batch.hit, *expected, guess, control, known)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (*self.by_set.estimates(), *self.linear.estimates())

    @property
    def mean_size(self) -> float:
        """How many labels the policy would have shown, on average."""
        return self.labels_shown / self.rows if self.rows else nan
