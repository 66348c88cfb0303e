"""Projector: events in, model and totals out. Nothing else moves a model.

The process that serves a file, the one that learns on PostgreSQL, replay, verify, shadows and rebuilding run these
lines on the same events in the same order: so they come to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from math import exp
from typing import Any, NamedTuple

from superarm.decisions import Decision
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.changes import LabelSettings, check_change
from superarm.journal.errors import JournalDamaged, JournalForeign, Refused
from superarm.journal.events import CHANGE, DECISION, ERASURE, OUTCOME, TIMEOUT, Event
from superarm.journal.records import DecisionRecord, Records
from superarm.journal.shadows import HitRateEstimate, Shadow, make_shadows
from superarm.journal.snapshots import learner_from
from superarm.journal.stats import Stats
from superarm.journal.store import Snapshot, Store
from superarm.learners.registry import parse
from superarm.learners.restoring import Restorer, is_answered

__all__ = ["ErasedPast", "Projector", "first_totals", "load_class"]

AT_ONCE = 4_000  # events that are read at once
MOST_REFUSED = 1_000  # refusals that are remembered


class ErasedPast(Exception):
    """What an event did cannot be done again: the content it needs was erased since."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq)
        self.seq = seq


class Lesson(NamedTuple):
    """What is to be learnt from an outcome or a timeout."""

    event: Event
    record: DecisionRecord
    late: bool
    teaches: str  # "hit", "label", or "" for nothing
    value: Any
    refused: str | None  # why it teaches nothing


def load_class(meta: dict[str, Any], learner: str | None) -> None:
    """A learner in a user's own file must be imported before it can be loaded, by the user's word alone."""
    spec = str(meta["learner"])
    if spec.partition(":")[0].endswith(".py"):
        if learner is None:
            wanted = f"given: it is in a file ({spec}), and a journal's word is not enough to run one"
            raise JournalForeign.must("--learner", "superarm", wanted, None)
        parse(learner)


def first_totals(labels: Sequence[str]) -> dict[str, Any]:
    """The totals before the first event."""
    none = {"settings": LabelSettings().to_dict(), "refused": {}}
    return {"stats": Stats(labels).to_dict(), "estimate": HitRateEstimate().to_dict(), **none}


class Projector:
    """What the events of a journal have made, up to one of them.

    Args:
        store: where decisions and snapshots are looked up.
        snapshot: where to begin.
        shadows: specs of learners that learn beside it; those that the snapshot does not have learn from the
            whole past first.
        on_erasure: erases what an erasure names, before anything after it happens; None for those who only look.

    Attributes:
        learner, stats, settings, shadows: as of event ``seq``.
        refused: changes and outcomes that had no effect, by their events, with the reason.
        jumps: snapshots that were taken over, since events before them were erased.
    """

    def __init__(
        self,
        store: Store,
        snapshot: Snapshot,
        shadows: Sequence[str] = (),
        on_erasure: Callable[[Event], None] | None = None,
    ) -> None:
        self.store, self.on_erasure = store, on_erasure
        self.records = Records()
        self.shadows: dict[str, Shadow] = {}
        self.jumps: list[int] = []
        self.teaches_model = True
        self._restorer: Restorer | None = None
        self.load(snapshot)
        if shadows:
            self.shadows = self._load_shadows(shadows, snapshot)

    @classmethod
    def newest(cls, store: Store, **options: Any) -> tuple[Projector, list[int]]:
        """As of the newest snapshot that can be read, and the snapshots that cannot be."""
        broken: list[int] = []
        for note in reversed(store.snapshots()):
            try:
                return cls(store, store.snapshot(note.seq), **options), broken
            except JournalDamaged:  # an older one, and more events, give the same bits
                broken.append(note.seq)
        raise JournalDamaged(f"journal {store.name} has no snapshot that can be read")

    def load(self, snapshot: Snapshot) -> None:
        """Take over a snapshot."""
        self.learner = learner_from(snapshot.parts["model"])
        totals = snapshot.totals
        self.stats = Stats.from_dict(self.labels, totals["stats"])
        self.settings = LabelSettings.from_dict(totals["settings"])
        self.estimate = HitRateEstimate.from_dict(totals["estimate"])
        self.refused: dict[int, list[str | None]] = {int(seq): why for seq, why in totals["refused"].items()}
        self.seq = snapshot.seq
        self.records.clear()

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.learner.labels is not None
        return self.learner.labels

    def totals(self) -> dict[str, Any]:
        """What a snapshot keeps beside the learner."""
        return {
            "stats": self.stats.to_dict(),
            "settings": self.settings.to_dict(),
            "estimate": self.estimate.to_dict(),
            "refused": {str(seq): why for seq, why in self.refused.items()},
        }

    def reports(self) -> list[dict[str, Any]]:
        """Estimated hit rates of top sets: the model's, and its shadows'."""
        own = self.estimate.report(str(self.store.meta()["learner"]), self.stats.learnt)
        return [asdict(one) for one in (own, *(shadow.report() for shadow in self.shadows.values()))]

    # ------------------------------------------------------------ moving on

    def catch_up(self, until: int | None = None, tick: Callable[[int], object] | None = None) -> None:
        """Move on to event ``until``, or to the end; over erased events by way of the next snapshot."""
        until = self.store.head().seq if until is None else until
        while self.seq < until:
            events = self.store.events(self.seq, until)
            try:
                for chunk in chunks(events, AT_ONCE):
                    self.project(chunk)
                    if tick is not None:
                        tick(len(chunk))
            except ErasedPast as erased:
                self.jump(erased.seq, until)

    def jump(self, seq: int, until: int) -> None:
        """Go on from the first snapshot after an event whose content was erased."""
        for note in self.store.snapshots():
            if max(seq, self.seq) <= note.seq <= until:
                self.load(self.store.snapshot(note.seq))
                self.jumps.append(note.seq)
                return
        raise JournalDamaged(f"event {seq} was erased, and no snapshot after it is left", event=seq)

    def project(self, events: Sequence[Event]) -> None:
        """Make all that these events, the next ones in order, do."""
        self._prefetch(events)
        run: list[Lesson] = []  # outcomes that are learnt in one call
        for event in events:
            if event.kind in (OUTCOME, TIMEOUT):
                record = self.records.get(event.id)
                if record is None:  # an erasure or a rollback has come in between
                    record = self._fetch([event.id], event.seq - 1)
                if record.timeout is not None:  # whether that was learnt must be known
                    run = self._learn(run)
                lesson = self._lesson(event, record)
                if lesson is not None:
                    if run and run[0].teaches != lesson.teaches:
                        run = self._learn(run)
                    run.append(lesson)
                continue
            run = self._learn(run)
            if event.kind == DECISION:
                self._decided(event)
            elif event.kind == CHANGE:
                self._changed(event)
            self.seq = event.seq
            if event.kind == ERASURE and self.on_erasure is not None:
                try:
                    self.on_erasure(event)
                except BaseException:  # it comes again, with the next attempt
                    self.seq = event.seq - 1
                    raise
        self._learn(run)
        if events:
            self.seq = events[-1].seq
        self.records.trim()

    def was_learnt(self, event: Event | None) -> bool | None:
        """Whether an outcome or a timeout has moved the model; None if it has not come to that yet."""
        if event is None or event.seq > self.seq:
            return None
        return learnt(event, self.records.get(event.id), self.settings, self.refused)

    # ------------------------------------------------------------ each kind of event

    def _decided(self, event: Event) -> None:
        if self.teaches_model:
            if event.x is None:
                raise ErasedPast(event.seq)
            self.learner.advance(event.to_decision(self.learner.id, self._restoring()))
        made = event.body["decision"]
        log = made["log_propensity"]
        self.stats.decision(event.time, made["labels"], made["top"], None if log is None else exp(log))
        self.records.put(DecisionRecord(event))

    def _changed(self, event: Event) -> None:
        change = event.body
        snapshots = [note.seq for note in self.store.snapshots()] if change["what"] == "rollback" else []
        try:
            if check_change(change, self.learner, self.settings.disabled, self.settings.frozen, snapshots):
                self.learner = self.settings.apply(self.learner, change, event.seq, self.store.snapshot)
        except (Refused, InvalidInput) as error:  # of two processes that changed the same, the second
            self._refuse(event.seq, str(error), error.field)
            return
        if change["what"] == "rollback":  # what is in memory has rows in the layout of the model that was
            self.records.clear()
        self.stats.grow(self.labels)
        for shadow in self.shadows.values():
            shadow.change(change)

    def _lesson(self, event: Event, record: DecisionRecord) -> Lesson | None:
        """What an outcome or a timeout teaches; None if it comes too late to mean anything."""
        timeout, body = event.kind == TIMEOUT, event.body
        if timeout and (record.outcome is not None or record.timeout is not None):
            return None
        expired = record.timeout
        late = expired is not None
        default_learnt = late and learnt(expired, record, self.settings, self.refused)
        if timeout:
            record.timeout = event
        else:
            record.outcome = event
        hit, label, erased = body["hit"], body.get("label"), record.event.erased
        eligible, feedback = record.made["eligible"], self.learner.feedback
        refused = None
        # of a label that was disabled when the set was made, the learner hears that it was not shown
        named = label is not None and "label" in feedback and (eligible is None or label in eligible)
        teaches, value = ("label", label) if named else ("hit", hit)
        if hit is None or default_learnt or self.settings.frozen:
            teaches = ""
        elif record.event.x is None:
            if self.teaches_model and erased is not None and erased > event.seq:
                raise ErasedPast(event.seq)
            teaches, refused = "", "its features were erased"
        elif not named and "hit" not in feedback:
            teaches, refused = "", "the label is disabled"
        return Lesson(event, record, late, teaches, value, refused)

    def _learn(self, run: list[Lesson]) -> list[Lesson]:
        """Learn from lessons of one kind in one call, and count them; an empty list for the next ones."""
        if not run:
            return run
        teaches = run[0].teaches
        if teaches and self.teaches_model:
            decisions = [self._decision(one.record) for one in run]
            values = [one.value for one in run]
            try:
                if teaches == "label":
                    self.learner.update_many(decisions, labels=values)
                else:
                    self.learner.update_many(decisions, values)
            except SuperarmError:  # at one of them: all before it are learnt
                run = [self._learn_one(*both) for both in zip(run, decisions, strict=True)]
        for one in run:
            self._count(one)
        return []

    def _learn_one(self, lesson: Lesson, decision: Decision) -> Lesson:
        if not is_answered(self.learner, decision):
            try:
                self.learner.update(decision, **{lesson.teaches: lesson.value})
            except SuperarmError as error:  # the learner is as before; the outcome is kept all the same
                return lesson._replace(teaches="", refused=str(error))
        return lesson

    def _decision(self, record: DecisionRecord) -> Decision:
        event = record.event
        k = event.body["k"]
        if event.decision is None and k < len(self.labels) and record.made["eligible"] is None:
            # labels have come since: which there were, the record itself tells
            made = {**event.body["decision"], "eligible": list(self.labels[:k])}
            event._body = {**event.body, "decision": made}
        return event.to_decision(self.learner.id, self._restoring())

    def _restoring(self) -> Restorer:
        if self._restorer is None or not self._restorer.fits(self.learner):
            self._restorer = Restorer(self.learner)
        return self._restorer

    def _count(self, lesson: Lesson) -> None:
        event, record, late, teaches, _, refused = lesson
        made, body = record.made, event.body
        if refused is not None:
            self._refuse(event.seq, refused, None)
        taught, timeout = bool(teaches), event.kind == TIMEOUT
        if timeout:
            self.stats.timeout(taught, refused is not None)
        else:
            age = max(0.0, event.time - record.event.time)
            self.stats.outcome(
                event.time, age, made["labels"], body["hit"], late, taught, refused is not None
            )
        if record.event.x is None:
            return
        if not timeout:
            self.estimate.add(made["top"], made["labels"], made["log_propensity"], body["hit"])
        if self.shadows and not self.settings.frozen:
            default = record.timeout.body["hit"] if late and record.timeout is not None else None
            decision = self._decision(record)
            for shadow in self.shadows.values():
                shadow.outcome(decision, body["hit"], body.get("label"), timeout=timeout, default=default)

    def _refuse(self, seq: int, reason: str, field: str | None) -> None:
        self.refused[seq] = [reason, field]
        if len(self.refused) > MOST_REFUSED:
            del self.refused[next(iter(self.refused))]

    def _prefetch(self, events: Sequence[Event]) -> None:
        """Have all decisions at hand that are answered here and were made earlier."""
        here = {event.id for event in events if event.kind == DECISION}
        wanted = dict.fromkeys(event.id for event in events if event.kind in (OUTCOME, TIMEOUT))
        missing = [id_ for id_ in wanted if id_ not in here and id_ not in self.records]
        if missing:
            self._fetch(missing, self.seq)

    def _fetch(self, ids: Sequence[str], until: int) -> DecisionRecord:
        """Read decisions as they were after an event; the last of them."""
        found = self.store.find(ids)
        record: DecisionRecord | None = None
        for id_ in ids:
            record = DecisionRecord.of(event for event in found.get(id_, ()) if event.seq <= until)
            if record is None:
                raise JournalDamaged(f"decision {id_}, which was answered, is missing")
            self.records.put(record)
        assert record is not None  # nobody asks for none
        return record

    # ------------------------------------------------------------ shadows

    def _load_shadows(self, specs: Sequence[str], snapshot: Snapshot) -> dict[str, Shadow]:
        made = make_shadows(specs, self.learner)
        kept = {
            name: Shadow.from_bytes(one.spec, snapshot.parts[name])
            for name, one in made.items()
            if name in snapshot.parts
        }
        new = [one.spec for name, one in made.items() if name not in kept]
        if new:
            past = Projector(self.store, self.store.snapshot(0))
            past.teaches_model = False
            past.shadows = make_shadows(new, past.learner)
            past.catch_up(snapshot.seq)
            kept |= past.shadows
        return {name: kept[name] for name in made}


def learnt(
    event: Event | None,
    record: DecisionRecord | None,
    settings: LabelSettings,
    refused: dict[int, list[str | None]],
) -> bool:
    """Whether an outcome or a timeout that was projected has moved the model."""
    if event is None or event.body["hit"] is None:
        return False
    if event.seq in refused or settings.frozen_at(event.seq):
        return False
    if event.kind == OUTCOME and record is not None and record.timeout is not None:
        return not learnt(record.timeout, record, settings, refused)
    return True


def chunks(events: Iterator[Event], size: int) -> Iterator[list[Event]]:
    while chunk := list(islice(events, size)):
        yield chunk
