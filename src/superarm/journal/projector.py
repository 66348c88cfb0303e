"""Projector: events in, model and totals out. Nothing else moves a model.

Every process that serves a journal, replay, verify and shadows run these lines on the same events in the same order:
so they come to the same bits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import chain, islice

from superarm._types import JsonObject
from superarm.decisions import Decision
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.changes import change_of
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import CHANGE, DECISION, ERASURE, OUTCOME, TIMEOUT, DecisionBody, Event
from superarm.journal.records import DecisionRecord, Records, StagedEvent
from superarm.journal.shadows import Shadow, make_shadows
from superarm.journal.snapshots import learner_from_bytes
from superarm.journal.store import READ_BATCH, JournalStore, Snapshot
from superarm.journal.totals import Totals
from superarm.journal.update_batch import UpdateBatch
from superarm.learners import Learner


class ContentErased(Exception):
    """An event cannot be applied again: the content it needs was erased since."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq)
        self.seq = seq


class Projector:
    """The model and the totals after some event of a journal.

    Args:
        store: where decisions and snapshots are looked up.
        snapshot: where to begin.
        shadows: specs of learners that learn beside it; those that the snapshot does not have learn from the
            whole past first.

    Attributes:
        erase_content: erases content, before the events after the erasure are applied; None to erase nothing.
        learner, totals, shadows: as of event ``seq``.
        is_intact: False after an error in the midst of some events.
        loaded_snapshots: those that were loaded on the way, since events before them were erased.
    """

    def __init__(self, store: JournalStore, snapshot: Snapshot, shadows: Sequence[str] = ()) -> None:
        self.store = store
        self.erase_content: Callable[[Event], None] | None = None
        meta = store.meta()
        self._group_column: str | None = meta.get("group")
        self._promised: float | None = meta.get("coverage")
        self._spec = str(meta["learner"])
        self.records = Records(store)
        self.shadows: dict[str, Shadow] = {}
        self.loaded_snapshots: list[int] = []
        self.load(snapshot)
        if shadows:
            self.shadows = self._load_shadows(shadows, snapshot)

    @classmethod
    def newest(cls, store: JournalStore, shadows: Sequence[str] = ()) -> tuple[Projector, list[int]]:
        """Return a projector as of the newest snapshot that can be read, and the snapshots that cannot be."""
        broken: list[int] = []
        for info in reversed(store.snapshots()):
            try:
                return cls(store, store.snapshot(info.seq), shadows), broken
            except JournalDamaged:  # an older one, and more events, give the same bits
                broken.append(info.seq)
        raise JournalDamaged(f"journal {store.name} has no snapshot that can be read")

    def load(self, snapshot: Snapshot) -> None:
        """Take over a snapshot."""
        self._set_learner(learner_from_bytes(snapshot.parts["model"]))
        self._staged: list[StagedEvent] = []  # those that the next `_learn_staged` learns and counts
        self.totals = Totals.from_dict(snapshot.totals)
        self.seq, self.is_intact = snapshot.seq, True
        self.records.clear()

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.learner.labels is not None
        return self.learner.labels

    def copy(self) -> Projector:
        """Return a copy that stays as it is now."""
        other = copy.copy(self)
        other.learner, other.totals, other.shadows = copy.deepcopy((self.learner, self.totals, self.shadows))
        return other

    def reports(self) -> list[JsonObject]:
        """Return the estimated hit rates of top sets: the model's, and its shadows'."""
        report = self.totals.estimate.report(self._spec, self.totals.stats.learnt)
        return [report, *(shadow.report() for shadow in self.shadows.values())]

    # ------------------------------------------------------------ moving on

    def catch_up(
        self,
        until: int | None = None,
        on_progress: Callable[[int], object] | None = None,
        following: Sequence[Event] = (),
    ) -> None:
        """Project the events up to ``until``, or to the end; erased ones by way of the next snapshot.

        Args:
            until: the number of the last event to project.
            on_progress: called with the number of events projected since the last call.
            following: the events after ``until``, which need not be read.
        """
        while True:
            events = chain(self.store.events(self.seq, until), following)
            try:
                while chunk := list(islice(events, READ_BATCH)):
                    self.project(chunk)
                    if on_progress is not None:
                        on_progress(len(chunk))
                return
            except ContentErased as erased:
                if following:  # the next snapshot may be of a later event
                    until, following = None, ()
                self.load_next_snapshot(erased.seq, until)

    def load_next_snapshot(self, seq: int, until: int | None) -> None:
        """Go on from the first snapshot after an event whose content was erased."""
        for info in self.store.snapshots():
            if max(seq, self.seq) <= info.seq and (until is None or info.seq <= until):
                snapshot = self.store.snapshot(info.seq)
                self.load(snapshot)
                for name in self.shadows.keys() & snapshot.parts.keys():
                    self.shadows[name] = Shadow.from_bytes(self.shadows[name].spec, snapshot.parts[name])
                self.loaded_snapshots.append(info.seq)
                return
        raise JournalDamaged(f"event {seq} was erased, and no snapshot after it is left", event=seq)

    def project(self, events: Sequence[Event]) -> None:
        """Apply these events, the next ones in order."""
        self._prefetch(events)
        self.is_intact = False  # an error from here on leaves some of them applied
        for event in events:
            kind = event.kind
            if kind == DECISION:
                self._on_decision(event)
            elif kind in (OUTCOME, TIMEOUT):
                self._on_outcome(event)
            else:
                self._learn_staged()
                if kind == CHANGE:
                    self._on_change(event)
                self.seq = event.seq
                if kind == ERASURE and self.erase_content is not None:
                    self.erase_content(event)
        self._learn_staged()
        if events:
            self.seq = events[-1].seq
        self.is_intact = True
        self.records.trim()

    # ------------------------------------------------------------ each kind of event

    def _on_decision(self, event: Event) -> None:
        if event.x is None:
            raise ContentErased(event.seq)
        record = DecisionRecord(event)
        try:
            self._updates.add_decision(event)
        except InvalidInput as error:  # it cannot follow the first row; a service writes no such decision
            self.totals.refuse(event.seq, str(error), error.field)
            self.totals.stats.refused += 1
        else:
            self._staged.append(StagedEvent(event, record))
        body = event.body
        self.totals.stats.count_decision(event.time, body.labels, body.top, record.propensity)
        self.records.put(record)

    def _on_outcome(self, event: Event) -> None:
        """Stage an outcome or a timeout; the next `_learn_staged` learns it."""
        record = self._record(event)
        expired, erased, feedback = record.timeout, record.event.erased, self.learner.feedback
        hit, label = event.body.hit, event.body.label
        if event.kind == OUTCOME:
            record.outcome = event
        elif record.outcome is None and expired is None:
            record.timeout = event
        else:
            return  # a timeout that comes too late to mean anything
        named = self._can_learn_label(record.body, label)
        learns, default_learnt = hit is not None and not self.totals.settings.frozen, False
        if learns and expired is not None:
            self._learn_staged()  # whether the default was learnt must be known
            default_learnt = self.was_learnt(expired, record)
            if default_learnt:
                self._count_late_answer(record, hit, label if named else None)
            learns = not default_learnt or self._says_more(event, expired, record)
        staged = StagedEvent(event, record, learns)
        if learns and record.event.seq in self.totals.refused_seqs:
            staged.refusal = "its decision was refused"
        elif learns and record.event.x is None:
            if erased is not None and erased > event.seq:
                raise ContentErased(event.seq)
            staged.refusal = "its features were erased"
        elif learns and default_learnt:
            staged.refusal = self._learn_correction(record, hit, label if named else None)
        elif learns and not named and "hit" not in feedback:
            staged.refusal = "the label is disabled"
        elif learns:
            self._updates.add_answer(staged, label if named else None)
        self._staged.append(staged)

    def was_learnt(self, event: Event, record: DecisionRecord) -> bool:
        """Return whether an outcome or a timeout that was projected has moved the model."""
        totals = self.totals
        if (
            event.body.hit is None
            or event.seq in totals.refused_seqs
            or totals.settings.was_frozen_at(event.seq)
        ):
            return False
        expired = record.timeout if event.kind == OUTCOME else None
        return (
            expired is None or not self.was_learnt(expired, record) or self._says_more(event, expired, record)
        )

    def _says_more(self, outcome: Event, expired: Event, record: DecisionRecord) -> bool:
        """Return whether there is more to learn from a late outcome than from the default of the timeout."""
        late = outcome.body
        return late.hit != expired.body.hit or self._can_learn_label(record.body, late.label)

    def _can_learn_label(self, body: DecisionBody, label: str | None) -> bool:
        """Return whether a label was named that can be learnt; one that could not be shown then is only a miss."""
        if label is None or "label" not in self.learner.feedback:
            return False
        if body.eligible is not None:
            return label in body.eligible
        return self._updates.number.get(label, body.n_labels) < body.n_labels

    def _as_given(self, record: DecisionRecord) -> Decision:
        """Return the decision as a set that another learner chose; labels that came later were not eligible."""
        body, eligible = record.body, record.body.eligible
        if eligible is None and body.n_labels < len(self.labels):
            eligible = list(self.labels[: body.n_labels])
        return Decision.given(
            record.event.row(),
            body.drawn,
            record.propensity or None,
            top=body.top,
            eligible=eligible,
            rule=body.rule,
        )

    def _count_late_answer(self, record: DecisionRecord, hit: bool, label: str | None) -> None:
        """Count an answer for the promise, which the default that was learnt before it has not moved."""
        learner = self.learner
        number = -1 if label is None else self._updates.number[label]
        learner.rule.count_answer(learner.core.rule, record.event.draw_log(learner), hit, number)

    def _learn_correction(self, record: DecisionRecord, hit: bool, label: str | None) -> str | None:
        """Learn the outcome of a decision whose default was learnt before; return why that was not possible."""
        learner = self.learner
        try:
            given = self._as_given(record)
            given.draw_log = learner.rule.without_promise(record.event.draw_log(learner)).tobytes()
            if (label is None and "hit" not in learner.feedback) or not learner.learns_from(given):
                return f"{learner.owner} learns from an answer once, and from no set but its own"
            if label is None:
                learner.update(given, hit=hit)
            else:
                learner.update(given, label=label)
        except SuperarmError as error:
            return str(error)
        return None

    def _on_change(self, event: Event) -> None:
        change = change_of(event)
        try:
            learner = change.apply(self.totals.settings, self.learner, event.seq, self.store)
        except InvalidInput as error:  # of two processes that changed the same, the second
            self.totals.refuse(event.seq, str(error), error.field)
            return
        if learner is not None:
            self._set_learner(learner)
        for shadow in self.shadows.values():
            shadow.add_labels(self.labels)

    def _set_learner(self, learner: Learner) -> None:
        self.learner, self._updates = learner, UpdateBatch(learner)

    def _learn_staged(self) -> None:
        """Learn what was gathered, in one compiled loop, and count it."""
        self._updates.apply()
        for staged in self._staged:
            if staged.event.kind == DECISION:
                for shadow in self.shadows.values():
                    shadow.on_decision(staged.event)
            else:
                self._count_outcome(staged)
        self._staged.clear()

    def _count_outcome(self, staged: StagedEvent) -> None:
        event, record, outcome, shown = staged.event, staged.record, staged.event.body, staged.record.body
        tops: dict[str, Sequence[str] | None] = {}  # of the shadows
        if staged.refusal is not None:
            self.totals.refuse(event.seq, staged.refusal)
        if event.kind == TIMEOUT:
            self.totals.stats.count_timeout(staged)
        else:
            self.totals.stats.count_outcome(staged)
            tops = {name: shadow.take_top(record.event.seq) for name, shadow in self.shadows.items()}
        if record.event.x is None:
            return
        if event.kind == OUTCOME:
            self.totals.estimate.add(shown.top, shown.labels, shown.log_propensity, outcome.hit)
            if self._counts_for_promise(shown.rule) and not self.totals.settings.frozen:
                self.totals.stats.count_for_promise(
                    outcome.hit, len(shown.labels), outcome.label, record.group(self._group_column)
                )
        was_refused = record.event.seq in self.totals.refused_seqs
        if self.shadows and not self.totals.settings.frozen and not was_refused:
            try:
                given = self._as_given(record)
            except Exception as error:  # nothing that shadows need may disturb the service
                for shadow in self.shadows.values():
                    shadow.stop_reason = shadow.stop_reason or repr(error)
                return
            for name, shadow in self.shadows.items():
                shadow.on_outcome(staged, given, tops.get(name))

    def _counts_for_promise(self, rule: JsonObject | None) -> bool:
        """Return whether the rule has warmed up, and has the coverage of the journal."""
        promised = self._promised
        return rule is None or (rule.get("counts", True) and rule.get("coverage", promised) == promised)

    def _prefetch(self, events: Sequence[Event]) -> None:
        """Load the earlier decisions that these events are about."""
        here = {event.id for event in events if event.kind == DECISION}
        outcomes = (event.id for event in events if event.kind in (OUTCOME, TIMEOUT))
        self.records.load((id_ for id_ in outcomes if id_ not in here), self.seq)

    def _record(self, event: Event) -> DecisionRecord:
        record = self.records.get(event.id)
        if record is None:  # an erasure or a rollback has come in between
            self.records.load([event.id], event.seq - 1)
            record = self.records.get(event.id)
        if record is None:
            raise JournalDamaged(f"decision {event.id}, which was answered, is missing")
        return record

    # ------------------------------------------------------------ shadows

    def _load_shadows(self, specs: Sequence[str], snapshot: Snapshot) -> dict[str, Shadow]:
        new_shadows = make_shadows(specs, self.learner)
        loaded = {
            name: Shadow.from_bytes(shadow.spec, snapshot.parts[name])
            for name, shadow in new_shadows.items()
            if name in snapshot.parts
        }
        new = [shadow.spec for name, shadow in new_shadows.items() if name not in loaded]
        if new:
            past = Projector(self.store, self.store.snapshot(0))
            past.shadows = make_shadows(new, past.learner)
            past.catch_up(snapshot.seq)
            loaded |= past.shadows
        return {name: loaded[name] for name in new_shadows}
