"""From weighted rows to an estimate with an interval, and a word on whether to believe it.

    ips         mean of w f
    snips       sum of w f / sum of w
    dr          mean of q_B + w (f - q_S)      q: what a reward model expects of B's and the logged set
    pi, pi-dr   the same as ips and dr, with the linear weights (see weights.py)

All are sums over rows, so a log of any length is read once and nothing is kept. The intervals are
Student's, with as many degrees of freedom as the weights leave effective rows: n E[w]^2 / E[w^2],
where E[w^2] is exact if the log says how its sets were drawn (a sample of heavy weights looks
harmless just when the heavy ones are missing), and else the sample's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from superarm.logs.weights import Weights

__all__ = ["ESTIMATORS", "Estimate", "Sums", "interval"]

ESTIMATORS = ("ips", "snips", "dr", "pi", "pi-dr")
LEAST_ROWS = 100  # effective rows, below which no interval is to be trusted
LEAST_HITS = 20  # and effective hits
RARE = 10  # hits or misses, too few for the spread to be known
SURE = 4.0  # standard errors that are no accident

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimate of a policy's hit rate.

    Attributes:
        name: one of `ESTIMATORS`.
        value, low, high: the estimate and its interval; NaN where there is none.
        rows: rows it could use.
        effective: how many rows of equal weight would know as much.
        largest: the largest weight.
        overlap: the share of rows with a weight other than 0.
        mean_weight: its expectation is 1; else sets are missing, or probabilities are wrong.
        problem: why not to believe it; empty if nothing speaks against it.
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
    problem: str = ""

    @property
    def width(self) -> float:
        return self.high - self.low


def interval(value: float, error: float, freedom: float, level: float = 0.95) -> tuple[float, float]:
    """Student's interval, cut to [0, 1]."""
    from scipy.stats import t

    reach = float(t.ppf(0.5 + level / 2, max(freedom, 1.0))) * error
    return max(0.0, value - reach), min(1.0, value + reach)


class Sums:
    """Sums over rows of one kind of weight."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # "set" or "linear"
        self.rows = self.missing = 0
        self.used = 0
        self.largest = 0.0
        self.hits = 0.0
        # w, w^2, wf, w^2 f, t, t^2, w's own control, its square, E[w], E[w^2]
        self.sums = np.zeros(10)

    def add(self, weights: Weights, f: Array, q_policy: Array, q_logged: Array, control: Array) -> None:
        """Rows with weights w, bits f; ``control`` times w has expectation 1."""
        known = ~np.isnan(weights.w)
        self.missing += int((~known).sum())
        columns = (weights.w, weights.square, f, q_policy, q_logged, control)
        w, square, f, q_policy, q_logged, control = (column[known] for column in columns)
        if not len(w):
            return
        t, one = q_policy + w * (f - q_logged), w * control
        self.rows += len(w)
        self.used += int((w != 0).sum())
        self.largest = max(self.largest, float(np.abs(w).max()))
        self.hits += float(f.sum())
        mean = np.where(np.isnan(square), w, 1.0 / control)
        square = np.where(np.isnan(square), w**2, square)
        terms = (w, w**2, w * f, w**2 * f, t, t**2, one, one**2, mean, square)
        self.sums += [float(term.sum()) for term in terms]

    def estimates(self) -> list[Estimate]:
        """All estimates that these weights give."""
        names = ("ips", "snips", "dr") if self.kind == "set" else ("pi", "pi-dr")
        n = self.rows
        if n < 2:
            why = "the log does not say how probable its sets were"
            return [Estimate(name, nan, nan, nan, n, 0.0, 0.0, 0.0, nan, why) for name in names]
        w, ww, wf, wwf, t, tt, one, ones, expected, square = self.sums.tolist()
        effective = min(float(n), expected**2 / square) if square > 0 else 0.0
        mean = one / n
        mean_error = sqrt(max(ones / n - mean**2, 0.0) / (n - 1))
        # by the log's own hit rate: a rule that looked at the weighted hits would pick lucky samples
        hits = effective * self.hits / n
        problem = self._problem(effective, hits, mean, mean_error)

        def made(name: str, value: float, variance: float) -> Estimate:
            error = sqrt(max(variance, 0.0) / (n - 1))
            if effective > 0 and effective * min(value, 1 - value) < RARE:
                # of what has hardly been seen, the sample's own spread says little: two rows more,
                # a hit and a miss
                near = (effective * min(max(value, 0.0), 1.0) + 1) / (effective + 2)
                error = max(error, sqrt(near * (1 - near) / effective))
            low, high = interval(value, error, effective - 1)
            return Estimate(name, value, low, high, n, effective, self.largest, self.used / n, mean, problem)

        plain = made(names[0], wf / n, wwf / n - (wf / n) ** 2)
        robust = made(names[-1], t / n, tt / n - (t / n) ** 2)
        if self.kind == "linear":
            return [plain, robust]
        ratio = wf / w if w else nan
        spread = wwf - 2 * ratio * wwf + ratio**2 * ww if w else nan
        return [plain, made("snips", ratio, n * spread / w**2 if w else nan), robust]

    def _problem(self, effective: float, hits: float, mean: float, error: float) -> str:
        if self.used == 0:
            return "the log never shows a set of this policy's"
        if effective < LEAST_ROWS:
            return f"{self.used:,} of {self.rows:,} rows speak of it, as much as {effective:.0f} equal ones"
        if hits < LEAST_HITS:
            return (
                f"{self.rows:,} rows speak of it as much as {effective:.0f} equal ones, with {hits:.0f} hits"
            )
        if self.missing:
            return f"{self.missing:,} rows say nothing about it"
        if mean < 1.0 - SURE * error - 1e-6:
            return (
                f"weights average {mean:.3f}, not 1: the log lacks sets it would show, or its odds are wrong"
            )
        if mean > 1.0 + SURE * error + 1e-6:
            return f"weights average {mean:.3f}, not 1: the log's odds are wrong"
        return ""
