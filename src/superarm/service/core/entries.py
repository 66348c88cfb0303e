"""What a session is asked, what it is told, and what it keeps of both."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from orjson import dumps, loads

from superarm.decision import Decision
from superarm.rows import Row, SparseRow
from superarm.service.core.faults import Refused
from superarm.service.core.journal import STATES, Place

__all__ = ["Ask", "Cache", "Entry", "Reply", "context_bytes", "outcome_of"]

CONTEXT_BYTES, CONTEXT_DEPTH = 65_536, 64


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a set."""

    x: Row | dict[str, Any]  # a dict has names
    id: str | None = None
    eligible: tuple[str, ...] | None = None
    set_size: int | None = None
    context: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer about a decision: the bit, or the right label."""

    id: str
    hit: bool | None = None
    label: str | None = None


@dataclass(slots=True)
class Entry:
    """A decision and what has become of it."""

    place: Place
    x: bytes | None  # None once it was erased
    context: bytes | None
    body: dict[str, Any]
    decision: Decision
    outcome: dict[str, Any] | None

    @property
    def erased(self) -> bool:
        return self.x is None

    def shown(self) -> dict[str, Any]:
        """What the asker is told."""
        return {
            "id": self.place.id,
            "labels": self.body["labels"],
            "propensity": self.decision.propensity,
            "model_version": self.body["version"],
        }

    def full(self) -> dict[str, Any]:
        """All about it, as JSON-ready values; features and context are None once they were erased."""
        x = self.decision.x
        if isinstance(x, SparseRow):
            features: Any = {"indices": x.indices.tolist(), "values": x.values.tolist()}
        else:
            features = None if self.erased else x if isinstance(x, dict) else x.tolist()
        return {
            **self.shown(),
            "time": self.place.time,
            "state": STATES[self.place.state],
            "features": features,
            "top": self.body["top"],
            "eligible": self.body["eligible"],
            "set_size": len(self.body["labels"]),
            "context": None if self.context is None else loads(self.context),
            "erased": self.erased,
            "outcome": self.outcome,
        }


def outcome_of(at: float, timeout: bool, body: dict[str, Any]) -> dict[str, Any]:
    """What is told of an outcome or timeout event."""
    kept = {"hit": body["hit"], "label": body["label"], "time": at, "learnt": body["learnt"]}
    return kept | {"late": body["late"], "timeout": timeout}


def context_bytes(context: Any) -> bytes | None:
    """The context as JSON, before anything has moved: it may be too deep, too long, or no JSON at all."""
    if context is None:
        return None
    try:
        data = dumps(context)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused.must("context", "decision", "JSON, and not too deep", str(error)) from error
    if len(data) > CONTEXT_BYTES:
        wanted = f"of at most {CONTEXT_BYTES} bytes as JSON"
        raise Refused.must("context", "decision", wanted, f"{len(data)} bytes")
    if data.count(b"[") + data.count(b"{") > CONTEXT_DEPTH and _depth(context) > CONTEXT_DEPTH:
        wanted = f"nested at most {CONTEXT_DEPTH} deep"
        raise Refused.must("context", "decision", wanted, "a deeper one")
    return data


def _depth(value: Any) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo:
        part, depth = todo.pop()
        deepest = max(deepest, depth)
        if isinstance(part, dict | list | tuple):
            inside = part.values() if isinstance(part, dict) else part
            todo += [(one, depth + 1) for one in inside if isinstance(one, dict | list | tuple)]
    return deepest


class Cache:
    """The newest entries, as many as fit into so many bytes; older ones are read from the journal."""

    OVERHEAD = 3_000  # bytes of an entry beside its row, its context and its labels

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self._entries: OrderedDict[str, tuple[Entry, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, id_: str) -> Entry | None:
        found = self._entries.get(id_)
        return found[0] if found else None

    def put(self, entry: Entry) -> Entry:
        id_, body = entry.place.id, entry.body
        # a row is kept twice: as bytes and as an array
        size = self.OVERHEAD + 2 * len(entry.x or b"") + len(entry.context or b"") + 256 * len(body["labels"])
        if body["eligible"] is not None:
            size += 128 * len(body["eligible"])
        if id_ in self._entries:
            self.drop(id_)
        self._entries[id_] = entry, size
        self.bytes += size
        while self.bytes > self.most_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.bytes -= freed
        return entry

    def drop(self, id_: str) -> None:
        found = self._entries.pop(id_, None)
        if found:
            self.bytes -= found[1]

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0
