"""Replay: apply the events of a journal again, and compare on the way.

Outcomes are learnt again in their order, by the Projector; every decision is made again with the model that it was
made with (as of event ``model_seq``), at its cursor; the model is compared with every kept snapshot. Another kind of
CPU may round the last bit of a sum differently: that is no damage; another set, or a propensity that differs by more
than rounding, may be.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from superarm._files import read_model
from superarm._progress import Progress, Tick, progress_bar
from superarm._types import Array
from superarm.decisions import Decision
from superarm.journal.create import import_user_learner
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import DECISION, DecisionBody, Event
from superarm.journal.projector import ContentErased, Projector
from superarm.journal.snapshots import model_bytes
from superarm.journal.store import JournalStore
from superarm.learners import Learner
from superarm.native.cursor import Cursor

READ_AHEAD = 2_048  # events that are read ahead: a process may decide with a model that is a moment old

# how a decision that was made again differs from the one in the journal
SAME, LAST_BITS, PROPENSITY, SET = "same", "last bits only", "propensity differs", "set or draw differs"
ROUNDING = 1e-5
NOT_IN_JOURNAL = {"format", "learner"}
ROUNDING_FIELDS = {"log_propensity", "rule"}  # may differ by rounding


@dataclass(slots=True, kw_only=True)
class ReplayResult:
    """The result of a replay."""

    learner: Learner  # the rebuilt model
    start: int  # the event of the snapshot that it started from
    events: int  # how many events it went through
    decisions: int = 0  # how many decisions were made again and compared
    sets_differ: int = 0  # those whose set differs
    propensities_differ: int = 0  # those whose propensity differs by more than 1e-5
    last_bits_differ: int = 0  # those that differ in the last bits only
    # decisions that were erased, or whose model cannot be rebuilt (say, beside erased ones)
    unchecked: int = 0
    snapshots_same: tuple[int, ...] = ()  # later snapshots that came out bit for bit the same
    snapshots_near: tuple[int, ...] = ()  # ... the same but for rounding
    snapshots_different: tuple[int, ...] = ()  # ... different, or are damaged
    snapshots_loaded: tuple[int, ...] = ()  # loaded on the way, since events before them were erased
    sha256: str = ""  # of the model file

    @property
    def different(self) -> int:
        """Decisions that came out different, if only in the last bit."""
        return self.sets_differ + self.propensities_differ + self.last_bits_differ

    @property
    def snapshots(self) -> int:
        """How many later snapshots were compared."""
        return len(self.snapshots_same) + len(self.snapshots_near) + len(self.snapshots_different)

    @property
    def compared(self) -> bool:
        """Whether anything was compared at all: without that, a replay says nothing."""
        return self.decisions + self.snapshots > 0

    @property
    def same(self) -> bool:
        """Whether something was compared, and all of it came out the same, to the last bit."""
        return self.ok and not self.last_bits_differ and not self.snapshots_near

    @property
    def ok(self) -> bool:
        """Whether something was compared, and nothing differs but for rounding."""
        faults = self.sets_differ or self.propensities_differ or self.snapshots_different
        return self.compared and not faults


class Replay:
    """One replay, from a snapshot to the last event."""

    def __init__(self, store: JournalStore, *, from_start: bool, tick: Tick) -> None:
        self.store, self.tick = store, tick
        self.snapshot_seqs = [info.seq for info in store.snapshots()]
        self.until = store.head().seq
        # a snapshot of the last event, as a clean stop leaves it, has nothing after it to compare
        older = (seq for seq in self.snapshot_seqs if 0 < seq < self.until)
        start = 0 if from_start else next(older, 0)
        self.projector = Projector(store, store.snapshot(start))
        self.result = ReplayResult(learner=self.projector.learner, start=start, events=self.until - start)
        self._decisions_before = self.projector.totals.stats.decisions
        self._began = start  # where the projector has begun: at a snapshot
        self._due: dict[int, list[Event]] = {}  # decisions to be made again, by the event of their model
        self._unknown_model = -1  # a model whose cursor is not known any more
        self._past_projector: Projector | None = None  # for decisions of a process that was paused for long

    def run(self) -> ReplayResult:
        while self.projector.seq < self.until:
            try:
                self._compare_all()
            except ContentErased as erased:
                self.projector.load_next_snapshot(erased.seq, self.until)
        result = self.result
        result.learner = self.projector.learner
        result.snapshots_loaded = tuple(self.projector.loaded_snapshots)
        decisions = self.projector.totals.stats.decisions - self._decisions_before
        result.unchecked = decisions - result.decisions
        result.sha256 = hashlib.sha256(model_bytes(result.learner)).hexdigest()
        return result

    def _compare_all(self) -> None:
        """Project events, of which the next ones have been read, and compare all that was made with each model."""
        self._began, self._due = self.projector.seq, {}
        events = self.store.events(self._began, self.until)
        chunk, following = self._read(events), self._read(events)
        self._compare_here()
        while chunk:
            self.projector.project(chunk, after_each=self._compare_here)
            self.tick(len(chunk))
            chunk, following = following, self._read(events)

    def _read(self, events: Iterator[Event]) -> list[Event]:
        """Return the next events; their decisions are due when the projector reaches their models."""
        chunk = list(islice(events, READ_AHEAD))
        for event in chunk:
            if event.kind != DECISION:
                continue
            body = event.body
            if event.x is None:
                self._unknown_model = body.model_seq  # where its draw has left the cursor
            unknown = event.x is None or (body.model_seq == self._unknown_model and body.cursor is None)
            if unknown or body.model_seq < self._began:
                continue
            if body.model_seq < self.projector.seq:
                self._compare_old_decision(event, body.model_seq)
            else:
                self._due.setdefault(body.model_seq, []).append(event)
        return chunk

    def _compare_here(self) -> None:
        """Compare the current model with the decisions and the snapshot that are due at its event."""
        seq = self.projector.seq
        self._compare_decisions(self._due.pop(seq, []), self.projector.learner)
        if seq in self.snapshot_seqs and seq > self._began:
            self._compare_snapshot(seq)

    def _compare_decisions(self, events: list[Event], learner: Learner) -> None:
        """Make decisions of one model again, in their order, and compare them."""
        cursor, result = learner.cursor() if events else None, self.result
        for event in events:
            body = event.body
            if body.cursor is not None:
                cursor = Cursor(body.round, body.cursor)
            decision = learner.decide(
                event.row(),
                eligible=body.eligible,
                set_size=body.set_size,
                coverage=body.coverage,
                cursor=cursor,
            )
            difference = compare(decision, body)
            result.decisions += 1
            result.last_bits_differ += difference == LAST_BITS
            result.propensities_differ += difference == PROPENSITY
            result.sets_differ += difference == SET

    def _compare_old_decision(self, event: Event, model: int) -> None:
        """Compare a decision with a model that the projector has left behind."""
        if self._past_projector is None or self._past_projector.seq > model:
            best = max(seq for seq in self.snapshot_seqs if seq <= model)
            self._past_projector = Projector(self.store, self.store.snapshot(best))
        try:
            self._past_projector.catch_up(model)
        except JournalDamaged:  # say, what it needs was erased
            return
        self._compare_decisions([event], self._past_projector.learner)

    def _compare_snapshot(self, seq: int) -> None:
        """Compare the model with the snapshot of its event."""
        model, result = model_bytes(self.projector.learner), self.result
        try:
            snapshot = self.store.snapshot(seq).parts["model"]
        except JournalDamaged:
            snapshot = b""
        if model == snapshot:
            result.snapshots_same += (seq,)
        elif snapshot and nearly_same_model(model, snapshot):
            result.snapshots_near += (seq,)
        else:
            result.snapshots_different += (seq,)


# ---------------------------------------------------------------- rounding, or damage


def compare(decision: Decision, body: DecisionBody) -> str:
    """Return how a decision that was made again differs from the one in the journal."""
    values = decision.to_dict(row=False)
    different = {
        name for name, value in values.items() if name not in NOT_IN_JOURNAL and getattr(body, name) != value
    }
    if not different:
        return SAME
    if not different <= ROUNDING_FIELDS:
        return SET
    return LAST_BITS if all(_near(values[name], getattr(body, name)) for name in different) else PROPENSITY


def _near(a: Any, b: Any) -> bool:
    """Return whether two values are equal but for rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_near(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= ROUNDING * max(1.0, abs(a), abs(b))
    return bool(a == b)


def nearly_same_model(a: bytes, b: bytes) -> bool:
    """Return whether two model files differ by rounding alone: by at most 1e-3 of each array's largest.

    On another processor they do, and their headers say on which they were written.
    """
    (old_header, old), (new_header, new) = (read_model(io.BytesIO(content)) for content in (a, b))
    if not _near(old_header | {"cpu": ""}, new_header | {"cpu": ""}) or old.keys() != new.keys():
        return False
    return all(_near_arrays(array, new[name]) for name, array in old.items())


def _near_arrays(old: Array, new: Array) -> bool:
    if old.shape != new.shape or old.dtype != new.dtype:
        return False
    if old.dtype.kind != "f":
        return np.array_equal(old, new)
    return np.allclose(old, new, 0.0, 1e-3 * np.abs(old).max(initial=1e-30), equal_nan=True)


def replay(
    store: JournalStore,
    *,
    from_start: bool = False,
    learner: str | None = None,
    progress: Progress = None,
) -> ReplayResult:
    """Rebuild the model from the oldest snapshot before the last event, and compare it with all later ones.

    Args:
        store: open for reading.
        from_start: start with the first event.
        learner: ``file.py:Class``, if the journal's learner is in a file of yours.
        progress: True shows a bar; a function is called with the number of events since its last call.
    """
    import_user_learner(store.meta(), learner)
    with progress_bar(None, "events", progress=progress) as tick:
        return Replay(store, from_start=from_start, tick=tick).run()
