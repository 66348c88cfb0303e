"""Is a journal what was written? Checksums, chain, index, and a replay of everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from superarm._progress import Progress
from superarm.journal.backends import is_postgres, open_store
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import DECISION, ERASURE, OUTCOME, TIMEOUT, Event
from superarm.journal.replay import ReplayResult, replay
from superarm.journal.sqlite import SqliteStore
from superarm.journal.sqlite_files import read_mark, real_path
from superarm.journal.store import JournalStore

MAX_LISTED = 20  # of one kind of damage


@dataclass(slots=True)
class VerifyResult:
    """The result of a verification."""

    events: int = 0
    erased: int = 0  # decisions whose features and context were erased
    snapshots: int = 0
    problems: list[str] = field(default_factory=list)  # one sentence for each damage
    warnings: list[str] = field(default_factory=list)  # what is no damage by itself
    damaged: list[int] = field(default_factory=list)  # the numbers of damaged or missing events
    replayed: ReplayResult | None = None  # None if the journal was too damaged, or it was not asked for

    @property
    def ok(self) -> bool:
        return not self.problems

    @contextmanager
    def noting_damage(self) -> Iterator[None]:
        """Add damage that is found in the block to the problems."""
        try:
            yield
        except JournalDamaged as error:
            self.problems.append(str(error))


def verify(
    journal: str | Path,
    *,
    learner: str | None = None,
    with_replay: bool = True,
    progress: Progress = None,
) -> VerifyResult:
    """Look at everything in a journal; it may be in use.

    Args:
        journal: a file, or the address of a database.
        learner: ``file.py:Class``, if the journal's learner is in a file of yours.
        with_replay: also replay all events that are left, from the first, and meet every snapshot.
        progress: True shows a bar; a function is called with the number of events replayed since its last call.
    """
    try:
        store: JournalStore
        if is_postgres(journal):
            store = open_store(journal, read_only=True)
        else:
            store = SqliteStore(journal, read_only=True, accept_loss=True)
    except JournalDamaged as error:
        return VerifyResult(problems=[str(error)], damaged=[] if error.event is None else [error.event])
    with closing(store):
        return verify_store(store, learner, with_replay, progress)


def verify_store(
    store: JournalStore,
    learner: str | None = None,
    with_replay: bool = True,
    progress: Progress = None,
) -> VerifyResult:
    """Look at everything in an open journal."""
    result = VerifyResult(store.head().seq, warnings=list(store.warnings))
    pending: dict[int, str] = {}
    with result.noting_damage():
        result.problems += store.problems()
    with result.noting_damage():
        pending = _verify_events(store, result)
    if result.ok:
        with result.noting_damage():
            result.problems += _check_pending_index(store, pending)
    with result.noting_damage():
        for info in store.snapshots():
            result.snapshots += 1
            with result.noting_damage():
                store.snapshot(info.seq)
    if result.ok and with_replay:
        with result.noting_damage():
            result.replayed = replay(store, from_start=True, learner=learner, progress=progress)
            result.problems += _describe_differences(result.replayed)
    return result


def _verify_events(store: JournalStore, result: VerifyResult) -> dict[int, str]:
    """Check all events; return the decisions without an outcome or a timeout: their ids, by their numbers."""
    pending = dict[int, str]()
    erasures, erased = set[int](), dict[int, int]()  # and a decision that each has erased
    for seq, event, problem in store.checked_events(0, result.events):
        if event is not None and not _has_body(event):
            problem = problem or "cannot be read, though it is what was written"
        if event is not None and event.kind == ERASURE:
            erasures.add(seq)
        if event is None or problem is not None:
            _note_damaged(result, seq, problem)
        elif event.kind == DECISION:
            result.erased += event.x is None
            if event.erased is not None:
                erased.setdefault(event.erased, seq)
            pending[seq] = event.id
        elif event.kind in (OUTCOME, TIMEOUT):
            pending.pop(event.body.target_seq, None)
    for erasure, seq in erased.items():
        if erasure not in erasures:
            _note_damaged(result, seq, f"was erased by event {erasure}, which is no erasure")
    return pending


def _note_damaged(result: VerifyResult, seq: int, problem: str | None) -> None:
    result.damaged.append(seq)
    if len(result.damaged) <= MAX_LISTED:
        result.problems.append(f"event {seq} {problem}")


def _has_body(event: Event) -> bool:
    try:
        return event.body is not None
    except JournalDamaged:
        return False


def _check_pending_index(store: JournalStore, pending: dict[int, str]) -> Iterator[str]:
    """Yield where the index of pending decisions does not agree with the events."""
    after = 0
    while page := store.pending(5_000, after):
        for listed in page:
            if pending.pop(listed.seq, None) != listed.id:
                yield f"decision {listed.id} is listed as pending, and is not"
                return
        after = page[-1].seq
    if pending:
        yield f"{len(pending)} pending decisions are not listed, such as {min(pending)}"


def _describe_differences(done: ReplayResult) -> Iterator[str]:
    for count, what in ((done.sets_differ, "set"), (done.propensities_differ, "propensity")):
        if count:
            yield f"{count} decisions come out with another {what} when replayed"
    for seq in done.snapshots_different:
        yield f"the snapshot after event {seq} comes out different when replayed"


def accept_loss(path: str | Path) -> tuple[int, int]:
    """Let a journal go on without the events it has lost; return how many were durable, and how many are left."""
    mark = read_mark(real_path(path))
    with closing(SqliteStore(path, accept_loss=True)) as store:  # (opening it has written the mark anew)
        left = store.head().seq
        return left if mark is None else mark.seq, left
