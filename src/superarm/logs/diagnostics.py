"""Whether the log is what it claims: propensities that follow from the rule, sets that were drawn by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.logs.batches import Batch
from superarm.logs.estimates import SURE, interval
from superarm.logs.weights import Propensities

ENOUGH = 100  # rows, to see whether labels were shown equally often


@dataclass(slots=True)
class LogDiagnostics:
    """Counts over a log that show whether its sets were drawn as it says."""

    rows: int = 0
    unanswered: int = 0
    hits: float = 0.0
    known: int = 0
    certain: int = 0  # rows whose set had probability 1 though others were possible
    surprise: float = 0.0
    variance: float = 0.0
    differ: int = 0
    as_ordered: int = 0
    inverse: Array = field(default_factory=lambda: np.zeros(3))  # 1/(p C(n, m)): count, sum, squares
    shown: Any = 0  # how often each label was shown,
    even: Any = 0  # how often it would have been by uniform sets, and the variance of that
    spread: Any = 0

    def add(self, batch: Batch, logged: Propensities) -> None:
        chance = np.where(batch.eligible, (logged.m / logged.n)[:, None], 0.0)
        self.shown = self.shown + batch.shown.sum(axis=0)
        self.even, self.spread = (
            self.even + chance.sum(axis=0),
            self.spread + (chance * (1 - chance)).sum(axis=0),
        )
        self.rows += len(batch)
        self.hits += float(batch.hit.sum())
        vary = np.array([draw is not None and draw.sizes_vary for draw in batch.draws])
        p, free = logged.propensity, vary | (logged.m < logged.n)
        self.known += int((~np.isnan(p)).sum())
        self.certain += int((free & (p > 1.0 - 1e-9)).sum())
        drawn = ~np.isnan(logged.by_rule) & free
        self.surprise += float(logged.excess[drawn].sum())
        self.variance += float(logged.variance[drawn].sum())
        both = drawn & ~np.isnan(batch.propensity)
        with np.errstate(divide="ignore"):  # a set that the rule could not have shown
            wrong = both & (np.abs(np.log(batch.propensity / logged.by_rule)) > 0.01)
        self.differ += int(wrong.sum())
        for i in np.flatnonzero(wrong):
            ordered = batch.records[i].decision.ordered_propensity
            self.as_ordered += ordered is not None and abs(ordered / batch.propensity[i] - 1.0) < 0.01
        counted = ~np.isnan(p) & free & ~vary
        ratio = np.exp(-np.log(p[counted]) - logged.log_sets[counted])
        self.inverse += [len(ratio), ratio.sum(), (ratio**2).sum()]

    def warnings(self) -> Iterator[str]:
        if not self.known:
            yield (
                "The log does not say how probable its sets were, so nothing can be said about other "
                "policies. Log a propensity (or the rule) with every decision from now on."
                f"{self._uniform_hint()}"
            )
        elif self.certain > 0.5 * self.rows:
            yield (
                f"{self.certain:,} of {self.rows:,} rows showed their set with certainty: a log without "
                "exploration can judge only policies that show the same sets."
            )
        if self.differ:
            hint = " They are probabilities of the ordered draw." if self.as_ordered else ""
            yield (
                f"{self.differ:,} rows have a propensity that does not follow from their rule."
                f"{hint} One of the two is wrong."
            )
        if self.variance > 0 and abs(self.surprise) > SURE * sqrt(self.variance):
            yield (
                f"The sets do not look drawn as the log says: labels of the top set were shown "
                f"{abs(self.surprise) / self.rows:.3f} {'more' if self.surprise > 0 else 'less'} often a row "
                f"than the rule implies ({self.surprise / sqrt(self.variance):+.1f} standard errors)."
            )
        n, total, squares = self.inverse
        if n > 1:
            mean = total / n
            error = sqrt(max(squares / n - mean**2, 0.0) / (n - 1))
            if mean > 1.0 + SURE * error + 1e-3:  # propensities may be rounded
                yield (
                    f"The propensities are too small: they add up to {mean:.3g} times as many sets as there "
                    "are. (Of a set drawn label by label, log the probability of the set, not of the order.)"
                )

    def _uniform_hint(self) -> str:
        """Whether every label was shown as often as by uniform sets; then they may have been."""
        varies = self.spread > 0
        if self.rows < ENOUGH or not varies.any():
            return ""
        far = (self.shown - self.even)[varies] / np.sqrt(self.spread[varies])
        if np.abs(far).max() > SURE:
            return ""
        return (
            " Its labels were shown equally often, though: if the sets were drawn uniformly at random, "
            "say so (--uniform, or Log(..., uniform=True))."
        )

    @property
    def hit_rate(self) -> float:
        """Of what was shown."""
        return self.hits / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the hit rate."""
        rate = self.hit_rate
        return interval(rate, sqrt(rate * (1 - rate) / self.rows), self.rows - 1)
