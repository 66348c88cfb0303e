"""From the bytes of a body to a message, and on to a request of the service; or an error that names the field.

Features (or, of a service for a model of your own, ``{"scores": {"login": -0.2, …}}``) come in three forms:

    [0.5, 1, …]                                   numbers
    {"indices": [3, 17], "values": [1.0, 0.5]}    a sparse row
    {"age": 41, "colour": "red", "member": true}  names (superarm/data/columns.py)

The first row of a journal decides whether its rows have names.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec
import numpy as np

from superarm._types import JsonObject
from superarm._validation import ANY_KEY, KeyPath, format_path, parse_fault
from superarm.data.rows import AnyRow, Row
from superarm.decisions.ids import ID_DESCRIPTION, IS_ID
from superarm.errors import Description
from superarm.learners import Learner, Scores
from superarm.service.errors import HttpError, InvalidRequest
from superarm.service.messages import DecisionRequestBody, Id
from superarm.service.requests import DecisionRequest

MAX_SET_SIZE = 256  # labels of a set, if the service's own sets are not larger: the draw takes its time
MAX_NAMES = 5_000  # named features of a row
SPARSE_KEYS = {"dense", "indices", "values"}  # of a sparse row; dense where rows have both parts

T = TypeVar("T")

# ---------------------------------------------------------------- from bytes to a message


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Return the message in a body."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid_request(error, body) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_finite(bytes(body))
        raise HttpError.must("body", "request", "JSON", error, status=400) from None
    except RecursionError:
        raise HttpError.must(
            "body", "request", "JSON of a sane depth", Description("a deeper one"), status=400
        ) from None


def decode_query(kind: type[T], query: dict[str, str]) -> T:
    """Return the message in a query string."""
    try:
        return msgspec.convert(query, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_request(error, query) from None


def _invalid_request(
    error: msgspec.ValidationError, source: bytes | msgspec.Raw | dict[str, str]
) -> InvalidRequest:
    """Return the error for a body or a query that msgspec refuses: which field, what it must be, what it is."""
    fault = parse_fault(error)
    field, value = _locate(fault.keys, source)
    for name, problem in ((fault.missing, "is missing"), (fault.unknown, "is not a known field")):
        if name is not None:
            name = f"{field}.{name}".lstrip(".")
            return InvalidRequest(f"{name} of request {problem}", field=name)
    field = field or "body"
    if fault.text.endswith("out of range"):
        return InvalidRequest(
            f"{field} of request must be a number of 64 bits, got a larger one", field=field
        )
    wanted = ID_DESCRIPTION if fault.pattern else fault.wanted or "one of the values in /docs"
    got = fault.got
    if fault.sized and isinstance(value, list | dict | str):
        got = str(len(value))
    if got is None:
        return InvalidRequest.must(field, "request", wanted, value)
    return InvalidRequest(f"{field} of request must be {wanted}, got {got}", field=field)


def _locate(keys: KeyPath, source: bytes | msgspec.Raw | dict[str, str]) -> tuple[str, Any]:
    """Return the name of a field, and its value (None if it cannot be read), in a body or a query."""
    try:
        value: Any = source if isinstance(source, dict) else json.loads(bytes(source))
    except (ValueError, RecursionError):  # the rest of the body is broken, too
        value = None
    path = KeyPath()
    for key in keys:
        if key == ANY_KEY:
            invalid = _first_invalid_key(format_path(path), value)
            if invalid is None:
                return format_path(path), None
            key = invalid
        path = (*path, key)
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            value = None
    return format_path(path), value


def _first_invalid_key(field: str, values: Any) -> str | None:
    """Return the first key of features or scores (which have free keys) whose value is invalid."""
    for name, value in values.items() if isinstance(values, dict) else ():
        try:
            msgspec.convert({field: {name: value}}, DecisionRequestBody)
        except msgspec.ValidationError:
            return str(name)
    return None


def _check_finite(body: bytes) -> None:
    """Refuse NaN and Infinity by the name of their field: they are not JSON, but many clients send them."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return
    stack = [("", data)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, float) and not np.isfinite(value):
            raise InvalidRequest.must(path.lstrip("."), "request", "finite", value)
        if isinstance(value, dict):
            stack += [(f"{path}.{key}", part) for key, part in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", part) for i, part in enumerate(value)]


# ---------------------------------------------------------------- from a message to a request of the service


def to_decision_request(request: DecisionRequestBody, learner: Learner) -> DecisionRequest:
    """Return a request for a decision, checked as far as the learner of the service does not check it itself."""
    x = _features(request, learner)
    eligible, size = request.eligible, request.set_size
    if eligible is not None:
        _check_eligible(eligible, learner, request.scores)
    if size is not None:
        max_size = min(learner.n_labels, max(MAX_SET_SIZE, learner.set_size))
        if size > max_size:
            raise InvalidRequest.must("set_size", "decision", f"at most {max_size}", size)
    labels = None if eligible is None else tuple(eligible)
    return DecisionRequest(x, request.id, labels, size, request.context, request.coverage)


def check_id(value: str) -> Id:
    """Return an id out of a path, if it is one."""
    if not IS_ID(value):
        raise InvalidRequest.must("id", "request", ID_DESCRIPTION, value)
    return value


def _features(request: DecisionRequestBody, learner: Learner) -> AnyRow | JsonObject:
    """Return the row, or the scores, whichever this service takes."""
    features, scores = request.features, request.scores
    if features is not None and scores is None:
        if isinstance(learner, Scores):
            raise InvalidRequest.must("features", "decision", "left out: this service takes scores", features)
        return _row(features, learner)
    if scores is None or features is not None:
        raise InvalidRequest.must(
            "features", "request", "given, or scores in its place, and not both", features
        )
    if not isinstance(learner, Scores):
        wanted = "left out: this service takes features (superarm serve --learner scores takes scores)"
        raise InvalidRequest.must("scores", "decision", wanted, scores)
    return scores


def _row(features: list[float] | JsonObject, learner: Learner) -> AnyRow | JsonObject:
    width, columns = learner.n_features, learner.columns
    if isinstance(features, dict) and not _is_sparse(features, learner):
        if len(features) > MAX_NAMES:
            raise InvalidRequest.must("features", "decision", f"at most {MAX_NAMES} names", len(features))
        return features
    if columns is not None and not columns.is_numeric_only:
        raise InvalidRequest.must(
            "features", "decision", "names, as in the first row", Description("numbers")
        )
    if isinstance(features, dict) or isinstance(width, tuple):
        return _sparse_row(features, width)
    if len(features) != (width or len(features) or 1):
        wanted = f"of length {width or 'one or more'}"
        raise InvalidRequest.must("features", "decision", wanted, Description(f"length {len(features)}"))
    return np.array(features, np.float32)


def _is_sparse(features: JsonObject, learner: Learner) -> bool:
    """Return whether an object is a sparse row; a row with names may have a column of vectors called indices."""
    if type(features.get("indices")) is not list:
        return False
    columns = learner.columns
    if columns is None and learner.n_features is not None:  # rows are numbers
        return True
    return features.keys() <= SPARSE_KEYS and (columns is None or "indices" not in columns.columns)


def _sparse_row(features: list[float] | JsonObject, width: int | tuple[int, int] | None) -> Row:
    """Return a row of indices and values, with a dense part where the service's rows have both."""
    if width is None:
        wanted = "numbers or names: sparse rows need superarm serve --features"
        raise InvalidRequest.must("features", "decision", wanted, Description("indices and values"))
    d, n_features = width if isinstance(width, tuple) else (0, width)
    names = ("dense", "indices", "values") if d else ("indices", "values")
    parts = [] if isinstance(features, list) else [features.get(name) for name in names]
    lists = [part for part in parts if type(part) is list]
    if len(lists) != len(names) or len(features) != len(names) or len(lists[-1]) != len(lists[-2]):
        wanted = f"lists {' and '.join(names)}, the last two of one length, and no more"
        raise InvalidRequest.must("features", "decision", wanted, features)
    dense, indices, values = lists if d else ([], *lists)
    if len(dense) != d:
        raise InvalidRequest.must(
            "features.dense", "decision", f"of length {d}", Description(f"length {len(dense)}")
        )
    numbers = np.array(indices, np.float64)
    invalid = np.flatnonzero((numbers < 0) | (numbers >= n_features) | (numbers != np.floor(numbers)))
    if invalid.size:
        i = int(invalid[0])
        wanted = f"a whole number in [0, {n_features})"
        raise InvalidRequest.must(
            f"features.indices[{i}]", "decision", wanted, Description(f"{indices[i]:g}")
        )
    order = np.argsort(numbers, kind="stable")
    index = numbers[order].astype(np.int32)
    repeated = np.flatnonzero(np.diff(index) == 0)
    if repeated.size:
        raise InvalidRequest.must("features.indices", "decision", "distinct", int(index[repeated[0]]))
    return Row.from_parts(np.array(dense, np.float32), index, np.array(values, np.float32)[order], n_features)


def _check_eligible(eligible: list[str], learner: Learner, scores: dict[str, float] | None) -> None:
    for i, label in enumerate(eligible):
        if learner.label_set.number(label) is None:
            raise InvalidRequest.must(f"eligible[{i}]", "decision", "a known label", label)
        if scores is not None and label not in scores:
            raise InvalidRequest.must("eligible", "decision", "labels that have a score", label)
