"""The record of a decision, put together from its events; and the newest of them, in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf
from typing import TYPE_CHECKING

from orjson import loads

from superarm.groups import group_name
from superarm.journal.events import DECISION, OUTCOME, TIMEOUT, DecisionBody, Event

if TYPE_CHECKING:
    from superarm.journal.store import JournalStore


@dataclass(slots=True)
class DecisionRecord:
    """All events about one decision."""

    decision: Event
    outcome: Event | None = None
    timeout: Event | None = None

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> DecisionRecord | None:
        """Return the record of all events about an id; None if no decision is among them."""
        by_kind = {event.kind: event for event in events if event.kind <= TIMEOUT}
        outcome, timeout = by_kind.get(OUTCOME), by_kind.get(TIMEOUT)
        if outcome is not None and timeout is not None and outcome.seq < timeout.seq:
            timeout = None  # it came too late to mean anything
        return cls(by_kind[DECISION], outcome, timeout) if DECISION in by_kind else None

    @property
    def closed_by(self) -> Event | None:
        """The event that closed the decision: its outcome, or a timeout in its place."""
        return self.outcome or self.timeout

    @property
    def earlier_timeout(self) -> Event | None:
        """The timeout that came before a late outcome; None if the outcome was in time, or there is none yet."""
        return None if self.outcome is None else self.timeout

    @property
    def status(self) -> str:
        if self.outcome is None:
            return "pending" if self.timeout is None else "expired"
        return "answered" if self.timeout is None else "answered late"

    @property
    def body(self) -> DecisionBody:
        """The body of the decision's event."""
        return self.decision.body  # type: ignore[no-any-return]

    @property
    def propensity(self) -> float | None:
        log = self.body.log_propensity
        return None if log is None else exp(log)

    def group(self, column: str | None) -> str | None:
        """Return the decision's group: the value of a column in its row, or in its context; None without a column."""
        if column is None:
            return None
        context = None if self.decision.context is None else loads(self.decision.context)
        for fields in (self.decision.row(), context):
            if isinstance(fields, dict) and fields.get(column) is not None:
                return group_name(fields[column])
        return group_name(None)


class RecordCache:
    """The newest decisions in memory, as many as fit into so many bytes."""

    OVERHEAD = 3_000  # bytes of a record beside its row, its context and its body

    def __init__(self, store: JournalStore, most_bytes: int = 32 << 20) -> None:
        self.store, self.most_bytes, self.bytes = store, most_bytes, 0
        self._records: OrderedDict[str, tuple[DecisionRecord, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._records

    def get(self, id_: str) -> DecisionRecord | None:
        entry = self._records.get(id_)
        return entry[0] if entry else None

    def find(self, id_: str, until: float) -> DecisionRecord | None:
        """Return a decision as it was after event ``until``, read if it is not in memory; None if there is none."""
        if id_ not in self._records:
            self.load([id_], until)
        return self.get(id_)

    def load(self, ids: Iterable[str], until: float = inf) -> None:
        """Read decisions that are not in memory, as they were after event ``until``."""
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._records]
        for events in self.store.events_by_id(missing).values():
            record = DecisionRecord.from_events(event for event in events if event.seq <= until)
            if record is not None:
                self.put(record)

    def put(self, record: DecisionRecord) -> None:
        event = record.decision
        _, freed = self._records.pop(event.id, (None, 0))
        # a row is kept as bytes and as an array, the body as text and read
        size = self.OVERHEAD + 2 * len(event.x or b"") + len(event.context or b"") + 4 * len(event.body_json)
        self._records[event.id] = record, size
        self.bytes += size - freed

    def trim(self) -> None:
        """Drop the oldest records that do not fit."""
        while self.bytes > self.most_bytes and self._records:
            _, (_, freed) = self._records.popitem(last=False)
            self.bytes -= freed

    def clear(self) -> None:
        self._records.clear()
        self.bytes = 0
