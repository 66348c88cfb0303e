"""The kinds of events, how a Decision is kept in one, and the chain of their digests.

An event is a fact: something that happened outside. Its effect on the model is computed (projector.py).

    DECISION    a row came and this set was shown     `DecisionBody`
    OUTCOME     hit or miss, or the right label       `OutcomeBody`
    TIMEOUT     time ran out                          `OutcomeBody`: what that counts as; hit is null for nothing
    ANSWER      a person answered about a row         `AnswerBody`; several may be about one row
    CORRECTION  an earlier event is taken back        `AnswerBody`: what holds in its place; hit is null for nothing
    CHANGE      an operator changed something         a `Change`, as a dict (changes.py)
    ERASURE     content was to be erased              `Erase`, as a dict (changes.py)

``target_seq`` is the number of the event that it is about. A decision keeps its row as raw bytes (float32; of a sparse
row int32 indices, then float32 values; of one with names the JSON that came).

One decision, one outcome and one timeout may have an id; answers and corrections as many as there are.
Each event has a digest of its content (x and context: what may be about a person), and one of the event before
it, its number and all else. So a changed bit breaks the chain at its place, and erasing leaves it whole:

    content_digest = H(len(x) x context)     own = H(time kind id content_digest body)
    chain_digest = H(chain_digest before, seq, own)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from hashlib import sha256
from math import isnan, nan
from struct import Struct as Packer
from struct import error as struct_error
from typing import Any

import numpy as np
from msgspec import MsgspecError, Struct
from msgspec.json import Decoder, Encoder
from msgspec.structs import astuple
from orjson import dumps as dumps  # for packages that do not ask for the extra themselves
from orjson import loads as loads

from superarm._types import JsonObject
from superarm.data.rows import AnyRow, Row
from superarm.decisions import Decision
from superarm.journal.errors import JournalDamaged


class EventKind(IntEnum):
    """The number that stands for a kind of event in a journal."""

    DECISION = 1
    OUTCOME = 2
    TIMEOUT = 3
    ANSWER = 4
    CORRECTION = 5
    CHANGE = 6
    ERASURE = 7


DECISION, OUTCOME, TIMEOUT, ANSWER, CORRECTION, CHANGE, ERASURE = EventKind
_LENGTH, _HEAD, _SEQ = Packer("<q"), Packer("<dBB"), Packer(">q")


class DecisionBody(Struct, omit_defaults=True, gc=False):
    """The facts of a decision: what `Decision.to_dict` gives, and more."""

    labels: list[str]
    drawn: list[str]
    top: list[str]
    rule: JsonObject | None
    log_propensity: float | None
    round: int
    model_seq: int  # the last event that was projected into the deciding model
    n_learnt: int  # how many outcomes that had learnt
    n_labels: int  # how many labels it had
    eligible: list[str] | None = None
    row_layout: list[int] | str | None = None  # the layout that `unpack_row` needs
    # as in the request: the set size, the eligible labels, the promised coverage
    set_size: int | None = None
    requested_eligible: list[str] | None = None
    coverage: float | None = None
    cursor: list[float] | None = None  # what deciding had moved in the rule, where many processes decide


class OutcomeBody(Struct, omit_defaults=True, gc=False):
    """The facts of an outcome, or of a timeout: hit or miss, and the right label where it is named."""

    target_seq: int
    hit: bool | None
    label: str | None = None


class AnswerBody(Struct, omit_defaults=True, gc=False):
    """A person's answer: whether the right label is among ``labels``; left out, among those that were shown.

    Of a labelling: ``label`` is the one that was named; ``audit`` that the row would have been accepted unasked;
    ``final`` that earlier answers do not count; ``target_seq``, of a correction, the answer that it takes back.
    """

    by: str
    hit: bool | None = None
    labels: list[str] | None = None
    label: str | None = None
    audit: bool = False
    final: bool = False
    target_seq: int = 0


encode = Encoder().encode
_BODIES = {DECISION: DecisionBody, OUTCOME: OutcomeBody, TIMEOUT: OutcomeBody}
_BODIES |= {ANSWER: AnswerBody, CORRECTION: AnswerBody}
_DECODE: dict[int, Callable[[bytes], Any]] = {kind: Decoder(body).decode for kind, body in _BODIES.items()}


class Event(Struct, eq=False, gc=False):
    """One row of a journal."""

    seq: int  # its number, from 1; 0 before it is appended
    time: float  # seconds since 1970
    kind: int  # an EventKind
    id: str  # of the decision or row that it is about; empty for changes
    x: bytes | None  # the row of a decision; None if there is none, or none any more
    context: bytes | None  # what came with it, as JSON
    body_json: bytes  # the rest, as JSON; `body` is what it holds
    content_digest: bytes = b""  # of x and context; empty where there never were any
    chain_digest: bytes = b""  # of the chain up to this event
    erased: int | None = None  # the number of the event that asked to erase x and context
    _body: Any = None

    @classmethod
    def new(cls, time: float, kind: int, body: Any, id_: str = "") -> Event:
        """Return an event without content, to be appended."""
        return cls(
            seq=0, time=time, kind=kind, id=id_, x=None, context=None, body_json=encode(body), _body=body
        )

    @property
    def body(self) -> Any:
        """A DecisionBody, an OutcomeBody, an AnswerBody, or a dict; JournalDamaged if it is none of them."""
        body = self._body
        if body is None:
            try:
                body = self._body = _DECODE.get(self.kind, loads)(self.body_json)
            except (MsgspecError, ValueError) as error:
                raise JournalDamaged(f"event {self.seq} cannot be read: {error}", event=self.seq) from error
        return body

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the event's row in the table of events."""
        return astuple(self)[:10]

    def own_digest(self) -> bytes:
        """Return the digest of this event alone, without its number and the events before it."""
        name = self.id.encode()
        head = _HEAD.pack(self.time, self.kind, len(name))
        return sha256(b"".join((head, name, self.content_digest, self.body_json))).digest()[:16]

    def is_intact(self, previous: bytes) -> bool:
        """Return whether the event is what was written after the event with that digest."""
        x = self.x
        if x is not None and digest_content(x, self.context) != self.content_digest:
            return False
        if x is None and (self.context is not None or (self.content_digest and self.erased is None)):
            return False
        try:
            return next_chain_digest(previous, self.seq, self.own_digest()) == self.chain_digest
        except (TypeError, ValueError, AttributeError, struct_error):  # a column of another type
            return False

    # ------------------------------------------------------------ of a decision

    def row(self) -> AnyRow | JsonObject:
        """Return the row of a decision that was not erased."""
        assert self.x is not None
        return unpack_row(self.x, self.body.row_layout)

    def to_decision(self, learner_id: str) -> Decision:
        """Return the decision of a learner with this id; without a row if that was erased."""
        body = self.body
        return Decision.from_parts(
            x=None if self.x is None else self.row(),
            sets=(tuple(body.labels), tuple(body.drawn), tuple(body.top)),
            size=len(body.labels),
            eligible=None if body.eligible is None else tuple(body.eligible),
            n_labels=body.n_labels,
            log_propensity=nan if body.log_propensity is None else body.log_propensity,
            rule=body.rule,
            round=body.round,
            learner=learner_id,
        )

    def __repr__(self) -> str:
        return f"Event({self.seq}, {EventKind(self.kind).name}, {self.id!r})"


def digest(data: bytes) -> bytes:
    return sha256(data).digest()[:16]


def digest_content(x: bytes, context: bytes | None) -> bytes:
    """Return the digest of features and context, which stays when they are erased."""
    return sha256(b"".join((_LENGTH.pack(len(x)), x, context or b""))).digest()[:16]


def chain_start(meta: JsonObject) -> bytes:
    """Return the digest before the first event: of what the journal was made for."""
    return digest(b"superarm journal" + dumps(sorted(meta.items())))


def next_chain_digest(previous: bytes, seq: int, own_digest: bytes) -> bytes:
    """Return the digest of an event, given the one before it. (postgres_schema.py has the same in SQL.)"""
    return sha256(previous + _SEQ.pack(seq) + own_digest).digest()[:16]


# ---------------------------------------------------------------- decisions


def pack_row(x: AnyRow | JsonObject) -> bytes:
    if isinstance(x, dict):
        return dumps(x)
    if isinstance(x, Row):
        parts = (x.dense.astype("<f4"), x.indices.astype("<i4"), x.values.astype("<f4"))
        return b"".join(part.tobytes() for part in parts)
    return x.astype("<f4", copy=False).tobytes()


def row_layout(x: AnyRow | JsonObject) -> list[int] | str | None:
    """Return the layout that `unpack_row` needs: None for a dense row, "names", or the columns of both parts."""
    if isinstance(x, dict):
        return "names"
    return [len(x.dense), x.width] if isinstance(x, Row) else None


def unpack_row(data: bytes, layout: list[int] | str | None) -> AnyRow | JsonObject:
    """Return the row that `pack_row` packed, whose `row_layout` was ``layout``."""
    if layout is None:
        return np.frombuffer(data, "<f4")
    if isinstance(layout, str):
        return loads(data)  # type: ignore[no-any-return]
    d, columns = layout
    dense, rest = data[: 4 * d], data[4 * d :]
    half = len(rest) // 2
    index, value = np.frombuffer(rest[:half], "<i4"), np.frombuffer(rest[half:], "<f4")
    return Row.from_parts(np.frombuffer(dense, "<f4"), index, value, columns)


def decision_event(time: float, id_: str, decision: Decision, context: bytes | None, **fields: Any) -> Event:
    """Return the event of a new decision; ``fields`` are facts that the Decision itself does not carry."""
    x, size = decision.x, decision.size
    labels = decision.vocabulary.decode(decision.sets)
    body = DecisionBody(
        labels=labels[:size],
        drawn=labels[size : 2 * size],
        top=labels[2 * size :],
        eligible=decision.eligible,
        rule=decision.rule,
        log_propensity=None if isnan(decision.log_propensity) else decision.log_propensity,
        round=decision.round,
        row_layout=row_layout(x),
        **fields,
    )
    packed = pack_row(x)
    content = digest_content(packed, context)
    return Event(
        seq=0,
        time=time,
        kind=DECISION,
        id=id_,
        x=packed,
        context=context,
        body_json=encode(body),
        content_digest=content,
        _body=body,
    )
