"""The three kinds of events in a journal, and how a Decision is kept in one.

A decision event holds x as raw bytes (float32; for a sparse row int32 indices, then float32 values)
and the rest as JSON. An outcome or timeout event names the decision by id, and by the number of its
event (``of``), so that reading on never needs an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.decision import Decision
from superarm.rows import Row, SparseRow
from superarm.service.core.fastjson import loads

__all__ = ["DECISION", "OUTCOME", "TIMEOUT", "Event", "decision_body", "same_decision", "to_decision"]

DECISION, OUTCOME, TIMEOUT = 1, 2, 3


@dataclass(slots=True)
class Event:
    """One row of the journal. (Not frozen: a million of them are made on every replay.)"""

    seq: int
    time: float  # seconds since 1970, never less than the event before
    kind: int
    id: str  # of the decision
    x: bytes | None
    text: bytes  # the rest, as JSON

    @property
    def body(self) -> dict[str, Any]:
        return loads(self.text)  # type: ignore[no-any-return]


def pack_row(x: Row) -> bytes:
    if isinstance(x, SparseRow):
        return x.indices.astype("<i4").tobytes() + x.values.astype("<f4").tobytes()
    return x.astype("<f4", copy=False).tobytes()


def unpack_row(data: bytes, width: int | None) -> Row:
    """The row; ``width`` is that of a sparse one, ``None`` for a dense one."""
    if width is not None:
        half = len(data) // 2
        return SparseRow(np.frombuffer(data[:half], "<i4"), np.frombuffer(data[half:], "<f4"), width)
    return np.frombuffer(data, "<f4")


def decision_body(decision: Decision, asked: int | None, context: Any) -> dict[str, Any]:
    """All of a decision but its row; ``asked`` is the set size that the request named, if any."""
    body = decision.to_dict(row=False)
    del body["learner"]  # all of them are of one learner
    width = decision.x.width if isinstance(decision.x, SparseRow) else None
    return body | {"width": width, "asked": asked, "context": context}


def to_decision(x: bytes | None, body: dict[str, Any], learner: str) -> Decision:
    """The Decision that was kept, as that learner's own."""
    assert x is not None
    return Decision.from_dict({**body, "learner": learner}, x=unpack_row(x, body["width"]))


def same_decision(made: Decision, body: dict[str, Any]) -> bool:
    """Whether a decision came out as it was kept, to the last bit."""
    again = decision_body(made, body["asked"], body["context"])
    return all(body[name] == value for name, value in again.items())
