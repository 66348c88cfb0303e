"""Is a journal what was written? Checksums, chain, index, and a replay of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from superarm.journal.errors import JournalDamaged
from superarm.journal.events import DECISION, OUTCOME, TIMEOUT, Event, chain_start
from superarm.journal.journal_files import real_path
from superarm.journal.mark import read_mark
from superarm.journal.replay import Replayed, replay
from superarm.journal.store import SnapshotNote, Store, open_store

MOST_LISTED = 20  # of one kind of damage


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification."""

    events: int
    erased: int  # decisions whose features and context were erased
    snapshots: int
    problems: tuple[str, ...]  # one sentence for each damage
    damaged: tuple[int, ...]  # the numbers of damaged or missing events
    replayed: Replayed | None  # None if the journal was too damaged, or it was not asked for

    @property
    def sound(self) -> bool:
        return not self.problems


def verify(
    journal: str | Path,
    *,
    learner: str | None = None,
    with_replay: bool = True,
    tick: Callable[[int], object] | None = None,
) -> Verified:
    """Look at everything in a journal; it may be in use.

    Args:
        journal: a file, or the address of a database.
        learner: ``file.py:Class``, if the journal's learner is in a file of yours.
        with_replay: also replay all events that are left, from the first, and meet every snapshot.
        tick: called with the number of events replayed since the last call.
    """
    try:
        store = open_store(journal, read_only=True, accept_loss=True)
    except JournalDamaged as error:
        return Verified(0, 0, 0, (str(error),), () if error.event is None else (error.event,), None)
    with closing(store):
        return Verifier(store).run(learner, with_replay, tick)


class Verifier:
    """One verification of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[str] = []
        self.damaged: list[int] = []
        self.erased = 0

    def run(self, learner: str | None, with_replay: bool, tick: Callable[[int], object] | None) -> Verified:
        store = self.store
        waiting: dict[int, str] = {}
        notes: list[SnapshotNote] = []
        done = None
        with self._noting():
            self.problems += store.problems()
        with self._noting():
            self._chain(waiting)
        if not self.problems:
            with self._noting():
                self._index(waiting)
        with self._noting():
            notes = store.snapshots()
        for note in notes:
            with self._noting():
                store.snapshot(note.seq)
        if not self.problems and with_replay:
            with self._noting():
                done = replay(store, from_start=True, learner=learner, tick=tick)
                self.problems += _differences(done)
        counts = store.head().seq, self.erased, len(notes)
        return Verified(*counts, tuple(self.problems), tuple(self.damaged), done)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Damage in here is one more problem."""
        try:
            yield
        except JournalDamaged as error:
            self.problems.append(str(error))

    def _chain(self, waiting: dict[int, str]) -> None:
        for event, number, fault in chain(self.store):
            if event is None or fault is not None:
                self.damaged.append(number)
                if len(self.damaged) <= MOST_LISTED:
                    self.problems.append(f"event {number} {fault}")
                continue
            if event.kind == DECISION:
                self.erased += event.x is None
                waiting[event.seq] = event.id
            elif event.kind in (OUTCOME, TIMEOUT):
                waiting.pop(event.body.about, None)

    def _index(self, waiting: dict[int, str]) -> None:
        """The index of pending decisions must agree with the events."""
        after = 0
        while page := self.store.pending(5_000, after):
            for listed in page:
                if waiting.pop(listed.seq, None) != listed.id:
                    self.problems.append(f"decision {listed.id} is listed as pending, and is not")
                    return
            after = page[-1].seq
        if waiting:
            self.problems.append(f"{len(waiting)} pending decisions are not listed, such as {min(waiting)}")


def _differences(done: Replayed) -> Iterator[str]:
    for count, what in ((done.sets_differ, "set"), (done.propensities_differ, "propensity")):
        if count:
            yield f"{count} decisions come out with another {what} when replayed"
    for seq in done.snapshots_different:
        yield f"the snapshot after event {seq} comes out different when replayed"


def chain(store: Store) -> Iterator[tuple[Event | None, int, str | None]]:
    """(event, number, None) for a sound event; what is wrong with another."""
    before, expected = chain_start(store.meta()), 1
    for event in store.unchecked():
        while expected < event.seq:
            yield None, expected, "is missing"
            expected, before = expected + 1, b""
        # after a gap the chain goes on from what the event itself says
        sound = not before or event.follows(before)
        yield event, event.seq, None if sound else "is not what was written"
        before, expected = event.digest, event.seq + 1
    for seq in range(expected, store.head().seq + 1):
        yield None, seq, "is missing"


def accept_loss(path: str | Path) -> tuple[int, int]:
    """Let a journal go on without the events it has lost: how many were durable, and how many are left."""
    mark = read_mark(real_path(path))
    with closing(open_store(path, accept_loss=True)) as store:  # (opening it has written the mark anew)
        left = store.head().seq
        return (left if mark is None else mark.seq), left
