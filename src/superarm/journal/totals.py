"""Totals: what the events add up to beside the model. A snapshot keeps them with it, so they survive a restart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from msgspec import Struct, convert, field, to_builtins

from superarm._types import JsonObject
from superarm.journal.changes import OperatorSettings
from superarm.journal.events import OUTCOME, Event
from superarm.journal.records import DecisionRecord
from superarm.journal.shadows import HitRateEstimate

MOST_REFUSED = 1_000  # refusals that are remembered
# seconds
AGES = (
    0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0
)  # fmt: skip
MOST_SLOTS = 240  # points of the curves
MOST_GROUPS, OTHERS = 200, "(others)"  # groups beyond these are counted together
RECENT, USUAL = 300, 20_000  # answers over which the hit rate is smoothed, for `falling`

# what is counted in a slot of the curves
DECISIONS, EXPLORED, OUTCOMES, HITS = range(4)


class Stats(Struct, dict=True):
    """Running counts; `grow` gives them their labels.

    The curves have at most 240 slots, first of a quarter of a second each; when they run out, the
    width doubles and neighbours merge.
    """

    COUNTS: ClassVar = (
        "decisions", "explored", "outcomes", "hits", "timeouts", "late", "learnt", "refused"
    )  # fmt: skip

    decisions: int = 0
    explored: int = 0
    outcomes: int = 0
    hits: int = 0
    timeouts: int = 0
    late: int = 0
    learnt: int = 0
    refused: int = 0
    floor: float | None = None  # the least propensity of all sets so far
    recent: float = 0.0  # the hit rate of the last outcomes
    usual: float = 0.0  # ... of many more
    age_sum: float = 0.0  # of outcomes, in seconds
    ages: list[int] = field(default_factory=lambda: [0] * (len(AGES) + 1))
    shown: list[int] = []  # for each label: the sets that showed it,
    answered: list[int] = []  # those with an outcome,
    hit: list[int] = []  # those with a hit
    sizes: list[int] = []  # sets of 0, 1, 2 … labels
    # of outcomes that count for the promised coverage: how many, how many hits, how many labels were shown
    named: list[list[int]] = []  # for each right label that was named
    groups: dict[str, list[int]] = {}  # for each group
    unnamed: int = 0  # how many of them name no label
    start: float = 0.0  # of the curves: seconds since 1970
    width: float = 0.25  # of a slot: seconds
    slots: list[list[int]] = []

    def __post_init__(self) -> None:  # what a snapshot does not keep
        self.labels: tuple[str, ...] = ()
        self.positions: dict[str, int] = {}
        self._slot_time, self._last_slot = -1.0, [0]

    def grow(self, labels: Sequence[str]) -> None:
        """All labels, of which some at the end may be new."""
        if len(labels) > len(self.labels):
            self.labels = tuple(labels)
            self.positions = {label: i for i, label in enumerate(self.labels)}
            for counts in (self.shown, self.answered, self.hit):
                counts.extend([0] * (len(labels) - len(counts)))
            self.named.extend([0, 0, 0] for _ in range(len(labels) - len(self.named)))

    @property
    def pending(self) -> int:
        return self.decisions - self.outcomes - self.timeouts

    def count_decision(
        self, time: float, labels: Sequence[str], top: Sequence[str], propensity: float | None
    ) -> None:
        self.decisions += 1
        slot = self._slot(time)
        slot[DECISIONS] += 1
        if labels != top and set(labels) != set(top):
            self.explored += 1
            slot[EXPLORED] += 1
        while len(self.sizes) <= len(labels):
            self.sizes.append(0)
        self.sizes[len(labels)] += 1
        shown, positions = self.shown, self.positions
        for label in labels:
            shown[positions[label]] += 1
        if propensity is not None and (self.floor is None or propensity < self.floor):
            self.floor = propensity

    def count_outcome(
        self,
        time: float,
        age: float,
        labels: Sequence[str],
        hit: bool,
        late: bool,
        learnt: bool,
        refused: bool,
    ) -> None:
        """An outcome, in time or late."""
        if late:
            self.late += 1
        else:
            self.outcomes += 1
        self.learnt += learnt
        self.refused += refused
        self.age_sum += age
        self.ages[bisect_left(AGES, age)] += 1
        slot = self._slot(time)
        slot[OUTCOMES] += 1
        self.hits += hit
        slot[HITS] += hit
        answered, hits, positions = self.answered, self.hit, self.positions
        for label in labels:
            position = positions[label]
            answered[position] += 1
            hits[position] += hit
        count = self.outcomes + self.late
        self.recent += (hit - self.recent) / min(count, RECENT)
        self.usual += (hit - self.usual) / min(count, USUAL)

    def count_for_promise(self, hit: bool, size: int, right: str | None, group: str | None) -> None:
        """An outcome that counts for the promised coverage: of which label, where it is named, and of which group."""
        parts = []
        if right is None:
            self.unnamed += 1
        elif right in self.positions:
            parts.append(self.named[self.positions[right]])
        if group is not None:
            is_counted = group in self.groups or len(self.groups) < MOST_GROUPS
            parts.append(self.groups.setdefault(group if is_counted else OTHERS, [0, 0, 0]))
        for part in parts:
            part[0] += 1
            part[1] += hit
            part[2] += size

    def count_timeout(self, learnt: bool, refused: bool) -> None:
        self.timeouts += 1
        self.learnt += learnt
        self.refused += refused

    @property
    def falling(self) -> bool:
        """Whether the hit rate of the last answers is below the usual one by more than chance would have it.

        The mean over about 300 answers has a standard error of sqrt(p (1 - p) / 600) (its weights fall off
        exponentially); five of them come by chance about once in a million answers.
        """
        if self.outcomes + self.late < 2 * RECENT:
            return False
        error = sqrt(max(self.usual * (1.0 - self.usual), 0.01) / (2 * RECENT))
        return self.recent < self.usual - 5.0 * error

    def _slot(self, time: float) -> list[int]:
        if time == self._slot_time and self.slots:  # all events of a turn have one time
            return self._last_slot
        self._slot_time, self._last_slot = time, self._find_slot(time)
        return self._last_slot

    def _find_slot(self, time: float) -> list[int]:
        if not self.slots:
            self.start = float(int(time))
        index = max(int((time - self.start) / self.width), 0)
        while index >= MOST_SLOTS:
            pairs = [self.slots[i : i + 2] for i in range(0, len(self.slots), 2)]
            self.slots = [[sum(column) for column in zip(*pair, strict=True)] for pair in pairs]
            self.width *= 2.0
            index = int((time - self.start) / self.width)
        while len(self.slots) <= index:
            self.slots.append([0, 0, 0, 0])
        return self.slots[index]


class Totals(Struct):
    """The totals after some event; `Totals.of` makes them.

    Attributes:
        stats: counts and rates.
        settings: what operators have changed, beside the learner.
        estimate: the hit rate of the model's top sets.
        refused: the newest events that had no effect, with the reason and the field at fault.
        all_refused: the numbers of all of them.
    """

    stats: Stats = field(default_factory=Stats)
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    estimate: HitRateEstimate = field(default_factory=HitRateEstimate)
    refused: dict[int, list[str | None]] = {}
    all_refused: set[int] = set()

    @classmethod
    def of(cls, labels: Sequence[str], data: JsonObject | None = None) -> Totals:
        """For these labels: new, or from what `to_dict` gave."""
        totals = convert(data or {}, cls, str_keys=True, dec_hook=lambda cls, data: cls.from_dict(data))
        totals.stats.grow(labels)
        return totals

    def to_dict(self) -> JsonObject:
        """A copy, for a snapshot."""
        return to_builtins(self, str_keys=True, enc_hook=HitRateEstimate.to_dict)  # type: ignore[no-any-return]

    def refuse(self, seq: int, reason: str, field: str | None = None) -> None:
        """An event has no effect."""
        self.refused[seq] = [reason, field]
        self.all_refused.add(seq)
        if len(self.refused) > MOST_REFUSED:
            del self.refused[next(iter(self.refused))]

    def was_learnt(self, event: Event, record: DecisionRecord) -> bool:
        """Whether an outcome or a timeout that was projected has moved the model."""
        hit = event.body.hit
        if hit is None or event.seq in self.all_refused or self.settings.was_frozen_at(event.seq):
            return False
        expired = record.timeout if event.kind == OUTCOME else None
        if expired is not None and expired.body.hit == hit:  # the default was that already
            return not self.was_learnt(expired, record)
        return True
