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
from superarm.logs.weights import eligible_index


@dataclass(slots=True)
class NumberSums:
    """Sums of numbers whose mean should be known: do they deviate from it by more than chance?"""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, numbers: Array) -> None:
        self.count += len(numbers)
        self.total += float(numbers.sum())
        self.squares += float((numbers**2).sum())

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count > 1 else nan

    @property
    def margin(self) -> float:
        """How far the mean may be off by chance, or by rounding."""
        if self.count < 2:
            return nan
        return WARNING_Z * sqrt(max(self.squares / self.count - self.mean**2, 0.0) / (self.count - 1)) + 1e-3

    @property
    def n_eff(self) -> float:
        return self.total**2 / self.squares if self.count > 1 else 0.0


@dataclass(slots=True)
class LogDiagnostics:
    """Counts over a log that show whether its sets were drawn as it says."""

    rows: int = 0
    unanswered: int = 0  # rows without an outcome, not among these
    hits: float = 0.0
    with_propensity: int = 0
    certain: int = 0  # rows whose set had probability 1 though others were possible
    max_uniform: float = 1.0  # the share of uniform sets that the coverage of the log's rules allows
    unknown_rules: set[str] = field(default_factory=set)
    chosen: int = 0  # rows that could have shown another set
    sizes: set[int] = field(default_factory=set)  # of sets that no rule drew with a size of its own
    contradicting: int = 0  # rows whose propensity does not follow from their rule
    contradicting_ordered: int = 0  # of these, rows with the probability of the ordered draw
    # labels of the top sets that were shown, less those that the rules imply
    excess: NumberSums = field(default_factory=NumberSums)
    # 1/(p C(n, m)): 1 on average if all sets were possible, else less
    inverse: NumberSums = field(default_factory=NumberSums)
    # of rows that name no rule, with p < 1
    inverse_without_rule: NumberSums = field(default_factory=NumberSums)

    def add(self, batch: LogBatch) -> None:
        """Count rows that have an outcome."""
        self.rows += len(batch)
        self.hits += float(batch.hit.sum())
        self._add_rules(batch)
        distributions = batch.distributions
        p = batch.propensity
        by_rule = batch.rule_propensity
        sizes_vary = np.array([one is not None and one.sizes_vary for one in distributions])
        drawn_from_several = sizes_vary | (batch.n_shown < batch.n_eligible)
        self.with_propensity += int((~np.isnan(p)).sum())
        self.chosen += int(drawn_from_several.sum())
        self.certain += int((drawn_from_several & (p > 1.0 - 1e-9)).sum())
        drawn_by_rule = ~np.isnan(by_rule) & drawn_from_several
        self.excess.add(excess_of_top_labels(batch)[drawn_by_rule])
        self._add_contradictions(batch, drawn_by_rule)
        counted = ~np.isnan(p) & drawn_from_several & ~sizes_vary
        self.sizes.update(batch.n_shown[counted].tolist())
        ratio = np.exp(-np.log(p[counted]) - batch.log_n_sets[counted])
        self.inverse.add(ratio)
        self.inverse_without_rule.add(ratio[np.isnan(by_rule[counted]) & (p[counted] < 1.0)])

    def _add_rules(self, batch: LogBatch) -> None:
        for record, distribution in zip(batch.records, batch.distributions, strict=True):
            if (rule := record.decision.rule) is None:
                continue
            if rule["name"] == "cover":
                self.max_uniform = min(self.max_uniform, 1.0 - rule["coverage"])
            if distribution is None:
                self.unknown_rules.add(rule["name"])

    def _add_contradictions(self, batch: LogBatch, drawn_by_rule: Array) -> None:
        """Count rows whose logged propensity is not that of the rule."""
        p = batch.logged_propensity
        with np.errstate(divide="ignore"):  # a set that the rule could not have shown
            wrong = drawn_by_rule & ~np.isnan(p) & (np.abs(np.log(p / batch.rule_propensity)) > 0.01)
        self.contradicting += int(wrong.sum())
        for i in np.flatnonzero(wrong):
            decision = batch.records[i].decision
            decision.n_labels = batch.shown.shape[1]
            ordered = decision.ordered_propensity
            self.contradicting_ordered += ordered is not None and abs(ordered / p[i] - 1.0) < 0.01

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each thing that is wrong."""
        for name in sorted(self.unknown_rules):
            yield (
                f"The rule {name!r} that drew sets is not known: import the module that defines it (--log-rule "
                "file.py:Class); else only the logged propensities count."
            )
        if not self.hits:
            yield "No row hit, so nothing can be said about how often other sets would have."
        if not self.chosen:
            yield (
                "Every row showed all the labels that it could, as far as the log tells: name those that it never "
                "shows (labels)."
            )
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
            hint = " They are probabilities of the ordered draw." if self.contradicting_ordered else ""
            yield (
                f"{self.contradicting:,} rows have a propensity that does not follow from their rule."
                f"{hint} One of the two is wrong."
            )
        excess = self.excess.total
        error = sqrt(self.excess.squares)
        if abs(excess) > WARNING_Z * error + 1e-6:
            yield (
                f"The sets do not look drawn as the log says: labels of the top set were shown "
                f"{abs(excess) / self.rows:.3f} {'more' if excess > 0 else 'less'} often a row "
                f"than the rule implies ({excess / error:+.1f} standard errors)."
            )
        if self.inverse.mean > 1.0 + self.inverse.margin:
            hint = "Of a set drawn label by label, log the probability of the set, not of the order."
            if len(self.sizes) > 1:
                hint += " Of sets of several sizes, log how probable each was among those of its size."
            yield (
                f"The propensities are too small: they add up to {self.inverse.mean:.3g} times as many sets as there "
                f"are. ({hint})"
            )
        alone = self.inverse_without_rule
        if alone.mean < 1.0 - alone.margin and alone.n_eff >= MIN_ROWS:
            yield (
                f"The propensities are too large, or some sets could not be shown: they add up to {alone.mean:.3g} "
                "times as many sets as there are. If they are too large, all estimates are wrong."
            )

    @property
    def hit_rate(self) -> float:
        """The hit rate of what was shown."""
        return self.hits / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the hit rate."""
        return wilson_interval(self.hit_rate, self.rows)


def excess_of_top_labels(batch: LogBatch) -> Array:
    """Return how many labels of the top set each row shows, less what its rule implies; NaN if it names no rule."""
    excess = np.full(len(batch), np.nan)
    for i, drawn_from in enumerate(batch.distributions):
        if drawn_from is not None:
            eligible = eligible_index(drawn_from)
            # which of the tied labels are in the top set may depend on the draw; how many of them are does not
            in_top = drawn_from.mean_over_ties(batch.top[i][eligible].astype(np.float64))
            excess[i] = in_top @ (batch.shown[i][eligible] - drawn_from.inclusion())
    return excess
