"""The same bits again: a learner and its totals, moved on by the events of a journal."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superarm.decision import Decision
from superarm.errors import WeightsOverflow
from superarm.learners import Learner, load
from superarm.learners.registry import parse
from superarm.service.core.events import DECISION, OUTCOME, Event, same_decision, to_decision, unpack_row
from superarm.service.core.faults import JournalForeign
from superarm.service.core.journal import Journal, Snapshot
from superarm.service.core.stats import Stats

__all__ = ["Model", "Replayed", "model_bytes", "replay"]


def model_bytes(learner: Learner) -> bytes:
    """What `Learner.save` writes."""
    with tempfile.TemporaryDirectory(prefix="superarm-") as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        return path.read_bytes()


def learner_from(data: bytes) -> Learner:
    with tempfile.TemporaryDirectory(prefix="superarm-") as folder:
        path = Path(folder) / "model.npz"
        path.write_bytes(data)
        return load(path)


class Model:
    """A learner, its totals, and the number of the event after which they stand."""

    def __init__(self, journal: Journal, snapshot: Snapshot) -> None:
        meta = journal.meta()
        if not meta:
            raise JournalForeign(f"journal {journal.path} is empty: no service has started on it")
        parse(meta["learner"])  # a learner in a user's own file must be imported before it can be loaded
        self.journal = journal
        self.learner = learner_from(snapshot.model)
        self.stats = Stats.from_dict(meta["labels"], snapshot.stats)
        self.seq = snapshot.seq
        self.different = 0  # decisions that did not come out as they were kept
        self._open: dict[int, tuple[float, dict[str, Any], Decision]] = {}

    def catch_up(self, *, until: int | None = None, tick: Callable[[int], object] | None = None) -> None:
        """Move on to event ``until``, or to the end."""
        since = 0
        for event in self.journal.events(self.seq, until):
            self.redo(event)
            since += 1
            if tick is not None and since == 1000:
                tick(since)
                since = 0
        if tick is not None:
            tick(since)

    def redo(self, event: Event) -> None:
        """What the service did when it wrote this event."""
        body = event.body
        if event.kind == DECISION:
            assert event.x is not None
            x = unpack_row(event.x, body["width"])
            made = self.learner.decide(x, eligible=body["eligible"], set_size=body["asked"])
            self.different += not same_decision(made, body)
            # what was shown counts, should it ever differ
            decision = to_decision(event.x, body, self.learner.id)
            self._open[event.seq] = event.time, body, decision
            self.stats.decision(event.time, body["labels"], body["top"], decision.propensity)
        else:
            at, shown, decision = self._taken(body["of"])
            if body["learnt"]:
                try:
                    answer = body["taught"]
                    self.learner.update(decision, **answer)
                except WeightsOverflow:
                    self.different += 1
            if event.kind == OUTCOME:
                self.stats.outcome(event.time, event.time - at, shown["labels"], body)
            else:
                self.stats.timeout(body)
                self._open[body["of"]] = at, shown, decision
        self.seq = event.seq

    def _taken(self, seq: int) -> tuple[float, dict[str, Any], Decision]:
        if seq in self._open:
            return self._open.pop(seq)
        event = self.journal.event(seq)
        body = event.body
        return event.time, body, to_decision(event.x, body, self.learner.id)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    learner: Learner
    start: int  # the event of the snapshot it began with
    events: int  # how many it replayed
    different: int  # decisions that did not come out as they were kept
    checked: tuple[int, ...]  # later snapshots that were met on the way, bit for bit
    broken: tuple[int, ...]  # later snapshots that were not
    sha256: str  # of the model file

    @property
    def same(self) -> bool:
        """Whether every decision and every snapshot came out the same, to the last bit."""
        return not self.different and not self.broken


def replay(
    journal: Journal, *, from_start: bool = False, tick: Callable[[int], object] | None = None
) -> Replayed:
    """Rebuild the model from the oldest kept snapshot, and check it against all later ones.

    Args:
        journal: open for reading.
        from_start: begin with the very first event, out of the archives.
        tick: called with the number of events done since the last call.
    """
    kept = journal.snapshots()
    if not kept:
        raise JournalForeign(f"journal {journal.path} is empty: no service has started on it")
    archived = journal.archived()
    start = 0 if from_start else next(seq for seq in kept if seq >= archived)
    model = Model(journal, journal.snapshot(start))
    checked: list[int] = []
    broken: list[int] = []
    for seq in [*(seq for seq in kept if seq > start), None]:
        model.catch_up(until=seq, tick=tick)
        if seq is not None:
            good = journal.snapshot(seq).model == model_bytes(model.learner)
            (checked if good else broken).append(seq)
    digest = hashlib.sha256(model_bytes(model.learner)).hexdigest()
    return Replayed(
        model.learner, start, model.seq - start, model.different, tuple(checked), tuple(broken), digest
    )
