"""The kinds of events in a journal, how a Decision is kept in one, and the chain of their digests.

A decision event holds x as raw bytes (float32; for a sparse row int32 indices, then float32 values; a row
with names as the JSON that came), the context as JSON, and the rest as JSON, too. An outcome or timeout
event names the decision by id, and by the number of its event (``of``), so that reading on never needs an
index. A change event says what an operator changed.

Each event has a digest of its own content (x and context: what may be about a person), and a digest of
the digest before it, its number, time, kind, id and body, and that content digest:

    content = H(len(x) x context)          digest = H(digest before, seq, time, kind, id, content, body)

So one changed bit breaks the chain at its place, and erasing x and context leaves it whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Any

import numpy as np
from orjson import dumps, loads

from superarm.decision import Decision
from superarm.rows import Row, SparseRow

__all__ = [
    "CHANGE",
    "DECISION",
    "KINDS",
    "OUTCOME",
    "TIMEOUT",
    "Event",
    "chain_start",
    "content_digest",
    "decision_body",
    "digest",
    "link",
    "pack_row",
    "to_decision",
    "unpack_row",
]

DECISION, OUTCOME, TIMEOUT, CHANGE = 1, 2, 3, 4
KINDS = {DECISION: "decision", OUTCOME: "outcome", TIMEOUT: "timeout", CHANGE: "change"}
DIGEST_BYTES = 16
_LENGTH, _HEAD = Struct("<q"), Struct("<qdBB")


@dataclass(slots=True)
class Event:
    """One row of the journal. (Not frozen: a million of them are made on every replay.)"""

    seq: int
    time: float  # seconds since 1970, as the clock said
    kind: int
    id: str  # of the decision; empty for a change
    x: bytes | None
    context: bytes | None  # JSON
    text: bytes  # the rest, as JSON
    content: bytes  # the digest of x and context; empty where there never were any
    digest: bytes

    @property
    def body(self) -> dict[str, Any]:
        return loads(self.text)  # type: ignore[no-any-return]

    @property
    def erased(self) -> bool:
        """Whether its features and context were erased."""
        return self.kind == DECISION and self.x is None

    def follows(self, before: bytes) -> bool:
        """Whether it is what was written after the event with that digest."""
        content = b"" if self.kind != DECISION else self.content
        if self.x is not None and content_digest(self.x, self.context) != content:
            return False
        if self.x is None and self.context is not None:
            return False
        try:
            return link(before, self.seq, self.time, self.kind, self.id, content, self.text) == self.digest
        except (TypeError, ValueError, AttributeError):  # of a kind that it never had
            return False


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def content_digest(x: bytes, context: bytes | None) -> bytes:
    """What is kept of features and context even when they are erased."""
    return digest(_LENGTH.pack(len(x)) + x + (context or b""))


def chain_start(meta: bytes) -> bytes:
    """The digest before the first event: of what the journal was made for."""
    return digest(b"superarm journal" + meta)


def link(before: bytes, seq: int, at: float, kind: int, id_: str, content: bytes, text: bytes) -> bytes:
    """The digest of an event, given the one before it."""
    name = id_.encode()
    return digest(b"".join((before, _HEAD.pack(seq, at, kind, len(name)), name, content, text)))


# ---------------------------------------------------------------- decisions


def pack_row(x: Row | dict[str, Any]) -> bytes:
    if isinstance(x, dict):
        return dumps(x)
    if isinstance(x, SparseRow):
        return x.indices.astype("<i4").tobytes() + x.values.astype("<f4").tobytes()
    return x.astype("<f4", copy=False).tobytes()


def unpack_row(data: bytes, width: int | str | None) -> Row | dict[str, Any]:
    """The row; ``width`` is that of a sparse one, ``None`` for a dense one, "names" for one with names."""
    if isinstance(width, str):
        return loads(data)  # type: ignore[no-any-return]
    if width is not None:
        half = len(data) // 2
        return SparseRow(np.frombuffer(data[:half], "<i4"), np.frombuffer(data[half:], "<f4"), width)
    return np.frombuffer(data, "<f4")


def decision_body(decision: Decision, asked: int | None, among: list[str] | None) -> dict[str, Any]:
    """All of a decision but its row; ``asked`` and ``among`` are the set size and labels of the request."""
    body = decision.to_dict(row=False)
    del body["learner"]  # all of them are of one learner
    x = decision.x
    body["width"] = "names" if isinstance(x, dict) else x.width if isinstance(x, SparseRow) else None
    body["asked"], body["among"] = asked, among
    return body


def to_decision(x: bytes | None, body: dict[str, Any], learner: str) -> Decision:
    """The Decision that was kept, as that learner's own; without a row if that was erased."""
    row = None if x is None else unpack_row(x, body["width"])
    return Decision.from_dict({**body, "x": None, "learner": learner}, x=row)
