"""Rebuild the model from a journal, and compare on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from superarm.learners import Learner
from superarm.service.core.compare import BITS, ODDS, SETS, nearly_same_model
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.journal import Journal
from superarm.service.core.model import Model, load_class
from superarm.service.core.snapshots import model_bytes

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    learner: Learner
    start: int  # the event of the snapshot it began with
    events: int  # how many it passed
    sets: int  # decisions whose set differs
    odds: int  # ... whose odds differ by more than 1e-5
    bits: int  # ... that differ in the last bits only
    checked: tuple[int, ...]  # later snapshots that were met on the way, bit for bit
    near: tuple[int, ...]  # ... but for roundings
    broken: tuple[int, ...]  # ... that were not met, or are damaged
    jumps: tuple[int, ...]  # snapshots taken on trust, since events before them were erased
    sha256: str  # of the model file

    @property
    def different(self) -> int:
        """Decisions that did not come out as they were kept, to the last bit."""
        return self.sets + self.odds + self.bits

    @property
    def same(self) -> bool:
        """Whether every decision and every snapshot came out the same, to the last bit."""
        return not self.different and not self.broken and not self.near

    @property
    def sound(self) -> bool:
        """Whether nothing differs but roundings."""
        return not self.sets and not self.odds and not self.broken


def replay(
    journal: Journal,
    *,
    from_start: bool = False,
    learner: str | None = None,
    tick: Callable[[int], object] | None = None,
) -> Replayed:
    """Rebuild the model from the oldest kept snapshot, and check it against all later ones.

    Args:
        journal: open for reading.
        from_start: begin with the very first event, out of the archives.
        learner: ``file.py:Class``, if the journal's learner is in a file of yours.
        tick: called with the number of events done since the last call.
    """
    load_class(journal.meta(), learner)
    kept = journal.snapshots()
    archived = journal.archived()
    start = 0 if from_start else next((seq for seq in kept if seq >= archived), 0)
    model = Model(journal, journal.snapshot(start))
    checked: list[int] = []
    near: list[int] = []
    broken: list[int] = []
    for seq in [*(seq for seq in kept if seq > start), None]:
        model.catch_up(until=seq, tick=tick)
        if seq is None or seq in model.jumps:
            continue
        own = model_bytes(model.learner)
        try:
            was = journal.snapshot(seq).parts["model"]
        except JournalDamaged:
            broken.append(seq)
            continue
        (checked if own == was else near if nearly_same_model(own, was) else broken).append(seq)
    return Replayed(
        learner=model.learner,
        start=start,
        events=model.seq - start,
        sets=model.different[SETS],
        odds=model.different[ODDS],
        bits=model.different[BITS],
        checked=tuple(checked),
        near=tuple(near),
        broken=tuple(broken),
        jumps=tuple(model.jumps),
        sha256=hashlib.sha256(model_bytes(model.learner)).hexdigest(),
    )
