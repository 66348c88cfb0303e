"""Batch: the calls of one commit, made with the model as it is. Nothing in here changes the model.

A batch has one model, and a cursor of its own: what deciding moves in the rule belongs to the batch, in the order of
the requests. Its events are decisions first, then outcomes, then what operators change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from operator import attrgetter
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from superarm.data.cells import json_row
from superarm.data.labels import check_single_lines
from superarm.decisions import Decision
from superarm.decisions.ids import ID_DESCRIPTION, IS_ID
from superarm.errors import FeedbackError, InvalidInput, Unquoted, WeightsOverflow
from superarm.journal.changes import AddLabels, AnyOperatorRequest, Change, Erase, Rollback
from superarm.journal.errors import JournalDamaged, JournalMismatch, JournalUnavailable
from superarm.journal.events import (
    CHANGE,
    DECISION,
    ERASURE,
    OUTCOME,
    Event,
    OutcomeBody,
    decision_event,
    pack_row,
)
from superarm.journal.records import DecisionRecord
from superarm.learners import Scores
from superarm.service.commit_queue import Call
from superarm.service.messages import DecisionResponse, OutcomeRequest, OutcomeResponse
from superarm.service.request_errors import UnknownDecision
from superarm.service.requests import (
    DecisionRequest,
    check_same_decision,
    check_same_outcome,
    context_bytes,
)
from superarm.service.views import decision_response, recorded_outcome

if TYPE_CHECKING:
    from superarm.native.cursor import Cursor
    from superarm.service.service import Service

MAX_CLOCK_SKEW = 60.0  # seconds, between machines
MAX_WARNINGS = 100  # columns that the dashboard lists
NAMED_VALUES = "numbers of 64 bits, words, texts, true or false, dates, lists of numbers or missing values"


class RetryAfterCommit(Exception):
    """The call must be made again after this batch was committed: it is about what the batch writes."""


class ColumnWarnings:
    """Columns of rows that are not as declared: how many decisions had some, and the newest warning of each."""

    def __init__(self) -> None:
        self.n_decisions = 0
        self.by_column: dict[str, str] = {}

    def add(self, warnings: dict[str, str]) -> None:
        """Count a decision with these warnings, by column."""
        if warnings:
            self.n_decisions += 1
            for column, warning in warnings.items():
                if column in self.by_column or len(self.by_column) < MAX_WARNINGS:
                    self.by_column[column] = warning  # names come from callers


class Batch:
    """Calls that are made with the newest model, and the events that they have to write.

    Args:
        service: whose model and journal these are.
        calls: of the batch; the decisions that they are about are looked up at once.
    """

    def __init__(self, service: Service, calls: Sequence[Call]) -> None:
        self.service, self.follower, self.store, self.calls = service, service.follower, service.store, calls
        self.follower.catch_up()
        self.projector = self.follower.projector
        self.cursor = self.projector.learner.cursor()
        self._staged: dict[tuple[int, str], Event] = {}
        self._staged_changes: list[Event] = []
        self._damaged: dict[str, JournalDamaged] = {}  # ids whose events cannot be read
        self.now = self.follower.clock()  # the time of all its events, since all are durable together
        self.load_records([call.id for call in calls if call.id is not None])

    def make_calls(self) -> tuple[list[Call], list[Call]]:
        """Make the calls; return the done ones, and the ones that must be made again after the commit.

        A result may be a function, which gives it after the commit.
        """
        done: list[Call] = []
        retry: list[Call] = []
        for call in self.calls:
            try:
                call.result = self._make(call.request)
                done.append(call)
            except RetryAfterCommit:
                retry.append(call)
            except Exception as error:
                if (
                    isinstance(error, JournalUnavailable | JournalMismatch)
                    and error is not self.service.outage
                ):
                    raise  # it concerns all calls
                call.error = error
        return done, retry

    def _make(self, request: Any) -> Any:
        if isinstance(request, DecisionRequest):
            return self.decide(request)
        if isinstance(request, OutcomeRequest):
            return self.outcome(request)
        if isinstance(request, AnyOperatorRequest):
            return self.change(request)
        return request

    def load_records(self, ids: Sequence[str]) -> None:
        """Read decisions into memory."""
        try:
            self.projector.records.load(ids, self.projector.seq)
        except JournalDamaged:  # at one of them: the others go on
            for id_ in ids:
                try:
                    self.projector.records.load([id_], self.projector.seq)
                except JournalDamaged as error:
                    self._damaged[id_] = error

    def staged_events(self) -> list[Event]:
        """Return the events that the batch has to write, in their order."""
        return sorted([*self._staged.values(), *self._staged_changes], key=attrgetter("kind"))

    @property
    def _awaits_first_row(self) -> bool:
        return self.projector.learner.inputs.layout is None

    def only_after(self) -> int | None:
        """Return the event that the staged ones must follow at once: a first row fits the model of that event alone."""
        return self.projector.seq if self._awaits_first_row else None

    # ------------------------------------------------------------ decisions and outcomes

    def decide(self, request: DecisionRequest) -> DecisionResponse:
        """Choose a set; the same request with the same id gives the same set again."""
        context = context_bytes(request.context)
        event, warnings = self._earlier_decision(request.id), dict[str, str]()
        if event is None:
            event = self._new_decision(request, context)
            if isinstance(request.x, dict):
                warnings = self.projector.learner.column_warnings
                self.service.column_warnings.add(warnings)
        else:
            check_same_decision(event, request, context, self.projector.learner)
            if isinstance(request.x, dict) and not self._awaits_first_row:
                self.projector.learner.inputs.encode_row(request.x, grow=False)
                warnings = self.projector.learner.column_warnings
        return decision_response(DecisionRecord(event), tuple(warnings.values()))

    def _earlier_decision(self, id_: str | None) -> Event | None:
        """Return the decision with an id, from the journal or from this batch; None if it is a new one."""
        if id_ is None:
            return None
        record = self._record(id_)
        return self._staged.get((DECISION, id_)) if record is None else record.decision

    def _new_decision(self, request: DecisionRequest, context: bytes | None) -> Event:
        """Choose a set, and stage the event of that decision."""
        projector, cursor, cursor_state = self.projector, self.cursor, None
        if request.id is not None and not IS_ID(request.id):
            raise InvalidInput.must("id", "decision", ID_DESCRIPTION, request.id)
        if self._awaits_first_row and any(kind == DECISION for kind, _ in self._staged):
            raise RetryAfterCommit  # the staged row fixes what all others must look like
        if isinstance(request.x, dict):
            try:
                pack_row(json_row(request.x))
            except TypeError as error:
                raise InvalidInput.must("features", "decision", NAMED_VALUES, error) from error
        self.service.check_writable()
        round_ = self.store.next_round()
        if round_ is not None:  # many processes decide: the event keeps the cursor, too
            cursor.round = round_
            cursor_state = cursor.draw_state.tolist()
        decision = self._choose(request, cursor)
        # an id of ours grows with time, so that an index grows at its end, and ends at random
        id_ = request.id or f"{int(self.now * 1e3):011x}{token_hex(6)}"
        event = self._staged[DECISION, id_] = decision_event(
            self.now,
            id_,
            decision,
            context,
            set_size=request.set_size,
            requested_eligible=None if request.eligible is None else list(request.eligible),
            model_seq=projector.seq,
            n_learnt=projector.totals.stats.learnt,
            n_labels=projector.learner.n_labels,
            coverage=request.coverage,
            cursor=cursor_state,
        )
        return event

    def _choose(self, request: DecisionRequest, cursor: Cursor) -> Decision:
        """Let the learner decide; its errors name the fields of the request."""
        learner = self.projector.learner
        try:
            return learner.decide(
                request.x,
                eligible=self._eligible(request),
                set_size=request.set_size,
                coverage=request.coverage,
                cursor=cursor,
            )
        except InvalidInput as error:
            raise _request_error(error, "scores" if isinstance(learner, Scores) else "features") from error
        except WeightsOverflow as error:  # other rows may well be fine
            wanted = "so small that all scores stay finite"
            raise InvalidInput.must("features", "decision", wanted, Unquoted("an overflow")) from error

    def outcome(self, request: OutcomeRequest) -> Callable[[], OutcomeResponse]:
        """Take an outcome, once; return a function that gives the response after the commit."""
        id_ = request.id
        record = self._record(id_)
        if record is None and (DECISION, id_) in self._staged:
            raise RetryAfterCommit  # its decision gets its number with the commit
        if record is None:
            self.service.check_writable()  # in an outage, the journal may have more than the model knows
            raise UnknownDecision.must("id", "outcome", "that of a decision", id_)
        self._stage_outcome(record, request)

        def response() -> OutcomeResponse:
            projector = self.service.projector
            record = projector.records.find(id_, projector.seq)  # an erasure may have come in between
            assert record is not None
            outcome = recorded_outcome(self.follower, record)
            assert outcome is not None
            return OutcomeResponse(id_, outcome)

        return response

    def _stage_outcome(self, record: DecisionRecord, request: OutcomeRequest) -> None:
        """Stage the event of an outcome, or find the same one in the journal or in this batch."""
        body, id_, label, learner = record.body, request.id, request.label, self.projector.learner
        if (request.hit is None) == (label is None):
            raise InvalidInput.must(
                "hit", "outcome", "given, or label in its place, and not both", request.hit
            )
        if label is not None and label not in self.projector.labels:
            raise InvalidInput.must("label", "outcome", "a known label", label)
        if label is not None and not learner.inputs.label_may_be_right(label, body.requested_eligible):
            wanted = "one of the eligible labels (where the right one could not be shown, report hit: false)"
            raise InvalidInput.must("label", "outcome", wanted, label)
        hit = label in body.labels if request.hit is None else request.hit
        earlier = self._staged.get((OUTCOME, id_)) or record.outcome
        if earlier is not None:
            check_same_outcome(earlier.body, request, hit)
            return
        if label is None and "hit" not in learner.feedback:
            got = Unquoted(f"hit={request.hit!r}")
            raise FeedbackError.must("feedback", type(learner).__name__, "label=...", got)
        self.service.check_writable()
        outcome = OutcomeBody(record.decision.seq, hit, label)
        self._staged[OUTCOME, id_] = Event.new(self.now, OUTCOME, outcome, id_)

    # ------------------------------------------------------------ what operators change

    def change(self, request: AnyOperatorRequest) -> Callable[[], int] | None:
        """Stage a change or an erasure, or refuse it; return what gives its number after the commit.

        None: there is nothing to do.
        """
        if isinstance(request, Erase):
            request = self._check_erasure(request)
        elif not self._has_effect(request):
            return None
        self.service.check_writable()
        if isinstance(request, Rollback) and not self.store.pin_snapshot(request.to):
            raise request.no_snapshot()
        kind = ERASURE if isinstance(request, Erase) else CHANGE
        event = Event.new(self.now, kind, request.to_dict())
        self._staged_changes.append(event)
        return lambda: event.seq

    def _has_effect(self, change: Change) -> bool:
        """Try a change on a copy, or refuse it; return whether there is anything to do."""
        if isinstance(change, AddLabels):
            check_single_lines(change.labels, "change")
        learner, settings = copy.deepcopy((self.projector.learner, self.projector.totals.settings))
        return change.apply(settings, learner, self.projector.seq + 1, self.store) is not None

    def _check_erasure(self, request: Erase) -> Erase:
        """Return an erasure with each id once; each must be that of a decision."""
        ids, before = request.ids, request.before
        if (ids is None) == (before is None):
            raise InvalidInput.must("ids", "change", "given, or before in its place, and not both", ids)
        if ids is None:
            if before is None or before > self.now + MAX_CLOCK_SKEW:  # in milliseconds it would be all
                raise InvalidInput.must(
                    "before", "erase", "a time in the past, in seconds since 1970", before
                )
            return request
        names = list(dict.fromkeys(ids))
        self.load_records(names)
        for id_ in names:
            if self._record(id_) is None:
                raise UnknownDecision.must("ids", "erase", "those of decisions", id_)
        return Erase(ids=names)

    # ------------------------------------------------------------ inside

    def _record(self, id_: str) -> DecisionRecord | None:
        """Return the decision with an id, as it was before the batch; raise why it cannot be read."""
        if id_ in self._damaged:
            raise self._damaged[id_]
        return self.projector.records.get(id_)

    def _eligible(self, request: DecisionRequest) -> tuple[str, ...] | None:
        """Return the labels that may be shown: the ones asked for, without disabled ones; None for all."""
        disabled = frozenset(self.projector.totals.settings.disabled)
        if not disabled:
            return request.eligible
        candidates = request.eligible or self.projector.learner.inputs.showable_labels
        eligible = tuple(str(label) for label in candidates if label not in disabled)
        if not eligible:
            wanted = "a list with labels that are not disabled"
            raise InvalidInput.must("eligible", "decision", wanted, request.eligible)
        return eligible


def _request_error(error: InvalidInput, part: str) -> InvalidInput:
    """Return the error of a learner about its row x as one about a part of a request: its features, its scores."""
    field = error.field or ""
    if field != "x" and not field.startswith("x["):
        return error
    name = part if field == "x" else f"{part}.{field[3:-2]}"
    return InvalidInput(f"{name} of decision must be {str(error).partition(' must be ')[2]}", field=name)
