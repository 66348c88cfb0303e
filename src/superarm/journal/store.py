"""Store: what everybody needs of a journal. Two databases implement it, and one suite of tests holds for both.

A store holds events in one order, an index of those that wait for an outcome, snapshots of whatever projects the
events, how far some work has come (progress), and what it was made for (meta). It knows nothing of learners.
Events and snapshots are checked whenever they are read: what comes out is what went in, or JournalDamaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple, Protocol

from orjson import dumps, loads

from superarm.errors import InvalidInput
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import Event, digest

__all__ = ["Head", "Pending", "Snapshot", "SnapshotNote", "Store", "is_url", "open_store"]

ODD_ADDRESS = re.compile(r"^[\w+]+://|^postgres(ql)?(\+\w+)?:|\bpassword\s*=", re.IGNORECASE)
PIECE = 1 << 20  # bytes of a snapshot that are written at once


class Head(NamedTuple):
    """The last event."""

    seq: int
    time: float
    digest: bytes


class Pending(NamedTuple):
    """A decision without outcome or timeout."""

    seq: int
    time: float
    id: str


class SnapshotNote(NamedTuple):
    seq: int
    time: float
    made_by: dict[str, str]
    pinned: bool


class Snapshot(NamedTuple):
    """What a projector had made of all events up to one."""

    seq: int
    time: float
    parts: dict[str, bytes]  # "model": what Learner.save writes; "shadow:SPEC": those of shadows
    totals: dict[str, Any]
    made_by: dict[str, str]  # superarm, cpu


class Store(Protocol):
    """An open journal. One thread at a time may write; reading may go on beside it."""

    name: str  # as messages call it
    read_only: bool

    def meta(self) -> dict[str, Any]:
        """What it was made for."""

    def head(self) -> Head:
        """The last event that is durable."""

    # writing: each call is durable when it returns, or has not happened

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Write events in this order; each gets its number and digest.

        Gives those that were not written: their id has such an event already.
        """

    def write_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        """Keep a snapshot, piece by piece: it counts when the iterator has ended."""

    def drop_snapshots(self, seqs: Iterable[int]) -> None:
        """Take snapshots away; pinned ones, and the first one, stay."""

    def pin_snapshot(self, seq: int) -> None:
        """Keep it for ever: a replay will need it."""

    def set_progress(self, key: str, value: int) -> None: ...

    def erase(self, erasure: Event, drop: Sequence[int]) -> int:
        """Forget x and context of the decisions that an erasure names, and drop snapshots; how many."""

    def scrub(self) -> None:
        """Leave nothing of what was erased on the disk, or raise JournalDown."""

    # reading: what is durable

    def progress(self, key: str) -> int: ...

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """All events after a number, in order, each checked."""

    def unchecked(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """The same, as they are read."""

    def find(self, ids: Sequence[str]) -> dict[str, list[Event]]:
        """All events about these ids, in order."""

    def changes(self, after: int = 0) -> list[Event]:
        """All changes and erasures, oldest first."""

    def pending(
        self, limit: int, after: int = 0, until: int | None = None, before: float | None = None
    ) -> Any:
        """Decisions that wait, by their numbers: after that one, up to that one, made before a time."""

    def recent(self, limit: int) -> list[Event]:
        """The newest decisions, newest first."""

    def content_before(self, time: float) -> bool:
        """Whether a decision made before a time still has content."""

    def snapshots(self) -> list[SnapshotNote]:
        """The kept snapshots, oldest first, without their content."""

    def snapshot(self, seq: int) -> Snapshot: ...

    # for people on call

    def probe(self) -> None:
        """Try whether a good deal can be written; leave nothing behind."""

    def reopen(self) -> None:
        """Begin anew, after a failure."""

    def check(self) -> None:
        """Whether what is written can still be found under the journal's name; JournalDown if not."""

    def problems(self) -> Iterator[str]:
        """What the database itself finds wrong, one sentence each; for verify."""

    def size(self) -> int:
        """Bytes on the disk."""

    def log_bytes(self) -> int:
        """Bytes of the write-ahead log; 0 where the database sees to that."""

    def close(self) -> None: ...


def is_url(journal: object) -> bool:
    """Whether a journal is in PostgreSQL, and not a file. What is neither may hold a password: not told."""
    text = str(journal)
    if text.startswith(("postgresql://", "postgres://")):
        return True
    if ODD_ADDRESS.search(text):
        wanted = "a file, or an address such as postgresql://user@host:5432/name"
        raise InvalidInput.must("journal", "superarm", wanted, "another kind of address")
    return False


def open_store(
    journal: str | Path, *, read_only: bool = False, max_mb: int | None = None, accept_loss: bool = False
) -> Any:
    """The journal there; ``read_only`` takes no lock, and may be used beside a running service."""
    if is_url(journal):
        from superarm.journal.postgres import PostgresStore

        return PostgresStore(str(journal), read_only=read_only)
    from superarm.journal.sqlite import SqliteStore

    return SqliteStore(journal, read_only=read_only, max_mb=max_mb, accept_loss=accept_loss)


# ---------------------------------------------------------------- snapshots, as both databases keep them


def describe(parts: dict[str, bytes]) -> dict[str, Any]:
    """Length and digest of each part."""
    return {name: {"bytes": len(data), "digest": sha256(data).hexdigest()} for name, data in parts.items()}


def pieces(parts: dict[str, bytes]) -> Iterator[tuple[str, int, bytes]]:
    """Parts in pieces: (part, number, data). No value of a database should be large."""
    for name, data in parts.items():
        view = memoryview(data)
        for number, start in enumerate(range(0, len(data), PIECE)):
            yield name, number, bytes(view[start : start + PIECE])


def snapshot_texts(snapshot: Snapshot) -> tuple[str, str, str]:
    made = (snapshot.totals, snapshot.made_by, describe(snapshot.parts))
    totals, made_by, parts = (dumps(value).decode() for value in made)
    return totals, made_by, parts


def snapshot_digest(chain: bytes, seq: int, at: float, totals: str, made_by: str, parts: str) -> bytes:
    """Of everything that a snapshot says, and of the event it stands after."""
    return digest(chain + pack("<qd", seq, at) + "\0".join((totals, made_by, parts)).encode())


# ---------------------------------------------------------------- reading, as both databases do it


def checked_events(store: Any, after: int, until: int | None) -> Iterator[Event]:
    """Events in order, each checked against the one before it."""
    until = store.head().seq if until is None else until
    if after >= until:
        return
    before, expected = store.digest_at(after), after + 1
    for event in store.unchecked(after, until):
        if event.seq != expected:
            raise damaged(store, expected, "is missing")
        if not event.follows(before):
            raise damaged(store, event.seq, "is not what was written")
        before, expected = event.digest, expected + 1
        yield event
    if expected <= until:
        raise damaged(store, expected, "is missing")


def checked_rows(store: Any, rows: Iterable[Sequence[Any]]) -> list[Event]:
    """Events from rows that end with the digest before each, in order."""
    events = []
    for *row, before in sorted(rows, key=itemgetter(0)):
        event = Event(*row)
        if not event.follows(before if event.seq > 1 else store.digest_at(0)):
            raise damaged(store, event.seq, "is not what was written")
        events.append(event)
    return events


def checked_snapshot(
    store: Any, seq: int, row: Sequence[Any] | None, part: Callable[[str], bytes]
) -> Snapshot:
    """A snapshot from its row (time, totals, made_by, parts, digest) and whatever reads one part."""
    where = f"the snapshot after event {seq} of {store.name}"
    if row is None:
        raise JournalDamaged(f"{where} is missing")
    at, totals, made_by, told, own = row
    try:
        same = snapshot_digest(store.digest_at(seq), seq, at, totals, made_by, told) == own
        parts = {name: part(name) for name in loads(told)} if same else {}
        same = same and describe(parts) == loads(told)
    except (TypeError, ValueError, AttributeError):  # of a kind that it never had
        same = False
    if not same:
        raise JournalDamaged(f"{where} is not what was written")
    return Snapshot(seq, at, parts, loads(totals), loads(made_by))


def damaged(store: Any, seq: int, how: str) -> JournalDamaged:
    return JournalDamaged(f"event {seq} of journal {store.name} {how}", event=seq)
