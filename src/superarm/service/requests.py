"""Requests for decisions and of outcomes: made of messages, and compared with the first one of the same id.

Features (or, of a service for a model of your own, ``{"scores": {"login": -0.2, …}}``) come in three forms:

    [0.5, 1, …]                                   numbers
    {"indices": [3, 17], "values": [1.0, 0.5]}    a sparse row
    {"age": 41, "colour": "red", "member": true}  names (superarm/data/columns.py)

The first row of a journal decides whether its rows have names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm._types import JsonObject
from superarm.data.cells import json_row
from superarm.data.rows import AnyRow, Row, as_row, conform_row
from superarm.errors import InvalidInput, Unquoted
from superarm.journal.events import Event, OutcomeBody, dumps, loads, pack_row
from superarm.learners import Learner, Scores
from superarm.service.messages import DecisionRequestBody, OutcomeRequest
from superarm.service.request_errors import Conflict, DecisionErased

CONTEXT_BYTES, CONTEXT_DEPTH = 65_536, 64
MAX_SET_SIZE = 256  # labels of a set, if the service's own sets are not larger: the draw takes its time
MAX_NAMES = 5_000  # named features of a row
SPARSE_KEYS = {"dense", "indices", "values"}  # of a sparse row; dense where rows have both parts


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A request for a set."""

    x: AnyRow | JsonObject  # a dict has names, or is a score for each label
    id: str | None = None
    eligible: tuple[str, ...] | None = None
    set_size: int | None = None
    context: Any = None
    coverage: float | None = None


# ---------------------------------------------------------------- from messages


def to_decision_request(request: DecisionRequestBody, learner: Learner) -> DecisionRequest:
    """Return a request for a decision, checked as far as the learner of the service does not check it itself."""
    x = _row_or_scores(request, learner)
    eligible, size = request.eligible, request.set_size
    if eligible is not None:
        _check_eligible(eligible, learner, request.scores)
    if size is not None:
        max_size = min(learner.n_labels, max(MAX_SET_SIZE, learner.set_size))
        if size > max_size:
            raise InvalidInput.must("set_size", "decision", f"at most {max_size}", size)
    labels = None if eligible is None else tuple(eligible)
    return DecisionRequest(x, request.id, labels, size, request.context, request.coverage)


def _row_or_scores(request: DecisionRequestBody, learner: Learner) -> AnyRow | JsonObject:
    """Return the row, or the scores, whichever this service takes."""
    features, scores = request.features, request.scores
    if features is not None and scores is None:
        if isinstance(learner, Scores):
            raise InvalidInput.must("features", "decision", "left out: this service takes scores", features)
        return _row(features, learner)
    if scores is None or features is not None:
        raise InvalidInput.must(
            "features", "request", "given, or scores in its place, and not both", features
        )
    if not isinstance(learner, Scores):
        wanted = "left out: this service takes features (superarm serve --learner scores takes scores)"
        raise InvalidInput.must("scores", "decision", wanted, scores)
    return scores


def _row(features: list[float] | JsonObject, learner: Learner) -> AnyRow | JsonObject:
    width, columns = learner.n_features, learner.columns
    if isinstance(features, dict) and not _is_sparse(features, learner):
        if len(features) > MAX_NAMES:
            raise InvalidInput.must("features", "decision", f"at most {MAX_NAMES} names", len(features))
        return features
    if columns is not None and not columns.is_numeric_only:
        raise InvalidInput.must("features", "decision", "names, as in the first row", Unquoted("numbers"))
    if isinstance(features, dict) or isinstance(width, tuple):
        return _sparse_row(features, width)
    if len(features) != (width or len(features) or 1):
        wanted = f"of length {width or 'one or more'}"
        raise InvalidInput.must("features", "decision", wanted, Unquoted(f"length {len(features)}"))
    return np.array(features, np.float32)


def _is_sparse(features: JsonObject, learner: Learner) -> bool:
    """Return whether an object is a sparse row; a row with names may have columns of vectors called so."""
    if not features.keys() <= SPARSE_KEYS:
        return False
    are_lists = all(type(features.get(name)) is list for name in ("indices", "values"))
    columns = learner.columns
    names = () if columns is None else (*columns.columns, *columns.left_out)
    return are_lists and features.keys().isdisjoint(names)


def _sparse_row(features: list[float] | JsonObject, width: int | tuple[int, int] | None) -> Row:
    """Return a row of indices and values, with a dense part where the service's rows have both."""
    if width is None:
        wanted = "numbers or names: sparse rows need superarm serve --features"
        raise InvalidInput.must("features", "decision", wanted, Unquoted("indices and values"))
    n_dense, n_sparse = width if isinstance(width, tuple) else (0, width)
    names = ("dense", "indices", "values") if n_dense else ("indices", "values")
    lists = features if isinstance(features, dict) else {}
    are_lists = lists.keys() == set(names) and all(type(part) is list for part in lists.values())
    if not are_lists or len(lists["indices"]) != len(lists["values"]):
        wanted = f"lists {' and '.join(names)}, the last two of one length, and no more"
        raise InvalidInput.must("features", "decision", wanted, features)
    dense, indices, values = lists.get("dense", []), lists["indices"], lists["values"]
    if len(dense) != n_dense:
        got = Unquoted(f"length {len(dense)}")
        raise InvalidInput.must("features.dense", "decision", f"of length {n_dense}", got)
    numbers = np.array(indices, np.float64)
    is_invalid = (numbers < 0) | (numbers >= n_sparse) | (numbers != np.floor(numbers))
    if is_invalid.any():
        i = int(is_invalid.argmax())
        wanted, got = f"a whole number in [0, {n_sparse})", Unquoted(f"{indices[i]:g}")
        raise InvalidInput.must(f"features.indices[{i}]", "decision", wanted, got)
    order = np.argsort(numbers, kind="stable")
    index = numbers[order].astype(np.int32)
    repeated = index[1:][np.diff(index) == 0]
    if repeated.size:
        raise InvalidInput.must("features.indices", "decision", "distinct", int(repeated[0]))
    return Row.from_parts(np.array(dense, np.float32), index, np.array(values, np.float32)[order], n_sparse)


def _check_eligible(eligible: list[str], learner: Learner, scores: dict[str, float] | None) -> None:
    for i, label in enumerate(eligible):
        if learner.vocabulary.index(label) is None:
            raise InvalidInput.must(f"eligible[{i}]", "decision", "a known label", label)
        if scores is not None and label not in scores:
            raise InvalidInput.must("eligible", "decision", "labels that have a score", label)


def context_bytes(context: Any) -> bytes | None:
    """Return the context as JSON; refuse one that is too deep, too long, or no JSON at all."""
    if context is None:
        return None
    try:
        data = dumps(context)
    except (TypeError, ValueError, RecursionError) as error:
        wanted = f"JSON, with integers of at most 64 bits, nested at most {CONTEXT_DEPTH} deep"
        got = Unquoted("a longer integer") if "64-bit" in str(error) else error  # (orjson's words)
        raise InvalidInput.must("context", "decision", wanted, got) from error
    if len(data) > CONTEXT_BYTES:
        wanted = f"of at most {CONTEXT_BYTES} bytes as JSON"
        raise InvalidInput.must("context", "decision", wanted, Unquoted(f"{len(data)} bytes"))
    if data.count(b"[") + data.count(b"{") > CONTEXT_DEPTH and _depth(context) > CONTEXT_DEPTH:
        wanted = f"nested at most {CONTEXT_DEPTH} deep"
        raise InvalidInput.must("context", "decision", wanted, Unquoted("a deeper one"))
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
