"""A decision and what has become of it, put together from its events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from math import exp
from typing import Any

from orjson import loads

from superarm.data.row_json import row_to_json
from superarm.journal.events import DECISION, OUTCOME, TIMEOUT, DecisionBody, Event

__all__ = ["DecisionRecord", "DecisionStatus", "Records"]


class DecisionStatus(Enum):
    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    LATE = "answered late"


class DecisionRecord:
    """All events about one decision."""

    __slots__ = ("event", "outcome", "timeout")

    def __init__(self, event: Event, outcome: Event | None = None, timeout: Event | None = None) -> None:
        self.event, self.outcome = event, outcome
        # a timeout that came after the outcome means nothing
        void = outcome is not None and timeout is not None and outcome.seq < timeout.seq
        self.timeout = None if void else timeout

    @classmethod
    def of(cls, events: Iterable[Event]) -> DecisionRecord | None:
        """From all events about an id; None if no decision is among them."""
        found = {event.kind: event for event in events if event.kind <= TIMEOUT}
        decision = found.get(DECISION)
        return None if decision is None else cls(decision, found.get(OUTCOME), found.get(TIMEOUT))

    @property
    def status(self) -> DecisionStatus:
        if self.outcome is None:
            return DecisionStatus.PENDING if self.timeout is None else DecisionStatus.EXPIRED
        return DecisionStatus.ANSWERED if self.timeout is None else DecisionStatus.LATE

    @property
    def made(self) -> DecisionBody:
        """The facts of the decision."""
        return self.event.body  # type: ignore[no-any-return]

    @property
    def propensity(self) -> float | None:
        log = self.made.log_propensity
        return None if log is None else exp(log)

    def shown(self) -> dict[str, Any]:
        """What the asker is told."""
        made = self.made
        return {
            "id": self.event.id,
            "labels": made.labels,
            "propensity": self.propensity,
            "model_version": made.version,
        }

    def answered(self, learnt: bool | None) -> dict[str, Any] | None:
        """The outcome, or in its place the timeout; ``learnt`` is for whoever projects to know."""
        event = self.outcome or self.timeout
        if event is None:
            return None
        body, timeout = event.body, self.outcome is None
        late = None if learnt is None and not timeout else not timeout and self.timeout is not None
        return {
            "hit": body.hit,
            "label": body.label,
            "time": event.time,
            "learnt": learnt,
            "late": late,
            "timeout": timeout,
        }

    def full(self, learnt: bool | None) -> dict[str, Any]:
        """All about it, as JSON-ready values; features and context are None once they were erased."""
        event, made, features = self.event, self.made, None
        if event.x is not None:
            x = event.row()
            features = x if isinstance(x, dict) else row_to_json(x)
            if not isinstance(x, dict) and isinstance(features, dict):
                del features["width"]  # as it came: the service knows it
        return {
            **self.shown(),
            "time": event.time,
            "state": self.status.value,
            "features": features,
            "top": made.top,
            "eligible": made.eligible,
            "set_size": len(made.labels),
            "context": None if event.context is None else loads(event.context),
            "erased": event.x is None,
            "outcome": self.answered(learnt),
        }


class Records:
    """The newest open records, as many as fit into so many bytes; others are read from the store."""

    OVERHEAD = 3_000  # bytes of a record beside its row, its context and its body

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self._records: OrderedDict[str, tuple[DecisionRecord, int]] = OrderedDict()
        self._answered: list[str] = []

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._records

    def get(self, id_: str) -> DecisionRecord | None:
        found = self._records.get(id_)
        return found[0] if found else None

    def put(self, record: DecisionRecord) -> DecisionRecord:
        event = record.event
        # a row is kept as bytes and as an array, the body as text and read
        size = self.OVERHEAD + 2 * len(event.x or b"") + len(event.context or b"") + 4 * len(event.text)
        self.drop(event.id)
        self._records[event.id] = record, size
        self.bytes += size
        return record

    def answered(self, id_: str) -> None:
        """It is needed until this turn has ended."""
        self._answered.append(id_)

    def next_turn(self) -> None:
        """Let those go that were answered."""
        for id_ in self._answered:
            self.drop(id_)
        self._answered.clear()

    def trim(self) -> None:
        """Let the oldest go that do not fit."""
        while self.bytes > self.most_bytes and self._records:
            _, (_, freed) = self._records.popitem(last=False)
            self.bytes -= freed

    def drop(self, id_: str) -> None:
        found = self._records.pop(id_, None)
        if found:
            self.bytes -= found[1]

    def clear(self) -> None:
        self._records.clear()
        self.bytes = 0
