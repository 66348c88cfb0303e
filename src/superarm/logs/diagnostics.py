"""Diagnostics of a log: do its propensities follow from its rules, and were its sets drawn by these?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import nan, sqrt

import numpy as np

from superarm._intervals import wilson_interval
from superarm._types import Array
from superarm.logs.batches import LogBatch
from superarm.logs.hit_rates import MIN_ROWS, WARNING_Z
from superarm.logs.weights import Propensities


@dataclass(slots=True)
class LogDiagnostics:
    """Counts over a log that show whether its sets were drawn as it says."""

    rows: int = 0
    unanswered: int = 0  # rows without an outcome, not among these
    hits: float = 0.0
    with_propensity: int = 0
    certain: int = 0  # rows whose set had probability 1 though others were possible
    excess: float = 0.0  # labels of the top sets that were shown, less those that the rules imply
    excess_squares: float = 0.0
    max_uniform: float = 1.0  # the share of uniform sets that the coverage of the log's rules allows
    unknown_rules: set[str] = field(default_factory=set)
    contradicting: int = 0  # rows whose propensity does not follow from their rule
    ordered: int = 0  # of these, rows with the probability of the ordered draw
    inverse: Array = field(default_factory=lambda: np.zeros(3))  # 1/(p C(n, m)): count, sum, squares
    # of rows that tell no rule, and p below 1
    inverse_alone: Array = field(default_factory=lambda: np.zeros(3))

    def add(self, batch: LogBatch, logged: Propensities) -> None:
        """Count rows that have an outcome."""
        self.rows += len(batch)
        self.hits += float(batch.hit.sum())
        for record, distribution in zip(batch.records, batch.distributions, strict=True):
            rule = None if record is None else record.decision.rule
            if rule is not None:
                if rule["name"] == "cover":
                    self.max_uniform = min(self.max_uniform, 1.0 - rule["coverage"])
                if distribution is None:
                    self.unknown_rules.add(rule["name"])
        sizes_vary = np.array([logged is not None and logged.sizes_vary for logged in batch.distributions])
        p, drawn_from_several = logged.propensity, sizes_vary | (logged.m < logged.n)
        self.with_propensity += int((~np.isnan(p)).sum())
        self.certain += int((drawn_from_several & (p > 1.0 - 1e-9)).sum())
        drawn = ~np.isnan(logged.by_rule) & drawn_from_several
        self.excess += float(logged.excess[drawn].sum())
        self.excess_squares += float((logged.excess[drawn] ** 2).sum())
        comparable = drawn & ~np.isnan(batch.propensity)
        with np.errstate(divide="ignore"):  # a set that the rule could not have shown
            wrong = comparable & (np.abs(np.log(batch.propensity / logged.by_rule)) > 0.01)
        self.contradicting += int(wrong.sum())
        for i in np.flatnonzero(wrong):
            decision = batch.records[i].decision
            decision.n_labels = batch.shown.shape[1]
            ordered = decision.ordered_propensity
            self.ordered += ordered is not None and abs(ordered / batch.propensity[i] - 1.0) < 0.01
        counted = ~np.isnan(p) & drawn_from_several & ~sizes_vary
        ratio = np.exp(-np.log(p[counted]) - logged.log_n_sets[counted])
        self.inverse += [len(ratio), ratio.sum(), (ratio**2).sum()]
        alone = np.isnan(logged.by_rule[counted]) & (p[counted] < 1.0)
        self.inverse_alone += [alone.sum(), ratio[alone].sum(), (ratio[alone] ** 2).sum()]

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong."""
        for name in sorted(self.unknown_rules):
            yield (
                f"The rule {name!r} that drew sets is not known: import the module that defines it; else "
                "only the logged propensities count."
            )
        if not self.hits:
            yield "No row hit, so nothing can be said about how often other sets would have."
        if not self.with_propensity:
            yield (
                "The log does not say how probable its sets were, so nothing can be said about other "
                "policies. If the sets were drawn uniformly at random, say so (uniform); else log a propensity "
                "(or the rule) with every decision from now on."
            )
        elif self.certain > 0.5 * self.rows:
            yield (
                f"{self.certain:,} of {self.rows:,} rows showed their set with certainty: a log without "
                "exploration can judge only policies that show the same sets."
            )
        if self.contradicting:
            hint = " They are probabilities of the ordered draw." if self.ordered else ""
            yield (
                f"{self.contradicting:,} rows have a propensity that does not follow from their rule."
                f"{hint} One of the two is wrong."
            )
        error = sqrt(self.excess_squares)
        if abs(self.excess) > WARNING_Z * error + 1e-6:
            yield (
                f"The sets do not look drawn as the log says: labels of the top set were shown "
                f"{abs(self.excess) / self.rows:.3f} {'more' if self.excess > 0 else 'less'} often a row "
                f"than the rule implies ({self.excess / error:+.1f} standard errors)."
            )
        mean, margin, _ = _mean_and_margin(self.inverse)
        if mean > 1.0 + margin:
            yield (
                f"The propensities are too small: they add up to {mean:.3g} times as many sets as there "
                "are. (Of a set drawn label by label, log the probability of the set, not of the order.)"
            )
        mean, margin, n_eff = _mean_and_margin(self.inverse_alone)
        if mean < 1.0 - margin and n_eff >= MIN_ROWS:
            yield (
                f"The propensities are too large, or some sets could not be shown: they add up to {mean:.3g} times "
                "as many sets as there are. If they are too large, all estimates are wrong."
            )

    @property
    def hit_rate(self) -> float:
        """The hit rate of what was shown."""
        return self.hits / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the hit rate."""
        return wilson_interval(self.hit_rate, self.rows)


def _mean_and_margin(sums: Array) -> tuple[float, float, float]:
    """Return the mean by (count, sum, sum of squares), how far off it may be by chance, and the effective count."""
    n, total, squares = sums
    if n < 2:
        return nan, nan, 0.0
    error = sqrt(max(squares / n - (total / n) ** 2, 0.0) / (n - 1))
    return total / n, WARNING_Z * error + 1e-3, total**2 / squares  # propensities may be rounded
