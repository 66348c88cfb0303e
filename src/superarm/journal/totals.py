"""Totals: what the events add up to beside the model. A snapshot keeps them with it, so they survive a restart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import zip_longest
from math import exp, isnan, nan, sqrt
from typing import ClassVar

import numpy as np
from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import astuple

from superarm._types import JsonObject
from superarm.journal.changes import OperatorSettings
from superarm.journal.events import Event
from superarm.journal.records import DecisionRecord
from superarm.logs.hit_rates import HitRateSums
from superarm.logs.weights import ImportanceWeights

MAX_REFUSALS = 1_000  # refusals that are remembered
# seconds
AGE_BUCKETS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0)
MAX_SLOTS = 240  # points of the curves
MAX_GROUPS, OTHERS = 200, "(others)"  # groups beyond these are counted together
RECENT, LONG_RUN = 300, 20_000  # answers over which the hit rate is smoothed, for `falling`
ESTIMATE_BATCH = 256  # answers that are added to an estimate at once


class LabelCounts(Struct, array_like=True):
    """The sets that showed a label: how many, how many of them had an outcome, how many a hit."""

    shown: int = 0
    answered: int = 0
    hits: int = 0


class CoverageCounts(Struct, array_like=True):
    """Outcomes that count for the promised coverage: how many, how many hits, how many labels were shown."""

    outcomes: int = 0
    hits: int = 0
    labels_shown: int = 0


class CurveSlot(Struct, array_like=True):
    """Counts in one stretch of time of the dashboard's curves."""

    decisions: int = 0
    explored: int = 0
    outcomes: int = 0
    hits: int = 0

    def __add__(self, other: CurveSlot) -> CurveSlot:
        return CurveSlot(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Refusal(Struct, array_like=True):
    """Why an event had no effect, and the field of the request that is at fault, where it is one."""

    reason: str
    field: str | None = None


class Stats(Struct):
    """Running counts.

    The curves have at most 240 slots, first of a quarter of a second each; when they run out, the
    width doubles and neighbours merge.
    """

    COUNTS: ClassVar = ("decisions", "explored", "outcomes", "hits", "timeouts", "late", "learnt", "refused")

    decisions: int = 0
    explored: int = 0
    outcomes: int = 0
    hits: int = 0
    timeouts: int = 0
    late: int = 0
    learnt: int = 0
    refused: int = 0
    min_propensity: float | None = None  # the least propensity of all sets so far
    recent_rate: float = 0.0  # the hit rate of the last outcomes
    long_run_rate: float = 0.0  # ... of many more
    age_sum: float = 0.0  # of outcomes, in seconds
    ages: list[int] = field(default_factory=lambda: [0] * (len(AGE_BUCKETS) + 1))
    by_label: dict[str, LabelCounts] = {}
    set_size_counts: list[int] = []  # sets of 0, 1, 2 … labels
    coverage_by_label: dict[str, CoverageCounts] = {}  # for each right label that was named
    coverage_by_group: dict[str, CoverageCounts] = {}
    unnamed: int = 0  # outcomes that count for the promised coverage, and name no label
    start: float = 0.0  # of the curves: seconds since 1970
    width: float = 0.25  # of a slot: seconds
    slots: list[CurveSlot] = []

    @property
    def pending(self) -> int:
        return self.decisions - self.outcomes - self.timeouts

    def count_decision(
        self, time: float, labels: Sequence[str], top: Sequence[str], propensity: float | None
    ) -> None:
        self.decisions += 1
        slot = self._slot(time)
        slot.decisions += 1
        if labels != top and set(labels) != set(top):
            self.explored += 1
            slot.explored += 1
        while len(self.set_size_counts) <= len(labels):
            self.set_size_counts.append(0)
        self.set_size_counts[len(labels)] += 1
        for label in labels:
            self.by_label.setdefault(label, LabelCounts()).shown += 1
        if propensity is not None and (self.min_propensity is None or propensity < self.min_propensity):
            self.min_propensity = propensity

    def count_outcome(self, event: Event, record: DecisionRecord) -> None:
        """Count the outcome of a decision, in time or late."""
        decision, hit = record.decision, event.body.hit
        if record.earlier_timeout is None:
            self.outcomes += 1
        else:
            self.late += 1
        age = max(0.0, event.time - decision.time)
        self.age_sum += age
        self.ages[bisect_left(AGE_BUCKETS, age)] += 1
        slot = self._slot(event.time)
        slot.outcomes += 1
        self.hits += hit
        slot.hits += hit
        for label in decision.body.labels:
            counts = self.by_label[label]
            counts.answered += 1
            counts.hits += hit
        count = self.outcomes + self.late
        self.recent_rate += (hit - self.recent_rate) / min(count, RECENT)
        self.long_run_rate += (hit - self.long_run_rate) / min(count, LONG_RUN)

    def count_for_promise(self, hit: bool, *, size: int, right: str | None, group: str | None) -> None:
        """Count an outcome for the promised coverage: of which label, where it is named, and of which group."""
        parts = []
        if right is None:
            self.unnamed += 1
        else:
            parts.append(self.coverage_by_label.setdefault(right, CoverageCounts()))
        if group is not None:
            is_counted = group in self.coverage_by_group or len(self.coverage_by_group) < MAX_GROUPS
            name = group if is_counted else OTHERS
            parts.append(self.coverage_by_group.setdefault(name, CoverageCounts()))
        for part in parts:
            part.outcomes += 1
            part.hits += hit
            part.labels_shown += size

    @property
    def falling(self) -> bool:
        """Whether the hit rate of the last answers is below that of the long run by more than chance would have it.

        The mean over about 300 answers has a standard error of sqrt(p (1 - p) / 600) (its weights fall off
        exponentially); five of them come by chance about once in a million answers.
        """
        if self.outcomes + self.late < 2 * RECENT:
            return False
        error = sqrt(max(self.long_run_rate * (1.0 - self.long_run_rate), 0.01) / (2 * RECENT))
        return self.recent_rate < self.long_run_rate - 5.0 * error

    def _slot(self, time: float) -> CurveSlot:
        """Return the counts of the slot of a time."""
        if not self.slots:
            self.start = float(int(time))
        index = max(int((time - self.start) / self.width), 0)
        while index >= MAX_SLOTS:
            even, odd = self.slots[::2], self.slots[1::2]
            self.slots = [a + b for a, b in zip_longest(even, odd, fillvalue=CurveSlot())]
            self.width *= 2.0
            index = int((time - self.start) / self.width)
        while len(self.slots) <= index:
            self.slots.append(CurveSlot())
        return self.slots[index]


class TopSetEstimate:
    """The estimated hit rate of the top sets of a learner."""

    def __init__(self, sums: HitRateSums | None = None) -> None:
        self._sums = HitRateSums("set") if sums is None else sums
        self._waiting: list[tuple[float, float]] = []

    def add(
        self, *, top: Sequence[str], shown: Sequence[str], log_propensity: float | None, hit: bool
    ) -> None:
        """Add an outcome: of the set that was shown, beside the top set that the learner would have shown."""
        if log_propensity is None:
            weight = nan
        else:
            weight = exp(-log_propensity) if top == shown or set(top) == set(shown) else 0.0
        self._waiting.append((weight, float(hit)))
        if len(self._waiting) >= ESTIMATE_BATCH:
            self._count()

    def _count(self) -> None:
        if self._waiting:
            w, f = np.array(self._waiting).T
            none, unknown = np.zeros(len(w)), np.full(len(w), np.nan)
            weights = ImportanceWeights(w, none + 1.0, unknown, unknown)
            self._sums.add(
                f, weights, has_propensity=~np.isnan(w), q_policy=none, q_logged=none, predicted=none
            )
            self._waiting.clear()

    def report(self, spec: str, n_learnt: int, stop_reason: str = "") -> JsonObject:
        """Return the estimated hit rate of a learner, had it shown its top sets, for `GET /v1/stats`.

        ``n_learnt`` outcomes were learnt; ``rows`` in the report are those that the estimate rests on.
        """
        # of a copy: reading may run in another thread than adding
        current = TopSetEstimate.from_dict(self._sums.to_dict())
        current._waiting = list(self._waiting)
        current._count()
        snips = next(estimate for estimate in current._sums.estimates() if estimate.name == "snips")
        rates = {"rate": snips.value, "low": snips.low, "high": snips.high}
        counts = {"rows": snips.rows, "learnt": n_learnt, "problem": stop_reason or snips.problem}
        return {"learner": spec, **{k: None if isnan(v) else v for k, v in rates.items()}, **counts}

    def to_dict(self) -> JsonObject:
        self._count()
        return self._sums.to_dict()

    @classmethod
    def from_dict(cls, data: JsonObject) -> TopSetEstimate:
        return cls(HitRateSums.from_dict(data))


class Totals(Struct):
    """The totals after some event.

    Attributes:
        stats: counts and rates.
        settings: what operators have changed, beside the learner.
        estimate: the hit rate of the model's top sets.
        refusals: the newest events that had no effect, with the reason and the field at fault.
        refused_seqs: the numbers of all of them: whether an outcome was learnt may be asked at any time.
    """

    stats: Stats = field(default_factory=Stats)
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    estimate: TopSetEstimate = field(default_factory=TopSetEstimate)
    refusals: dict[int, Refusal] = {}
    refused_seqs: set[int] = set()

    @classmethod
    def from_dict(cls, data: JsonObject) -> Totals:
        """Return the totals that `to_dict` gave."""
        return convert(data, cls, str_keys=True, dec_hook=lambda cls, data: cls.from_dict(data))

    def to_dict(self) -> JsonObject:
        """Return a copy, for a snapshot."""
        return to_builtins(self, str_keys=True, enc_hook=TopSetEstimate.to_dict)  # type: ignore[no-any-return]

    def refuse(self, seq: int, reason: str, field: str | None = None) -> None:
        """Remember that an event has no effect."""
        self.refusals[seq] = Refusal(reason, field)
        self.refused_seqs.add(seq)
        if len(self.refusals) > MAX_REFUSALS:
            del self.refusals[next(iter(self.refusals))]
