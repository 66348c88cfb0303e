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
from superarm.journal.events import CHANGE, DECISION, ERASURE, OUTCOME, TIMEOUT, Event
from superarm.journal.learning import apply_decision, learn_outcome
from superarm.journal.records import DecisionRecord, RecordCache
from superarm.journal.shadows import Shadow, make_shadows
from superarm.journal.snapshots import learner_from_bytes, made_by, model_bytes
from superarm.journal.store import READ_BATCH, JournalStore, Snapshot
from superarm.journal.totals import Totals
from superarm.learners.answers import label_to_learn


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
        learner, totals, shadows: as of event ``seq``, whose digest is ``chain_digest``.
        is_intact: False after an error in the midst of some events.
        broken_snapshots: newer ones than that where it began, which cannot be read.
        loaded_snapshots: those that were loaded on the way, since events before them were erased.
    """

    def __init__(self, store: JournalStore, snapshot: Snapshot, shadows: Sequence[str] = ()) -> None:
        self.store = store
        self.erase_content: Callable[[Event], None] | None = None
        meta = store.meta()
        self._group_column: str | None = meta.get("group")
        self._promised: float | None = meta.get("coverage")
        self._spec = str(meta["learner"])
        self.records = RecordCache(store)
        self.broken_snapshots: tuple[int, ...] = ()
        self.loaded_snapshots: list[int] = []
        self.load(snapshot)
        self.shadows = make_shadows(shadows, self.learner)
        if new := self._load_shadows(snapshot):
            past = Projector(store, store.snapshot(0))
            past.shadows = make_shadows([self.shadows[name].spec for name in new], past.learner)
            past.catch_up(snapshot.seq)
            self.shadows |= past.shadows

    @classmethod
    def newest(cls, store: JournalStore, shadows: Sequence[str] = ()) -> Projector:
        """Return a projector as of the newest snapshot that can be read."""
        broken: list[int] = []
        for info in reversed(store.snapshots()):
            try:
                projector = cls(store, store.snapshot(info.seq), shadows)
                projector.broken_snapshots = tuple(broken)
                return projector
            except JournalDamaged:  # an older one, and more events, give the same bits
                broken.append(info.seq)
        raise JournalDamaged(f"journal {store.name} has no snapshot that can be read")

    def load(self, snapshot: Snapshot) -> None:
        """Take over the model and the totals of a snapshot."""
        self.learner = learner_from_bytes(snapshot.parts["model"])
        self.totals = Totals.from_dict(snapshot.totals)
        self.seq, self.chain_digest, self.is_intact = snapshot.seq, snapshot.chain_digest, True
        self.records.clear()

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.learner.labels is not None
        return self.learner.labels

    def snapshot(self, time: float) -> Snapshot:
        """Return a snapshot of what was projected; another thread may take it of a copy."""
        parts = {"model": model_bytes(self.learner)}
        parts |= {name: shadow.to_bytes() for name, shadow in self.shadows.items()}
        return Snapshot(self.seq, time, parts, self.totals.to_dict(), made_by(), self.chain_digest)

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

    def catch_up(self, until: int | None = None, following: Sequence[Event] = ()) -> None:
        """Project the events up to ``until``, or to the end; erased ones by way of the next snapshot.

        Args:
            until: the number of the last event to read.
            following: the events after it, which this process has just written and need not read.
        """
        while True:
            events = chain(self.store.events(self.seq, until, self.chain_digest), following)
            try:
                while chunk := list(islice(events, READ_BATCH)):
                    self.project(chunk)
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
                for name in self._load_shadows(snapshot):  # new ones go on without what they have missed
                    self.shadows[name].follow(self.learner)
                self.loaded_snapshots.append(info.seq)
                return
        raise JournalDamaged(f"event {seq} was erased, and no snapshot after it is left", event=seq)

    def project(self, events: Sequence[Event], after_each: Callable[[], object] | None = None) -> None:
        """Apply these events, the next ones in order; call ``after_each`` after each of them."""
        if events and not events[0].is_intact(self.chain_digest):
            seq = events[0].seq  # it was written after other events: the database went back, say
            raise JournalDamaged(f"event {seq} does not follow event {self.seq} as it was read", event=seq)
        self._prefetch(events)
        self.is_intact = False  # an error from here on leaves some of them applied
        for event in events:
            if event.kind == DECISION:
                self._on_decision(event)
            elif event.kind in (OUTCOME, TIMEOUT):
                self._on_outcome(event)
            elif event.kind == CHANGE:
                self._on_change(event)
            self.seq, self.chain_digest = event.seq, event.chain_digest
            if event.kind == ERASURE:
                if self.erase_content is not None:
                    self.erase_content(event)
                self.records.clear()
            if after_each is not None:
                after_each()
        self.is_intact = True
        self.records.trim()

    # ------------------------------------------------------------ each kind of event

    def _on_decision(self, event: Event) -> None:
        if event.x is None:
            raise ContentErased(event.seq)
        record, body = DecisionRecord(event), event.body
        try:
            apply_decision(self.learner, event)
        except InvalidInput as error:  # it cannot follow the first row; a service writes no such decision
            self.totals.refuse(event.seq, str(error), error.field)
            self.totals.stats.refused += 1
        else:
            for shadow in self.shadows.values():
                shadow.on_decision(event)
        self.totals.stats.count_decision(event.time, body.labels, body.top, record.propensity)
        self.records.put(record)

    def _on_outcome(self, event: Event) -> None:
        """Learn and count an outcome or a timeout."""
        record, stats = self._record(event), self.totals.stats
        # what it did to model and totals rests on content that was there then
        if (record.decision.erased or 0) > event.seq:
            raise ContentErased(event.seq)
        if event.kind == OUTCOME:
            record.outcome = event
        elif record.closed_by is None:
            record.timeout = event
        else:
            return  # a timeout that comes too late to mean anything
        label = self._label_to_learn(record, event.body.label)
        if self._learnt_default(record) is not None and self._can_be_learnt(event):
            # the default that was learnt before has not moved the promise
            learner = self.learner
            log = learner.rule.draw_log_of(record.decision.to_decision(learner.id))
            index = -1 if label is None else self.labels.index(label)
            learner.rule.count_answer(learner.ensure_core().kernel, log, event.body.hit, index)
        learns = self.was_learnt(record)
        refusal = self._learn(event, record, label) if learns else None
        if refusal is not None:
            self.totals.refuse(event.seq, refusal)
            stats.refused += 1
        stats.learnt += learns and refusal is None
        if event.kind == TIMEOUT:
            stats.timeouts += 1
        else:
            self._count_outcome(event, record)
        if self.shadows:
            self._show_to_shadows(event, record)

    def was_learnt(self, record: DecisionRecord) -> bool:
        """Return whether its outcome, or its timeout, has moved the model; before `_learn`, whether it is to."""
        event = record.closed_by
        if event is None or not self._can_be_learnt(event):
            return False
        default = self._learnt_default(record)
        if default is None:
            return True
        # a late outcome may say more than the default
        adds_label = self._label_to_learn(record, event.body.label) is not None
        return adds_label or event.body.hit != default

    def _can_be_learnt(self, event: Event) -> bool:
        """Return whether an outcome or a timeout says something, at a time of learning, and was not refused."""
        totals, seq = self.totals, event.seq
        is_ignored = seq in totals.refused_seqs or totals.settings.was_frozen_at(seq)
        return event.body.hit is not None and not is_ignored

    def _learnt_default(self, record: DecisionRecord) -> bool | None:
        """Return the default that was learnt, at the timeout, before a late outcome; None if none was."""
        timeout = record.earlier_timeout
        return None if timeout is None or not self._can_be_learnt(timeout) else timeout.body.hit

    def _label_to_learn(self, record: DecisionRecord, label: str | None) -> str | None:
        """Return the label that was named, if it can be learnt."""
        eligible = record.body.eligible or self.labels[: record.body.n_labels]
        return label_to_learn(self.learner, label, eligible)  # type: ignore[no-any-return]

    def _learn(self, event: Event, record: DecisionRecord, label: str | None) -> str | None:
        """Learn an outcome or a timeout, with the ``label`` that can be learnt; return why it is refused, or None."""
        learner, decision = self.learner, record.decision
        if decision.seq in self.totals.refused_seqs:
            return "its decision was refused"
        if decision.x is None:
            return "its features were erased"
        learnt = own = decision.to_decision(learner.id)
        is_correction = self._learnt_default(record) is not None
        takes_it = label is not None or "hit" in learner.feedback
        if not takes_it and not is_correction:
            return "the label is disabled"
        draw_log = None
        if is_correction or event.kind == TIMEOUT:  # a default, and what comes after it, move no promise
            draw_log = learner.rule.without_promise(learner.rule.draw_log_of(own))
        if is_correction:  # it has learnt from its own decision already
            try:
                learnt = self._as_given(record)
            except SuperarmError as error:
                return str(error)
            if not takes_it or not learner.learns_from(learnt):
                return f"{learner.owner} learns from an answer once, and from no set but its own"
        return learn_outcome(learner, learnt, event.body.hit, label, draw_log)

    def _as_given(self, record: DecisionRecord) -> Decision:
        """Return the decision as a set that another learner chose; labels that came later were not eligible."""
        body, eligible = record.body, record.body.eligible
        if eligible is None and body.n_labels < len(self.labels):
            eligible = list(self.labels[: body.n_labels])
        return Decision.given(
            record.decision.row(),
            body.drawn,
            record.propensity or None,
            top=body.top,
            eligible=eligible,
            rule=body.rule,
        )

    def _on_change(self, event: Event) -> None:
        change = change_of(event)
        try:
            learner = change.apply(self.totals.settings, self.learner, event.seq, self.store)
        except InvalidInput as error:  # of two processes that changed the same, the second
            self.totals.refuse(event.seq, str(error), error.field)
            return
        if learner is not None:
            self.learner = learner
        for shadow in self.shadows.values():
            shadow.follow(self.learner)

    def _count_outcome(self, event: Event, record: DecisionRecord) -> None:
        """Count an outcome, in time or late, with what the model's top set would have earned."""
        shown, totals = record.body, self.totals
        totals.stats.count_outcome(event, record)
        if record.decision.x is None:
            return
        totals.estimate.add(
            top=shown.top, shown=shown.labels, log_propensity=shown.log_propensity, hit=event.body.hit
        )
        rule, promised = shown.rule or {}, self._promised
        # whether it has warmed up, for the coverage of the journal
        is_counted = rule.get("counts", True) and rule.get("coverage", promised) == promised
        if is_counted and not totals.settings.frozen:
            group = record.group(self._group_column)
            totals.stats.count_for_promise(
                event.body.hit, size=len(shown.labels), right=event.body.label, group=group
            )

    def _prefetch(self, events: Sequence[Event]) -> None:
        """Load the earlier decisions that these events are about."""
        here = {event.id for event in events if event.kind == DECISION}
        outcomes = (event.id for event in events if event.kind in (OUTCOME, TIMEOUT))
        self.records.load((id_ for id_ in outcomes if id_ not in here), self.seq)

    def _record(self, event: Event) -> DecisionRecord:
        # it is not in memory if an erasure or a rollback has come in between
        record = self.records.find(event.id, event.seq - 1)
        if record is None:
            raise JournalDamaged(f"decision {event.id}, which was answered, is missing")
        return record

    # ------------------------------------------------------------ shadows

    def _show_to_shadows(self, event: Event, record: DecisionRecord) -> None:
        """Let shadows learn an outcome or a timeout."""
        decision, given = record.decision, None
        is_refused = decision.seq in self.totals.refused_seqs
        if decision.x is not None and not (is_refused or self.totals.settings.frozen):
            try:
                given = self._as_given(record)
            except Exception as error:  # nothing that shadows need may disturb the service
                for shadow in self.shadows.values():
                    shadow.stop_reason = shadow.stop_reason or repr(error)
        for shadow in self.shadows.values():
            top = shadow.take_top(decision.seq) if event.kind == OUTCOME else None
            if given is not None:
                shadow.on_outcome(event, record, given, top, self._learnt_default(record))

    def _load_shadows(self, snapshot: Snapshot) -> list[str]:
        """Take over the shadows of a snapshot; return the names of those that it does not have."""
        for name, shadow in self.shadows.items():
            if name in snapshot.parts:
                self.shadows[name] = Shadow.from_bytes(shadow.spec, snapshot.parts[name])
        return [name for name in self.shadows if name not in snapshot.parts]
