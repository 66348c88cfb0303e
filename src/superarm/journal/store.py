"""JournalStore: the interface of a journal. Two databases implement it, and one suite of tests holds for both.

A store holds events in one order, an index of those that wait for an outcome, snapshots of what is made of the
events, how far some work has come (progress), and what it was made for (meta). Learners are unknown to it.
Events and snapshots are checked whenever they are read: what comes out is what went in, or JournalDamaged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from orjson import loads

from superarm._types import JsonObject
from superarm.journal.clock import SystemClock
from superarm.journal.errors import JournalDamaged, JournalUnavailable
from superarm.journal.events import CORRECTION, DECISION, Event, chain_start
from superarm.journal.statements import (
    COLUMNS,
    DROP_OLD_SNAPSHOTS,
    DROP_ORPHANED_PARTS,
    DROP_SNAPSHOT,
    ERASE,
    ERASED,
    SET_PROGRESS,
    Statement,
    part_digests,
    snapshot_digest,
    snapshot_statements,
)

READ_BATCH = 4_000  # events
MIN_SNAPSHOT_GAP = 100  # events: two snapshots with fewer between them may reveal a single row
PROBE_BYTES = 1 << 18  # of a write that tries whether there is room, and leaves nothing
MAX_DAMAGE = 10  # events
MAX_SEQ = 1 << 62  # above every number of an event


class LastEvent(NamedTuple):
    """What is known of the last event without reading it."""

    seq: int
    time: float
    digest: bytes


class Pending(NamedTuple):
    """A decision without outcome or timeout."""

    seq: int
    time: float
    id: str


class CheckedEvent(NamedTuple):
    """An event that was compared with the digest before it."""

    seq: int
    event: Event | None  # None if it is missing
    problem: str | None  # what is wrong with it; None if it is sound


class SnapshotInfo(NamedTuple):
    seq: int
    time: float
    made_by: dict[str, str]
    pinned: bool


class Snapshot(NamedTuple):
    """The model and the totals after an event."""

    seq: int
    time: float
    parts: dict[str, bytes]  # "model": what Learner.save writes; "shadow:SPEC": those of shadows
    totals: JsonObject
    made_by: dict[str, str]  # superarm, cpu
    chain_digest: bytes = b""  # of the event; empty: not known


class JournalStore(ABC):
    """An open journal. One thread at a time may write; reading may go on beside it.

    A database defines the first part; statements have ``?`` for values, and are the same for both where they can be.
    """

    name: str  # as messages call it
    read_only: bool
    warnings: tuple[str, ...] = ()  # found when it was opened: events may be lost, though nothing is damaged
    _damaged_events: tuple[tuple[int, str], ...] = ()  # their numbers, and what is wrong
    shared = False  # whether other processes may write it at the same time

    @abstractmethod
    def __init__(self, journal: str | Path, *, read_only: bool = False) -> None:
        """Open a journal that exists."""

    @classmethod
    @abstractmethod
    def exists(cls, journal: str | Path) -> bool:
        """Return whether there is a journal."""

    @classmethod
    @abstractmethod
    def create(cls, journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
        """Make a journal with its first snapshot, whole and durable, or none at all; return False if there is one."""

    @abstractmethod
    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a statement that reads."""

    @abstractmethod
    def _execute_all(self, statements: Iterable[Statement]) -> list[int]:
        """Execute statements in one transaction, durable when this returns; return how many rows each has changed."""

    @abstractmethod
    def _having_ids(self, ids: Sequence[str]) -> Statement:
        """Return the condition for the decisions, outcomes and timeouts of some ids, and its values."""

    @abstractmethod
    def head(self) -> LastEvent:
        """Return the last event that is durable."""

    @abstractmethod
    def append(self, events: Sequence[Event], *, only_after: int | None = None) -> list[Event]:
        """Write events in this order, durable when this returns, or not done; each gets its number and digest.

        Returns those that were not written: their id has such an event already. With ``only_after`` none is written,
        and OtherEventsFirst raised, unless that is the number of the last event.
        """

    @abstractmethod
    def purge_erased(self) -> None:
        """Leave nothing of what was erased on the disk, or raise JournalUnavailable."""

    @abstractmethod
    def reopen(self) -> None:
        """Open it again after a failure and try a large write that leaves nothing, or raise JournalUnavailable."""

    def ensure_alone(self) -> None:
        """Keep other processes from writing, or raise JournalLocked if one keeps us; a file has a lock anyway."""
        return

    @abstractmethod
    def check(self) -> None:
        """Raise JournalUnavailable if it is known that events cannot be written, or not to the journal of that name."""

    @abstractmethod
    def problems(self) -> Iterator[str]:
        """Yield faults that the database itself finds, one sentence each; for verify."""

    @abstractmethod
    def size(self) -> int:
        """Return the bytes on the disk."""

    def _not_writable(self) -> JournalUnavailable:
        return JournalUnavailable(f"journal {self.name} was opened to be read only")

    def clock(self) -> Callable[[], float]:
        """Return the clock that times its events."""
        return SystemClock()

    def next_round(self) -> int | None:
        """Return a round that no decision of any process has; None where the model itself can count them."""
        return None

    def begin_upkeep(self) -> bool:
        """Return whether this process is to write what is due by time: one process at a time; ask before each time."""
        return True

    def processes(self) -> list[JsonObject] | None:
        """Return the processes that serve on it; None where there is one at most."""
        return None

    def log_bytes(self) -> int:
        """Return the bytes of the write-ahead log; 0 where the database manages it itself."""
        return 0

    @abstractmethod
    def close(self) -> None: ...

    # ------------------------------------------------------------ events

    def events(self, after: int = 0, until: int | None = None, read: bytes = b"") -> Iterator[Event]:
        """Yield events after a number, in order, each checked against the one before it; the first by ``read``, too."""
        for checked in self.checked_events(after, until, read):
            if checked.event is None or checked.problem is not None:
                raise self._damage_error(checked.seq, checked.problem or "")
            yield checked.event

    def checked_events(
        self, after: int = 0, until: int | None = None, read: bytes = b""
    ) -> Iterator[CheckedEvent]:
        """Yield the same events, with what is wrong with each; those that are missing between them, too."""
        if until is not None and after >= until:
            return
        events = self.raw_events(max(after - 1, 0), until)
        if after == 0:
            before = self.digest_at(0)
        elif (known := next(events, None)) is not None and known.seq == after:
            before = known.chain_digest
        else:
            raise self._damage_error(after, "is missing")
        self.check_same_event(after, read, before)
        expected = after + 1
        for event in events:
            for seq in range(expected, event.seq):
                yield CheckedEvent(seq, None, "is missing")
                before = b""  # after a gap the chain goes on from what the event itself says
            sound = not before or event.is_intact(before)
            yield CheckedEvent(event.seq, event, None if sound else "is not what was written")
            before, expected = event.chain_digest, event.seq + 1
        for seq in range(expected, (until or 0) + 1):
            yield CheckedEvent(seq, None, "is missing")

    def check_same_event(self, seq: int, read: bytes, now: bytes) -> None:
        """Raise JournalDamaged if an event has another digest than when it was read (empty: it was not)."""
        if read not in (b"", now):  # the database went back, say: what is there now is not damaged
            raise JournalDamaged(f"event {seq} of journal {self.name} is another one than before", event=seq)

    def raw_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Yield the same events, without the checks."""
        sql = f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {READ_BATCH}"
        while True:
            rows = self._select(sql, (after, MAX_SEQ if until is None else until))
            for row in rows:
                yield Event(*row)
            if len(rows) < READ_BATCH:
                return
            after = rows[-1][0]

    def events_by_id(self, ids: Sequence[str]) -> dict[str, list[Event]]:
        """Return the decisions, outcomes and timeouts of these ids, in order."""
        by_id: dict[str, list[Event]] = {}
        if ids:
            for event in self._checked(*self._having_ids(ids)):
                by_id.setdefault(event.id, []).append(event)
        return by_id

    def changes(self) -> list[Event]:
        """Return all changes and erasures, oldest first."""
        return self._checked(f"e.kind > {CORRECTION}")

    def _checked(self, condition: str, values: Sequence[Any] = ()) -> list[Event]:
        """Return events in order, each checked against the digest before it."""
        columns = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
        sql = f"SELECT {columns}, p.digest FROM events e LEFT JOIN events p ON p.seq = e.seq - 1 WHERE {condition}"
        events = []
        for *row, before in sorted(self._select(sql, values), key=itemgetter(0)):
            event = Event(*row)
            if not event.is_intact(before if event.seq > 1 else self.digest_at(0)):
                raise self._damage_error(event.seq, "is not what was written")
            events.append(event)
        return events

    def _damage_error(self, seq: int, how: str) -> JournalDamaged:
        if len(self._damaged_events) < MAX_DAMAGE and (seq, how) not in self._damaged_events:
            self._damaged_events += ((seq, how),)
        return JournalDamaged(f"event {seq} of journal {self.name} {how}", event=seq)

    @property
    def damage(self) -> tuple[str, ...]:
        """One sentence for each of the first damaged events that were read."""
        return tuple(f"event {seq} of journal {self.name} {how}" for seq, how in self._damaged_events)

    def recent_decisions(self, limit: int) -> list[Event]:
        """Return the newest decisions, newest first."""
        sql = f"SELECT {COLUMNS} FROM events WHERE kind = {DECISION} ORDER BY seq DESC LIMIT ?"
        return [Event(*row) for row in self._select(sql, (limit,))]

    def pending(self, limit: int, after: int = 0) -> list[Pending]:
        """Return pending decisions in their order, after one."""
        sql = "SELECT seq, time, id FROM pending WHERE seq > ? ORDER BY seq LIMIT ?"
        return [Pending(*row) for row in self._select(sql, (after, limit))]

    def pending_before(self, time: float, limit: int) -> list[Pending]:
        """Return pending decisions made before a time, oldest first: not always their order, as clocks go back."""
        sql = "SELECT seq, time, id FROM pending WHERE time < ? ORDER BY time, seq LIMIT ?"
        return [Pending(*row) for row in self._select(sql, (time, limit))]

    def recheck_missing(self) -> None:
        """Forget that events are missing which are there now, or beyond the end: the database was restored, say."""
        last = self.last_event().seq
        self._damaged_events = tuple(
            (seq, how)
            for seq, how in self._damaged_events
            if how != "is missing"
            or (seq <= last and not self._select("SELECT seq FROM events WHERE seq = ?", (seq,)))
        )

    def last_event(self) -> LastEvent:
        """Return the last event of the table."""
        rows = self._select("SELECT seq, time, digest FROM events ORDER BY seq DESC LIMIT 1")
        return LastEvent(*rows[0]) if rows else LastEvent(0, 0.0, self.digest_at(0))

    def digest_at(self, seq: int) -> bytes:
        """Return the digest of the chain up to an event."""
        if seq == 0:
            return chain_start(self.meta())
        rows = self._select("SELECT digest FROM events WHERE seq = ?", (seq,))
        if not rows:
            raise self._damage_error(seq, "is missing")
        return bytes(rows[0][0])

    # ------------------------------------------------------------ erasing

    def erase(self, seq: int, ids: Sequence[str] | None, before: float | None) -> int:
        """Erase x and context of decisions, by id or made before a time; return how many.

        It is done in one transaction, for the erasure whose event is ``seq``. Snapshots that stand so near to another
        one that the two would reveal an erased row are dropped.
        """

        def statements() -> Iterator[Statement]:
            condition, values = ("e.time < ?", (before,)) if ids is None else self._having_ids(ids)
            yield f"{ERASE} AND {condition}", (seq, seq, *values)
            yield SET_PROGRESS, (ERASED, seq)
            yield from ((DROP_SNAPSHOT, (near,)) for near in self._snapshots_to_drop(seq))
            yield DROP_ORPHANED_PARTS, ()

        return self._execute_all(statements())[0]

    def _snapshots_to_drop(self, newest: int) -> list[int]:
        """Return snapshots to drop: of two with few events between them the later, or the other if that is needed."""
        infos = self.snapshots()
        needed = {newest, *(info.seq for info in infos if info.pinned)}
        near = [(a.seq, b.seq) for a, b in pairwise(infos) if b.seq - a.seq < MIN_SNAPSHOT_GAP]
        return sorted({a if b in needed else b for a, b in near} - needed)

    def count_erased(self, erasure: int) -> int:
        """Return how many decisions an erasure has erased."""
        return int(self._select("SELECT count(*) FROM events WHERE erased = ?", (erasure,))[0][0])

    def has_content_before(self, time: float) -> bool:
        """Return whether a decision made before a time still has content."""
        return bool(self._select("SELECT 1 FROM events WHERE x IS NOT NULL AND time < ? LIMIT 1", (time,)))

    # ------------------------------------------------------------ meta and progress

    def meta(self) -> JsonObject:
        """Return the learner, labels and options that the journal was made for."""
        return {key: loads(value) for key, value in self._select("SELECT key, value FROM meta")}

    def stored_number(self, key: str) -> int:
        """Return a number that the journal keeps, such as the last event that some work has reached; 0: none."""
        rows = self._select("SELECT value FROM progress WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else 0

    # ------------------------------------------------------------ snapshots

    def write_snapshot(self, snapshot: Snapshot, keep: int = 0) -> None:
        """Keep a snapshot.

        Args:
            snapshot: one that is there stays as it is; one from before the last erasure is not kept.
            keep: then drop all but so many of the newest, the first and pinned ones; 0 drops none.
        """
        drop = [(DROP_OLD_SNAPSHOTS, (keep,))] if keep else []
        chain = self.digest_at(snapshot.seq)
        self.check_same_event(snapshot.seq, snapshot.chain_digest, chain)
        self._execute_all([*snapshot_statements(snapshot, chain), *drop, (DROP_ORPHANED_PARTS, ())])

    def pin_snapshot(self, seq: int) -> bool:
        """Keep a snapshot for ever, since a replay will need it; return False if it is not there."""
        return self._execute_all([("UPDATE snapshots SET pinned = true WHERE seq = ?", (seq,))])[0] > 0

    def snapshots(self) -> list[SnapshotInfo]:
        """Return the kept snapshots, oldest first, without their content."""
        rows = self._select("SELECT seq, time, made_by, pinned FROM snapshots ORDER BY seq")
        return [SnapshotInfo(seq, time, loads(made_by), bool(pinned)) for seq, time, made_by, pinned in rows]

    def newest_snapshot(self) -> int:
        """Return the event of the newest snapshot."""
        return int(self._select("SELECT coalesce(max(seq), 0) FROM snapshots")[0][0])

    def snapshot(self, seq: int) -> Snapshot:
        """Return the snapshot of an event, checked."""
        name = f"the snapshot after event {seq} of {self.name}"
        sql = "SELECT time, totals, made_by, parts, digest FROM snapshots WHERE seq = ?"
        rows = self._select(sql, (seq,))
        if not rows:
            raise JournalDamaged(f"{name} is missing")
        time, totals, made_by, description, checksum = rows[0]
        sql = "SELECT data FROM parts WHERE seq = ? AND part = ? ORDER BY number"
        try:
            chain = self.digest_at(seq)
            same = snapshot_digest(chain, seq, time, totals, made_by, description) == checksum
            names = loads(description) if same else ()
            parts = {part: b"".join(row[0] for row in self._select(sql, (seq, part))) for part in names}
            same = same and part_digests(parts) == names
        except (TypeError, ValueError, AttributeError):  # a column of another type
            same = False
        if not same:
            raise JournalDamaged(f"{name} is not what was written")
        return Snapshot(seq, time, parts, loads(totals), loads(made_by), chain)
