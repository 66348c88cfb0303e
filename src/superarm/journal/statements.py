"""The tables and the statements that journals in SQLite and in PostgreSQL have alike.

meta        what it was made for; one row a key
events      facts, numbered from 1, each with its digests
pending     decisions that wait for an outcome
snapshots   totals and makers of each snapshot, and the digests of its parts
parts       the parts of the snapshots, in pieces: no value of a database should be large
progress    how far some work has come, by its name
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import pack
from typing import TYPE_CHECKING, Any

from orjson import dumps

from superarm._types import JsonObject
from superarm.errors import Unquoted
from superarm.journal.errors import JournalMismatch
from superarm.journal.events import ANSWER, digest

if TYPE_CHECKING:
    from superarm.journal.store import Snapshot

Statement = tuple[str, Sequence[Any]]  # SQL with ``?`` for values, and the values

FORMAT = 4  # of the events, in a file or a database; 1 and 2 were superarm 0.1 and 0.2, 3 was never released
PIECE = 1 << 20  # bytes of a part in one row
IN_INDEX = f"e.kind < {ANSWER}"  # of the events that the index of ids has: one of a kind may have an id
COLUMNS = "seq, time, kind, id, x, context, body, content, digest, erased"
ERASED = "erased"  # the progress of erasures: the last one that was made
SET_PROGRESS = "INSERT INTO progress VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
# a snapshot that is there stays as it is; one from before an erasure, which might reveal a row, does not count
PUT_PART = """INSERT INTO parts SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM snapshots WHERE seq = ?)
ON CONFLICT (seq, part, number) DO UPDATE SET data = excluded.data"""
PUT_SNAPSHOT = f"""INSERT INTO snapshots SELECT ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM progress WHERE key = '{ERASED}' AND value > ?) ON CONFLICT DO NOTHING"""
DROP_SNAPSHOT = "DELETE FROM snapshots WHERE seq = ? AND NOT pinned"
DROP_OLD_SNAPSHOTS = """DELETE FROM snapshots WHERE NOT pinned
AND seq NOT IN (SELECT seq FROM snapshots WHERE NOT pinned ORDER BY seq DESC LIMIT ?)"""
DROP_ORPHANED_PARTS = "DELETE FROM parts WHERE seq NOT IN (SELECT seq FROM snapshots)"

ERASE = "UPDATE events AS e SET x = NULL, context = NULL, erased = ? WHERE e.x IS NOT NULL AND e.seq < ?"

TABLES = """
CREATE TABLE meta (key {text} PRIMARY KEY, value {text} NOT NULL){without_rowid};
CREATE TABLE events (
  seq {integer} PRIMARY KEY, time {real} NOT NULL, kind {small} NOT NULL, id {text} NOT NULL,
  x {blob}, context {blob}, body {blob} NOT NULL, content {blob} NOT NULL, digest {blob} NOT NULL, erased {integer}
);
CREATE UNIQUE INDEX events_id ON events (id, kind) WHERE kind < 4;
CREATE INDEX events_changes ON events (seq) WHERE kind > 5;
CREATE INDEX events_content ON events (time) WHERE x IS NOT NULL;
CREATE TABLE pending (seq {integer} PRIMARY KEY, time {real} NOT NULL, id {text} NOT NULL);
CREATE INDEX pending_time ON pending (time);
CREATE TABLE snapshots (
  seq {integer} PRIMARY KEY, time {real} NOT NULL, totals {text} NOT NULL, made_by {text} NOT NULL,
  parts {text} NOT NULL, digest {blob} NOT NULL, pinned {flag} NOT NULL
);
CREATE TABLE parts (seq {integer} NOT NULL, part {text} NOT NULL, number {number} NOT NULL, data {blob} NOT NULL);
CREATE UNIQUE INDEX part ON parts (seq, part, number);
CREATE TABLE progress (key {text} PRIMARY KEY, value {integer} NOT NULL){without_rowid};
"""


def check_format_number(number: int, journal: object) -> None:
    """Refuse a journal of another format than this superarm's."""
    if number == FORMAT:
        return
    newer = number > FORMAT
    hint = "install a newer superarm" if newer else "use the superarm that made it, or export with it"
    got = Unquoted(f"format {number} in {journal}")
    raise JournalMismatch.must("journal", "superarm", f"of format {FORMAT} ({hint})", got)


def part_digests(parts: dict[str, bytes]) -> JsonObject:
    """Return length and digest of each part."""
    return {name: {"bytes": len(data), "digest": sha256(data).hexdigest()} for name, data in parts.items()}


def snapshot_statements(snapshot: Snapshot, chain: bytes, *, pinned: bool = False) -> Iterator[Statement]:
    """Yield the statements that keep a snapshot: its parts in pieces, then its row."""
    seq, time = snapshot.seq, snapshot.time
    for name, data in snapshot.parts.items():
        view = memoryview(data)
        for number, start in enumerate(range(0, len(data), PIECE)):
            yield PUT_PART, (seq, name, number, bytes(view[start : start + PIECE]), seq)
    totals, made_by, parts = (
        dumps(value).decode() for value in (snapshot.totals, snapshot.made_by, part_digests(snapshot.parts))
    )
    checksum = snapshot_digest(chain, seq, time, totals, made_by, parts)
    yield PUT_SNAPSHOT, (seq, time, totals, made_by, parts, checksum, pinned, seq)


def new_journal_statements(meta: JsonObject, chain: bytes, first: Snapshot) -> Iterator[Statement]:
    """Yield the statements that write the meta and the first snapshot of a new journal."""
    yield from meta_statements(meta)
    yield from snapshot_statements(first, chain, pinned=True)


def meta_statements(meta: JsonObject) -> Iterator[Statement]:
    """Yield the statements that write the meta of a new journal."""
    for key, value in meta.items():
        yield "INSERT INTO meta VALUES (?, ?)", (key, dumps(value).decode())


def snapshot_digest(chain: bytes, seq: int, time: float, totals: str, made_by: str, parts: str) -> bytes:
    """Return the digest of everything in a snapshot, and of the chain up to its event."""
    return digest(chain + pack("<qd", seq, time) + "\0".join((totals, made_by, parts)).encode())
