"""What a session needs of a journal: one small interface, so that another database can keep one.

A journal holds every event in the order in which the learner saw it, snapshots of the model, an index of
where each id stands, and what it was made for. Events and snapshots are checked whenever they are read:
what comes out is what went in, or JournalDamaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from superarm.errors import InvalidInput
from superarm.service.core.events import Event

__all__ = [
    "ANSWERED",
    "EXPIRED",
    "LATE",
    "OPEN",
    "STATES",
    "Journal",
    "Place",
    "Snapshot",
    "is_url",
    "open_journal",
]

ODD_ADDRESS = re.compile(r"^[\w+]+://|^postgres(ql)?(\+\w+)?:|\bpassword\s*=", re.IGNORECASE)
OPEN, ANSWERED, EXPIRED, LATE = 0, 1, 2, 3
STATES = ("pending", "answered", "expired", "answered late")


class Place(NamedTuple):
    """Where a decision stands."""

    id: str
    seq: int
    time: float
    state: int
    closed: int | None  # the event that closed it


class Snapshot(NamedTuple):
    """The whole model after an event."""

    seq: int
    time: float
    parts: dict[str, bytes]  # "model": what Learner.save writes; "shadow:SPEC": those of shadows
    totals: dict[str, Any]  # Model.totals(): statistics and settings
    made_by: dict[str, str]  # superarm, numba, cpu


class Journal(Protocol):
    """An open journal. One thread at a time may write; reading may go on beside it."""

    name: str  # as messages call it
    seq: int  # the number of the last event, committed or not
    time: float  # its time
    dirty: bool  # whether a transaction is under way
    read_only: bool

    # writing: all of it is in the transaction under way, until `commit` has made it durable

    def append(
        self, at: float, kind: int, x: bytes | None, context: bytes | None, text: bytes, place: Place | None
    ) -> int:
        """A further event, after which decision ``place.id`` stands there. Its number."""

    def put_part(self, seq: int, name: str, number: int, data: bytes) -> None:
        """A piece of a snapshot that does not count before `put_snapshot`."""

    def put_snapshot(
        self, seq: int, at: float, totals: dict[str, Any], made_by: dict[str, str], parts: dict[str, Any]
    ) -> None:
        """Let the snapshot count whose pieces were put."""

    def drop_snapshots(self, seqs: Iterable[int]) -> None: ...

    def pin_snapshot(self, seq: int) -> None:
        """Keep it for ever: a replay will need it."""

    def commit(self) -> None:
        """Return when all that was written is on the disk."""

    def rollback(self) -> None:
        """As if nothing had been written since the last commit."""

    def reopen(self) -> None:
        """Begin anew, after a failure."""

    def probe(self) -> None:
        """Try whether a good deal can be written; leave nothing behind."""

    def close(self) -> None: ...

    # reading: what is durable, unless ``uncommitted``

    def meta(self) -> dict[str, Any]:
        """What it was made for."""

    def events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """All events after a number, in order."""

    def event(self, seq: int, *, uncommitted: bool = False) -> Event: ...

    def place(self, id_: str, *, uncommitted: bool = False) -> Place | None:
        """Where a decision stands, or None if there is no such."""

    def open_places(
        self, *, limit: int, after: int = 0, until: int | None = None, before: float | None = None
    ) -> list[Place]:
        """Decisions without an answer, oldest first: listed after that one, up to that event, made before."""

    def recent(self, limit: int) -> list[Event]:
        """The newest decisions, newest first."""

    def changes(self) -> list[Event]:
        """All change events, oldest first."""

    def snapshots(self) -> list[int]:
        """The event numbers of the kept snapshots, oldest first."""

    def snapshot_notes(self) -> list[tuple[int, float, dict[str, str]]]:
        """Number, time and makers of each, without its content."""

    def snapshot(self, seq: int) -> Snapshot: ...

    def archived(self) -> int:
        """The number of the last event that has left the database for an archive."""

    # for people on call

    def size(self) -> int:
        """Bytes on the disk."""

    def log_bytes(self) -> int:
        """Bytes of the write-ahead log."""

    def missing_archives(self) -> tuple[str, ...]: ...


def is_url(journal: object) -> bool:
    """Whether a journal is in PostgreSQL, and not a file. What is neither may hold a password: not told."""
    text = str(journal)
    if text.startswith(("postgresql://", "postgres://")):
        return True
    if ODD_ADDRESS.search(text):
        wanted = "a file, or an address such as postgresql://user@host:5432/name"
        raise InvalidInput.must("journal", "superarm", wanted, "another kind of address")
    return False


def open_journal(path: str | Path, *, read_only: bool = False, max_mb: int | None = None) -> Any:
    """The journal there; ``read_only`` takes no lock, and may be used beside a running service."""
    if is_url(path):
        from superarm.service.core.postgres.connecting import Address
        from superarm.service.core.postgres.reading import PostgresJournal

        return PostgresJournal(Address(str(path)))
    from superarm.service.core.sqlite import SqliteJournal

    return SqliteJournal(path, read_only=read_only, max_mb=max_mb)
