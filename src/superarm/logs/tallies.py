"""Sums over the rows that judge: of one policy, of its labels and groups."""

from __future__ import annotations

import json
from math import nan
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.labels import Labels
from superarm.decisions.decision import Record
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, coverage_by, group_names
from superarm.logs.batches import Batch
from superarm.logs.calibration import Calibration
from superarm.logs.estimates import Estimate, Sums
from superarm.logs.policies import PolicyRunner
from superarm.logs.verdicts import Verdict, best_of
from superarm.logs.weights import PolicyWeights, Propensities


class Tally:
    """What has been added up about one policy.

    Args:
        one_set: whether there is one set that the policy would show for a row; else it draws one of several.
    """

    def __init__(self, *, one_set: bool) -> None:
        self.one_set = one_set
        self.by_set, self.by_label, self.calibration = Sums("set"), Sums("linear"), Calibration()
        self.rows, self.shown = 0, 0.0

    def add(self, batch: Batch, logged: Propensities, weights: PolicyWeights, p: Array) -> None:
        """Rows, their weights, and the probabilities that the policy itself or a reward model gives their labels."""
        pi, known = weights.inclusion, ~np.isnan(logged.propensity)
        self.rows, self.shown = self.rows + len(batch), self.shown + float(pi.sum())
        expected = (p * pi).sum(axis=1), (p * batch.shown).sum(axis=1)
        calibrated = self.calibration.calibrate(*expected, batch.hit)
        guess, whole = calibrated[0], np.ones(len(batch))
        # E[w q_S] = q_B: for one set by any q, for a draw or linear weights by a q that is a sum over labels
        q, q_logged = calibrated if self.one_set else expected
        self.by_set.add(weights.by_set, batch.hit, q, q_logged, guess, whole, known)
        control = logged.m / np.maximum(pi.sum(axis=1), 1e-300)
        self.by_label.add(weights.linear, batch.hit, *expected, guess, control, known)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (*self.by_set.estimates(), *self.by_label.estimates())

    def verdict(self, runner: PolicyRunner, hit_rate: float) -> Verdict:
        policy = runner.policy
        facts = (policy.name, runner.size, policy.gamma, policy.rule_words)
        mean_size = self.shown / self.rows if self.rows else nan
        wanted, expected = self.by_label.wanted(hit_rate), self.by_label.expected
        return Verdict(*facts, self.estimates, wanted, mean_size, expected, policy.promise)


class PartsTally:
    """What has been added up about one policy, label by label and group by group."""

    def __init__(self, labels: Labels, group: str | None, log: str, *, one_set: bool) -> None:
        self.labels, self.group, self.log, self.one_set = labels, group, log, one_set
        self.sums, self.named = np.zeros((labels.count, 3)), True
        self.tallies: dict[str, Tally] = {}

    def add(self, batch: Batch, logged: Propensities, weights: PolicyWeights, p: Array) -> None:
        self.named = self.named and all(record.label is not None for record in batch.records)
        if self.named:
            right = [self.labels.by_text(record.label) for record in batch.records]
            for shown, label in zip(weights.inclusion, right, strict=True):
                if label is not None:  # else no set could have it
                    self.sums[label] += 1.0, shown[label], shown.sum()
        if self.group is None:
            return
        groups = np.array(group_names(_column_value(record, self.group) for record in batch.records))
        for name in np.unique(groups).tolist():
            at = np.flatnonzero(groups == name)
            tally = self.tallies.setdefault(name, Tally(one_set=self.one_set))
            tally.add(batch.part(at), logged.part(at), weights.part(at), p[at])

    @property
    def by_label(self) -> tuple[GroupCoverage, ...]:
        return coverage_by(self.labels.all(), self.sums) if self.named else ()

    @property
    def by_group(self) -> tuple[GroupCoverage, ...]:
        if self.tallies and self.tallies.keys() <= {MISSING}:
            wanted = "a column of the log, or a name in its x or context"
            raise InvalidInput.must("group", self.log, wanted, self.group)
        parts = []
        for name, tally in sorted(self.tallies.items()):
            best = best_of(tally.estimates)
            rate = (nan, nan, nan) if best is None else (best.rate, best.low, best.high)
            parts.append(GroupCoverage(name, tally.rows, *rate, tally.shown / tally.rows))
        return tuple(parts)


def _column_value(record: Record, name: str) -> Any:
    """A column of a row of a log: one of its own, or one of those that x or the context holds by name."""
    context: Any = record.context  # of a CSV, text
    if isinstance(context, str) and context.lstrip().startswith("{"):
        context = json.loads(context)
    for held in (record.also, record.decision.x, context):
        if isinstance(held, dict) and held.get(name) is not None:
            return held[name]
    return None
