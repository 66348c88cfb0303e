"""Totals: what the events add up to beside the model. A snapshot keeps them with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, convert, field, to_builtins

from superarm.journal.changes import LabelSettings
from superarm.journal.events import OUTCOME, Event
from superarm.journal.records import DecisionRecord
from superarm.journal.shadows import HitRateEstimate
from superarm.journal.stats import Stats

MOST_REFUSED = 1_000  # refusals that are remembered


class Totals(Struct):
    """The totals after some event; `Totals.of` makes them.

    Attributes:
        stats: counts and rates.
        settings: what operators have changed, beside the learner.
        estimate: the hit rate of the model's top sets.
        refused: events that had no effect, with the reason and the field at fault.
    """

    stats: Stats = field(default_factory=Stats)
    settings: LabelSettings = field(default_factory=LabelSettings)
    estimate: HitRateEstimate = field(default_factory=HitRateEstimate)
    refused: dict[int, list[str | None]] = {}

    @classmethod
    def of(cls, labels: Sequence[str], data: dict[str, Any] | None = None) -> Totals:
        """For these labels: new, or from what `to_dict` gave."""
        totals = convert(data or {}, cls, str_keys=True, dec_hook=lambda kind, held: kind.from_dict(held))
        totals.stats.grow(labels)
        return totals

    def to_dict(self) -> dict[str, Any]:
        """A copy, for a snapshot."""
        return to_builtins(self, str_keys=True, enc_hook=HitRateEstimate.to_dict)  # type: ignore[no-any-return]

    def refuse(self, seq: int, reason: str, field: str | None = None) -> None:
        """An event has no effect."""
        self.refused[seq] = [reason, field]
        if len(self.refused) > MOST_REFUSED:
            del self.refused[next(iter(self.refused))]

    def was_learnt(self, event: Event, record: DecisionRecord) -> bool:
        """Whether an outcome or a timeout that was projected has moved the model."""
        hit = event.body.hit
        if hit is None or event.seq in self.refused or self.settings.frozen_at(event.seq):
            return False
        expired = record.timeout if event.kind == OUTCOME else None
        if expired is not None and expired.body.hit == hit:  # the default was that already
            return not self.was_learnt(expired, record)
        return True
