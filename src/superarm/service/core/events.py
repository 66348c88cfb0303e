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
from superarm.rows import Row
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
    if isinstance(x, tuple):
        return x[0].astype("<i4").tobytes() + x[1].astype("<f4").tobytes()  # type: ignore[no-any-return]
    return x.astype("<f4", copy=False).tobytes()  # type: ignore[no-any-return]


def unpack_row(data: bytes, sparse: bool) -> Row:
    if sparse:
        half = len(data) // 2
        return np.frombuffer(data[:half], "<i4"), np.frombuffer(data[half:], "<f4")
    return np.frombuffer(data, "<f4")


def decision_body(decision: Decision, asked: int | None, context: Any) -> dict[str, Any]:
    """All of a decision but its row; ``asked`` is the set size that the request named, if any."""
    return {
        "sparse": isinstance(decision.x, tuple),
        "labels": decision.labels,
        "drawn": decision.drawn,
        "top": decision.top,
        "eligible": decision.eligible,
        "gamma": decision.gamma,
        "rho": decision.rho,
        "odds": [None if value != value else value for value in decision.odds.tolist()],
        "round": decision.round,
        "asked": asked,
        "context": context,
    }


def to_decision(x: bytes | None, body: dict[str, Any], learner: str) -> Decision:
    """The Decision that was kept, as that learner's own."""
    assert x is not None
    row = unpack_row(x, body["sparse"])
    if body["sparse"]:
        row = {"indices": row[0], "values": row[1]}
    return Decision.from_dict({**body, "x": row, "learner": learner})


def same_decision(made: Decision, body: dict[str, Any]) -> bool:
    """Whether a decision came out as it was kept, to the last bit."""
    again = decision_body(made, body["asked"], body["context"])
    return all(body[name] == value for name, value in again.items())
