"""Requests for decisions and of outcomes; and whether a repeated one asks for the same as the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from superarm._types import JsonObject
from superarm.data.cells import json_row
from superarm.data.rows import AnyRow, as_row, conform_row
from superarm.errors import Description
from superarm.journal.events import Event, OutcomeBody, dumps, loads, pack_row
from superarm.learners import Learner
from superarm.service.errors import Conflict, DecisionErased, InvalidRequest

CONTEXT_BYTES, CONTEXT_DEPTH = 65_536, 64


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A request for a set."""

    x: AnyRow | JsonObject  # a dict has names, or is a score for each label
    id: str | None = None
    eligible: tuple[str, ...] | None = None
    set_size: int | None = None
    context: Any = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """The outcome of a decision: hit or miss, or the right label."""

    id: str
    hit: bool | None = None
    label: str | None = None


def context_bytes(context: Any) -> bytes | None:
    """Return the context as JSON; refuse one that is too deep, too long, or no JSON at all."""
    if context is None:
        return None
    try:
        data = dumps(context)
    except (TypeError, ValueError, RecursionError) as error:
        wanted = f"JSON, with integers of at most 64 bits, nested at most {CONTEXT_DEPTH} deep"
        got = Description("a longer integer") if "64-bit" in str(error) else error  # (orjson's words)
        raise InvalidRequest.must("context", "decision", wanted, got) from error
    if len(data) > CONTEXT_BYTES:
        wanted = f"of at most {CONTEXT_BYTES} bytes as JSON"
        raise InvalidRequest.must("context", "decision", wanted, Description(f"{len(data)} bytes"))
    if data.count(b"[") + data.count(b"{") > CONTEXT_DEPTH and _depth(context) > CONTEXT_DEPTH:
        wanted = f"nested at most {CONTEXT_DEPTH} deep"
        raise InvalidRequest.must("context", "decision", wanted, Description("a deeper one"))
    return data


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list | tuple):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


# ---------------------------------------------------------------- repeated requests


def check_same_decision(
    event: Event, request: DecisionRequest, context: bytes | None, learner: Learner
) -> None:
    """Refuse a request whose id has a decision already, unless it asks for the same."""
    if event.x is None:
        raise DecisionErased.must("id", "decision", "one whose features were not erased", request.id)
    body = event.body
    contexts = (None if data is None else loads(data) for data in (context, event.context))
    checks = {
        "features": _has_same_row(request.x, event, learner),
        "eligible": sorted(request.eligible or ()) == sorted(body.requested_eligible or ()),
        "set_size": request.set_size == body.set_size,
        "coverage": request.coverage == body.coverage,
        "context": _same_json(*contexts),
    }
    for field, same in checks.items():
        if not same:
            message = f"{field} of decision must be as in the first request with the id {event.id!r}"
            raise Conflict(message, field=field)


def _has_same_row(x: Any, event: Event, learner: Learner) -> bool:
    layout = learner.inputs.layout
    if isinstance(x, dict) or event.body.row_layout == "names":
        return isinstance(x, dict) and _same_json(json_row(x), loads(event.x or b"{}"))
    row = as_row(x, learner.n_features, "decision")
    return pack_row(row if layout is None else conform_row(row, layout, "decision")) == event.x


def check_same_outcome(first: OutcomeBody, request: OutcomeRequest, hit: bool) -> None:
    """Refuse an outcome that is not what was reported first."""
    if hit == first.hit and request.label in (None, first.label):
        return
    field = "hit" if request.label is None else "label"
    wanted = f"hit {first.hit}" if first.label is None or field == "hit" else f"label {first.label!r}"
    got = request.hit if request.label is None else request.label
    raise Conflict.must(field, "outcome", f"as in the first outcome ({wanted})", got)


def _same_json(a: Any, b: Any) -> bool:
    """Return whether two values are the same in JSON: 1 and 1.0 are, 1 and true are not (Python thinks so)."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same_json(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
