"""Requests to events: what one turn is asked, against the model at hand. Nothing in here moves the model.

A turn has one model, and a cursor of its own: what deciding moves in the rule belongs to the turn, in the order of
the requests. Its events are decisions first, then outcomes, then what operators change.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from superarm.data.rows import AnyRow, as_row, fitted
from superarm.data.values import plain_row
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.journal.changes import check_change
from superarm.journal.errors import Conflict, Erased, JournalDamaged, Refused, UnknownDecision
from superarm.journal.events import (
    CHANGE,
    DECISION,
    ERASURE,
    OUTCOME,
    TIMEOUT,
    Event,
    OutcomeBody,
    decision_event,
    dumps,
    loads,
    pack_row,
)
from superarm.journal.records import DecisionRecord
from superarm.service.turns import Call

if TYPE_CHECKING:
    from superarm.service.local import LocalModel
    from superarm.service.shared import SharedModel

CONTEXT_BYTES, CONTEXT_DEPTH = 65_536, 64
IDS_AT_ONCE = 64
CLOCKS_DIFFER = 60.0  # seconds, between machines
MOST_WARNINGS = 100  # columns that the dashboard lists


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A request for a set."""

    x: AnyRow | dict[str, Any]  # a dict has names, or is a score for each label
    id: str | None = None
    eligible: tuple[str, ...] | None = None
    set_size: int | None = None
    context: Any = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """The outcome of a decision: hit or miss, or the right label."""

    id: str
    hit: bool | None = None
    label: str | None = None


class RetryNextPass(Exception):
    """The call must wait for what this turn has yet to write."""


class RequestHandler:
    """The requests of one turn after another."""

    def __init__(self, host: LocalModel | SharedModel) -> None:
        self.host, self.store, self.records = host, host.store, host.records
        self._staged: dict[tuple[int, str], Event] = {}
        self._more: list[Event] = []
        self._random: list[str] = []  # ends of ids that nobody has yet
        self._at: float | None = None
        self.notices: dict[str, str] = {}  # of the last decision: columns that are not what was declared
        self.warnings: dict[str, str] = {}  # the same of all decisions, each column once, the first ones
        self.warned = 0  # decisions with such columns
        self._damaged: dict[str, JournalDamaged] = {}  # ids whose events cannot be read

    def begin(self, calls: Sequence[Call]) -> None:
        """Begin a turn with the model at hand; decisions that these calls are about are looked up."""
        self.model = self.host.serving()
        self.cursor, self.disabled = self.model.learner.cursor(), self.model.totals.settings.disabled
        self._staged, self._more, self._damaged = {}, [], {}
        self._at = None
        self.records.next_turn()
        kinds = (DecisionRequest, OutcomeRequest)
        requests = [call.argument for call in calls if isinstance(call.argument, kinds)]
        self.load_records([request.id for request in requests if request.id is not None])

    def load_records(self, ids: Sequence[str]) -> None:
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self.records]
        try:
            by_id = self.store.find(missing) if missing else {}
        except JournalDamaged:  # at one of them: the others go on
            by_id = {}
            for id_ in missing:
                try:
                    by_id |= self.store.find([id_])
                except JournalDamaged as error:
                    self._damaged[id_] = error
        for events in by_id.values():
            record = DecisionRecord.of(events)
            if record is not None:
                self.records.put(record)

    def staged_events(self) -> list[Event]:
        """The events that the turn has to write, in their order."""
        return sorted([*self._staged.values(), *self._more], key=attrgetter("kind"))

    def now(self) -> float:
        """The time of this turn's events: one for all of them, since all are durable together."""
        if self._at is None:
            self._at = self.host.now()
        return self._at

    def _new_id(self, at: float) -> str:
        """Grows with time, as an index likes it; the rest is random."""
        if not self._random:
            drawn = os.urandom(6 * IDS_AT_ONCE).hex()
            self._random = [drawn[i : i + 12] for i in range(0, len(drawn), 12)]
        return f"{int(at * 1e3):011x}{self._random.pop()}"

    def stage(self, event: Event) -> Event:
        self._more.append(event)
        return event

    # ------------------------------------------------------------ decisions and outcomes

    def decide(self, request: DecisionRequest) -> Event:
        """Choose a set; the same request with the same id gives the same set again."""
        context = context_bytes(request.context)
        self.notices = {}
        if request.id is not None:
            self._check_readable(request.id)
            known = self._staged.get((DECISION, request.id))
            record = self.records.get(request.id)
            if known is not None or record is not None:
                return self._check_same_request(known or record.event, request, context)  # type: ignore[union-attr]
        model, cursor, moved = self.model, self.cursor, None
        if isinstance(request.x, dict):
            self._check_named(request.x)
        if self.host.next_round is not None:  # many processes decide: the event keeps the cursor, too
            cursor.round = self.host.next_round()
            moved = cursor.rule_state.tolist()
        try:
            decision = model.learner.decide(
                request.x,
                eligible=self._eligible(request),
                set_size=request.set_size,
                coverage=request.coverage,
                cursor=cursor,
            )
        except InvalidInput as error:
            if isinstance(request.x, dict) and error.field is not None and error.field.startswith("x["):
                name = error.field[3:-2]
                raise Refused(
                    str(error).replace(error.field, f"features.{name}", 1), field=f"features.{name}"
                ) from error
            raise
        except WeightsOverflow as error:  # other rows may well be fine
            wanted = "so small that all scores stay finite"
            raise Refused.must("features", "decision", wanted, "an overflow") from error
        if isinstance(request.x, dict) and model.learner.notices:
            self.notices = model.learner.notices
            if len(self.warnings) < MOST_WARNINGS:  # names come from callers
                self.warnings = dict([*(self.warnings | self.notices).items()][:MOST_WARNINGS])
            self.warned += 1
        at = self.now()
        id_ = request.id or self._new_id(at)
        event = self._staged[DECISION, id_] = decision_event(
            at,
            id_,
            decision,
            context,
            asked=request.set_size,
            among=None if request.eligible is None else list(request.eligible),
            model=model.seq,
            version=model.totals.stats.learnt,
            k=model.learner.n_labels,
            coverage=request.coverage,
            cursor=moved,
        )
        return event

    def outcome(self, request: OutcomeRequest) -> str:
        """Take an outcome, once; the id that it is about."""
        id_ = request.id
        self._check_readable(id_)
        record, staged = self.records.get(id_), self._staged.get((DECISION, id_))
        if record is None and staged is None:
            raise UnknownDecision.must("id", "outcome", "that of a decision", id_)
        if record is None:
            raise RetryNextPass  # its decision gets its number with the commit
        decision = record.event
        body, label = decision.body, request.label
        among = body.among
        if label is not None and among is not None and label not in among:
            raise Refused.must("label", "outcome", "one of the eligible labels", label)
        hit = label in body.labels if request.hit is None else request.hit
        kept = self._staged.get((OUTCOME, id_)) or record.outcome
        if kept is not None:
            self._check_same_outcome(kept.body, request, hit)
            return id_
        if label is None and "hit" not in self.model.learner.feedback:
            name = type(self.model.learner).__name__
            raise FeedbackError.must("feedback", name, "label=...", f"hit={request.hit!r}")
        body_ = OutcomeBody(decision.seq, hit, label)
        self._staged[OUTCOME, id_] = Event.new(self.now(), OUTCOME, body_, id_)
        return id_

    def expire(self, timeouts: Sequence[Event]) -> int:
        """Stage timeouts, but for decisions that this turn has an outcome of; how many."""
        staged = self._staged
        due = {(TIMEOUT, event.id): event for event in timeouts if (OUTCOME, event.id) not in staged}
        staged |= due
        return len(due)

    # ------------------------------------------------------------ what operators change

    def change(self, change: dict[str, Any]) -> Event | None:
        """Stage a change, or refuse it; None if there is nothing to do."""
        model = self.model
        if not check_change(change, model.learner, model.totals.settings, self.store):
            return None
        if change["what"] == "add_labels":
            new = [label for label in change["labels"] if label not in self.disabled]
            try:
                copy.deepcopy(model.learner).add_labels(new) if new else None
            except InvalidInput as error:
                raise Refused(str(error), field=error.field) from error
        if change["what"] == "rollback":
            self.store.pin_snapshot(change["to"])
        return self.stage(Event.new(self.now(), CHANGE, change))

    def erase(self, ids: Sequence[str] | None, before: float | None) -> Event:
        """Stage an erasure; each id must be that of a decision."""
        if ids is None:
            if before is None or before > self.now() + CLOCKS_DIFFER:  # in milliseconds it would be all
                raise Refused.must("before", "erase", "a time in the past, in seconds since 1970", before)
            return self.stage(Event.new(self.now(), ERASURE, {"before": before}))
        names = list(dict.fromkeys(ids))
        self.load_records(names)
        for id_ in names:
            if id_ not in self.records:
                raise UnknownDecision.must("id", "erase", "that of a decision", id_)
        return self.stage(Event.new(self.now(), ERASURE, {"ids": names}))

    # ------------------------------------------------------------ inside

    def _check_readable(self, id_: str) -> None:
        if id_ in self._damaged:
            raise self._damaged[id_]

    def _eligible(self, request: DecisionRequest) -> tuple[str, ...] | None:
        """The labels that may be shown: those asked for, without disabled ones; None for all."""
        if not self.disabled:
            return request.eligible
        disabled = frozenset(self.disabled)
        among = request.eligible or self.model.learner.labels or ()
        eligible = tuple(str(label) for label in among if label not in disabled)
        if not eligible:
            wanted = "a list with labels that are not disabled"
            raise Refused.must("eligible", "decision", wanted, request.eligible)
        return eligible

    def _check_named(self, x: dict[str, Any]) -> None:
        try:
            pack_row(plain_row(x))
        except TypeError as error:
            wanted = (
                "numbers of 64 bits, words, texts, true or false, dates, lists of numbers or missing values"
            )
            raise Refused.must("features", "decision", wanted, str(error)) from error

    def _check_same_request(self, event: Event, request: DecisionRequest, context: bytes | None) -> Event:
        if event.x is None:
            raise Erased.must("id", "decision", "one whose features were not erased", request.id)
        eligible = None if request.eligible is None else sorted(request.eligible)
        body, kept = event.body, event.context
        checks = {
            "features": self._has_same_row(request.x, event),
            "eligible": eligible == (None if body.among is None else sorted(body.among)),
            "set_size": request.set_size == body.asked,
            "coverage": request.coverage == body.coverage,
            "context": context == kept
            or (None not in (context, kept) and _same_json(request.context, loads(kept or b""))),
        }
        for field, same in checks.items():
            if not same:
                message = f"{field} of decision must be as in the first request with the id {event.id!r}"
                raise Conflict(message, field=field)
        return event

    def _has_same_row(self, x: Any, event: Event) -> bool:
        width, layout = event.body.width, self.model.learner.inputs.layout
        if isinstance(x, dict) or isinstance(width, str):
            return isinstance(x, dict) and _same_json(plain_row(x), loads(event.x or b"{}"))
        row = as_row(x, self.model.learner.n_features, "decision")
        return pack_row(row if layout is None else fitted(row, layout, "decision")) == event.x

    def _check_same_outcome(self, kept: OutcomeBody, request: OutcomeRequest, hit: bool) -> None:
        if hit == kept.hit and request.label in (None, kept.label):
            return
        field = "hit" if request.label is None else "label"
        first = f"hit {kept.hit}" if kept.label is None or field == "hit" else f"label {kept.label!r}"
        got = request.hit if request.label is None else request.label
        raise Conflict.must(field, "outcome", f"as in the first outcome ({first})", got)


def context_bytes(context: Any) -> bytes | None:
    """The context as JSON: it may be too deep, too long, or no JSON at all."""
    if context is None:
        return None
    try:
        data = dumps(context)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused.must("context", "decision", "JSON, and not too deep", str(error)) from error
    if len(data) > CONTEXT_BYTES:
        wanted = f"of at most {CONTEXT_BYTES} bytes as JSON"
        raise Refused.must("context", "decision", wanted, f"{len(data)} bytes")
    if data.count(b"[") + data.count(b"{") > CONTEXT_DEPTH and _depth(context) > CONTEXT_DEPTH:
        wanted = f"nested at most {CONTEXT_DEPTH} deep"
        raise Refused.must("context", "decision", wanted, "a deeper one")
    return data


def _same_json(a: Any, b: Any) -> bool:
    """Whether two values are the same in JSON: 1 and 1.0 are, 1 and true are not (Python thinks so)."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same_json(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return bool(inside) + max(map(_depth, inside), default=0)
