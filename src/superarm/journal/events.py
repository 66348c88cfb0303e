"""The kinds of events, how a Decision is kept in one, and the chain of their digests.

An event is a fact: something that happened outside. What the model made of it is computed (projector.py).

    DECISION    a row came and this set was shown     {"decision": Decision.to_dict, "width", "asked", "among",
                                                       "model", "version", "k", "cursor"}
    OUTCOME     the world answered                    {"of", "hit", "label"}
    TIMEOUT     time ran out                          {"of", "hit"}: what that counts as; null for nothing
    ANSWER      a person said something about a row   {"of", "by", …}; several may be about one row
    CORRECTION  an earlier event is taken back        {"of", "by", …}; "undo": true, or what holds in its place
    CHANGE      an operator changed something         {"what", …} (changes.py)
    ERASURE     content was to be erased              {"ids"} or {"before"}

``of`` is the number of the event that it is about. A decision keeps its row as raw bytes (float32; of a sparse
row int32 indices, then float32 values; of one with names the JSON that came); ``asked`` and ``among`` are the set
size and the labels of the request (``coverage``, if it asked for one); ``model`` is the last event that the deciding
model knew, ``version`` how many answers it had learnt, ``k`` how many labels it had; ``cursor`` is there where many
processes decide. A promise (coverage, threshold), where the learner gives one, is in the decision's own record.

One decision, one outcome and one timeout may have an id; answers and corrections as many as there are.
Each event has a digest of its content (x and context: what may be about a person), and one of the event before
it, its number and all else. So a changed bit breaks the chain at its place, and erasing leaves it whole:

    content = H(len(x) x context)     own = H(time kind id content body)     digest = H(digest before, seq, own)
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
from orjson import dumps, loads

from superarm.data.rows import AnyRow, Row
from superarm.decisions import Decision

if TYPE_CHECKING:
    from superarm.learners.restoring import Restorer

__all__ = [
    "ANSWER",
    "CHANGE",
    "CORRECTION",
    "DECISION",
    "ERASURE",
    "KINDS",
    "OUTCOME",
    "TIMEOUT",
    "Event",
    "chain_start",
    "decision_event",
    "digest",
    "dumps",
    "link",
    "loads",
    "pack_row",
    "unpack_row",
]

DECISION, OUTCOME, TIMEOUT, ANSWER, CORRECTION, CHANGE, ERASURE = range(1, 8)
KINDS = {
    DECISION: "decision",
    OUTCOME: "outcome",
    TIMEOUT: "timeout",
    ANSWER: "answer",
    CORRECTION: "correction",
    CHANGE: "change",
    ERASURE: "erasure",
}
_LENGTH, _HEAD, _SEQ = Struct("<q"), Struct("<dBB"), Struct(">q")


class Event:
    """One row of a journal. Before it is appended, ``seq`` is 0.

    Attributes:
        seq: its number, from 1.
        time: seconds since 1970.
        kind: one of `KINDS`.
        id: of the decision or row that it is about; empty for changes.
        x, context: content, as bytes; None if there is none, or none any more.
        text: the rest, as JSON; `body` is what it holds.
        content: the digest of x and context; empty where there never were any.
        digest: the chain up to this event.
        erased: the number of the event that asked to erase x and context; None if none did.
        decision: the live Decision, if this process made it.
    """

    __slots__ = (
        "_body", "content", "context", "decision", "digest", "erased", "id", "kind", "seq", "text", "time", "x"
    )  # fmt: skip

    def __init__(
        self,
        seq: int,
        time: float,
        kind: int,
        id_: str,
        x: bytes | None,
        context: bytes | None,
        text: bytes,
        content: bytes = b"",
        digest: bytes = b"",
        erased: int | None = None,
    ) -> None:
        self.seq, self.time, self.kind, self.id, self.x, self.context = seq, time, kind, id_, x, context
        self.text, self.content, self.digest, self.erased = text, content, digest, erased
        self.decision: Decision | None = None
        self._body: dict[str, Any] | None = None

    @classmethod
    def new(cls, time: float, kind: int, body: dict[str, Any], id_: str = "") -> Event:
        """An event that is to be appended, without content."""
        event = cls(0, time, kind, id_, None, None, dumps(body))
        event._body = body
        return event

    @property
    def body(self) -> dict[str, Any]:
        if self._body is None:
            self._body = loads(self.text)
        return self._body

    @property
    def row(self) -> tuple[Any, ...]:
        """As the tables have it."""
        return (
            self.seq, self.time, self.kind, self.id, self.x, self.context, self.text, self.content, self.digest,
            self.erased,
        )  # fmt: skip

    @property
    def own(self) -> bytes:
        """The digest of all but its number and the events before it."""
        name = self.id.encode()
        return digest(_HEAD.pack(self.time, self.kind, len(name)) + name + self.content + self.text)

    def follows(self, before: bytes) -> bool:
        """Whether it is what was written after the event with that digest."""
        if self.x is not None and content_digest(self.x, self.context) != self.content:
            return False
        if self.x is None and self.context is not None:
            return False
        try:
            return link(before, self.seq, self.own) == self.digest
        except (TypeError, ValueError, AttributeError):  # of a kind that it never had
            return False

    def to_decision(self, learner: str, restorer: Restorer | None = None) -> Decision:
        """The Decision, live or as it was kept; without a row if that was erased.

        Args:
            learner: whose it is, by its id.
            restorer: of that learner, for those who restore many.
        """
        if self.decision is None:
            body = self.body
            row = None if self.x is None else unpack_row(self.x, body["width"])
            if restorer is not None:
                self.decision = restorer.decision(body["decision"], row)
                return self.decision
            self.decision = Decision.from_dict({**body["decision"], "x": None, "learner": learner}, x=row)
        return self.decision

    def __repr__(self) -> str:
        return f"Event({self.seq}, {KINDS.get(self.kind)}, {self.id!r})"


def digest(data: bytes) -> bytes:
    return sha256(data).digest()[:16]


def content_digest(x: bytes, context: bytes | None) -> bytes:
    """What is kept of features and context even when they are erased."""
    return digest(_LENGTH.pack(len(x)) + x + (context or b""))


def chain_start(meta: dict[str, Any]) -> bytes:
    """The digest before the first event: of what the journal was made for."""
    return digest(b"superarm journal" + dumps(sorted(meta.items())))


def link(before: bytes, seq: int, own: bytes) -> bytes:
    """The digest of an event, given the one before it. (postgres_schema.py has the same in SQL.)"""
    return digest(before + _SEQ.pack(seq) + own)


# ---------------------------------------------------------------- decisions


def pack_row(x: AnyRow | dict[str, Any]) -> bytes:
    if isinstance(x, dict):
        return dumps(x)
    if isinstance(x, Row):
        parts = (x.dense.astype("<f4"), x.indices.astype("<i4"), x.values.astype("<f4"))
        return b"".join(part.tobytes() for part in parts)
    return x.astype("<f4", copy=False).tobytes()


def widths(x: AnyRow | dict[str, Any]) -> list[int] | str | None:
    """What `unpack_row` must be told: None for a dense row, "names", or the columns of both parts."""
    if isinstance(x, dict):
        return "names"
    return [len(x.dense), x.width] if isinstance(x, Row) else None


def unpack_row(data: bytes, width: list[int] | str | None) -> AnyRow | dict[str, Any]:
    """The row that `pack_row` packed, whose `widths` were ``width``."""
    if width is None:
        return np.frombuffer(data, "<f4")
    if isinstance(width, str):
        return loads(data)  # type: ignore[no-any-return]
    d, columns = width
    dense, rest = data[: 4 * d], data[4 * d :]
    half = len(rest) // 2
    index, value = np.frombuffer(rest[:half], "<i4"), np.frombuffer(rest[half:], "<f4")
    return Row.of(np.frombuffer(dense, "<f4"), index, value, columns)


def decision_event(
    time: float, id_: str, decision: Decision, context: bytes | None, facts: dict[str, Any]
) -> Event:
    """The event of a decision; ``facts`` are those that the Decision itself does not carry."""
    x, made = decision.x, decision.to_dict(row=False)
    del made["learner"]  # all of them are of one learner
    body = {"decision": made, "width": widths(x), **facts}
    packed = pack_row(x)
    event = Event(0, time, DECISION, id_, packed, context, dumps(body), content_digest(packed, context))
    event._body, event.decision = body, decision
    return event
