"""Bodies of requests: from bytes to Ask and Reply, or a refusal that names the field.

Features come in three forms:

    [0.5, 1, …]                                   n_features numbers
    {"indices": [3, 17], "values": [1.0, 0.5]}    a sparse row
    {"age": 41, "colour": "red", "member": true}  names, hashed into n_features places (see `place_of`)
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

import numpy as np

from superarm.rows import Row, SparseRow
from superarm.service.core.fastjson import JSONDecodeError, loads
from superarm.service.core.faults import Refused
from superarm.service.core.session import Ask, Reply
from superarm.service.http.refusals import HttpRefused

__all__ = ["Shape", "items", "parse_json", "place_of", "read_ask", "read_reply"]

MOST_ITEMS = 1_000
ID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")
NUMBERS = frozenset({int, float})
LARGEST = 3.4e38
FINITE = "finite as a 32-bit float"
ASK_FIELDS = frozenset({"features", "id", "eligible", "set_size", "context"})


class Shape:
    """What requests must fit: the number of features, and the labels."""

    __slots__ = ("known", "n_features", "n_labels")

    def __init__(self, n_features: int, known: Collection[str]) -> None:
        self.n_features, self.known, self.n_labels = n_features, frozenset(known), len(known)


def parse_json(body: bytes) -> Any:
    """The JSON in a body."""
    try:
        return loads(body)
    except JSONDecodeError as error:
        _find_not_finite(body)
        raise HttpRefused.must("body", "request", "JSON", str(error), status=400) from error


def _find_not_finite(body: bytes) -> None:
    """NaN and Infinity are not JSON, but many writers send them: then say where."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return
    todo = [("", data)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, float) and not np.isfinite(value):
            field = path.lstrip(".")
            raise Refused.must(field, "request", "finite", value)
        if isinstance(value, dict):
            todo += [(f"{path}.{key}", part) for key, part in value.items()]
        elif isinstance(value, list):
            todo += [(f"{path}[{i}]", part) for i, part in enumerate(value)]


def _refuse(field: str, of: str, be: str, got: object) -> Refused:
    return Refused.must(field, of, be, got)


def read_ask(data: Any, shape: Shape) -> Ask:
    """A request for a set."""
    if type(data) is not dict:
        raise _refuse("body", "decision", "an object", data)
    if not data.keys() <= ASK_FIELDS:
        unknown = min(data.keys() - ASK_FIELDS)
        raise _refuse(
            unknown, "decision", f"left out: the fields are {', '.join(sorted(ASK_FIELDS))}", data[unknown]
        )
    if "features" not in data:
        raise _refuse("features", "decision", "given", None)
    features = data["features"]
    if type(features) is list:
        x = _dense(features, shape.n_features)
    elif type(features) is dict:
        x = _sparse(features, shape) if type(features.get("indices")) is list else _hashed(features, shape)
    else:
        raise _refuse("features", "decision", "a list or an object", features)
    id_ = data.get("id")
    if id_ is not None:
        id_ = read_id(id_, "decision")
    eligible = data.get("eligible")
    if eligible is not None:
        eligible = _labels(eligible, shape)
    size = data.get("set_size")
    if size is not None and (type(size) is not int or not 1 <= size < shape.n_labels):
        raise _refuse("set_size", "decision", f"a whole number from 1 to {shape.n_labels - 1}", size)
    return Ask(x, id_, eligible, size, data.get("context"))


def read_id(value: Any, of: str) -> str:
    if type(value) is not str or not ID.fullmatch(value):
        raise _refuse("id", of, "1 to 128 letters, digits or any of _ . : -", value)
    return value


def read_reply(data: Any, id_: str | None, shape: Shape) -> Reply:
    """An answer; with ``id_`` None, the body holds the id."""
    if type(data) is not dict:
        raise _refuse("body", "outcome", "an object", data)
    fields = {"hit", "label"} if id_ is not None else {"hit", "label", "id"}
    if not data.keys() <= fields:
        unknown = min(data.keys() - fields)
        raise _refuse(
            unknown, "outcome", f"left out: the fields are {', '.join(sorted(fields))}", data[unknown]
        )
    if id_ is None:
        id_ = read_id(data.get("id"), "outcome")
    hit, label = data.get("hit"), data.get("label")
    if (hit is None) == (label is None):
        raise _refuse("hit", "outcome", "given, or label in its place, and not both", data)
    if hit is not None and type(hit) is not bool:
        raise _refuse("hit", "outcome", "true or false", hit)
    if label is not None and (type(label) is not str or label not in shape.known):
        raise _refuse("label", "outcome", "a known label", label)
    return Reply(id_, hit, label)


def items(data: Any, name: str) -> list[Any]:
    """The list in the body of a batch."""
    if type(data) is not dict or data.keys() != {name} or type(data[name]) is not list:
        raise _refuse(name, "batch", f'a list, as in {{"{name}": […]}}', data)
    if not 1 <= len(data[name]) <= MOST_ITEMS:
        raise _refuse(name, "batch", f"of 1 to {MOST_ITEMS} items", f"{len(data[name])} items")
    return data[name]  # type: ignore[no-any-return]


def _dense(values: list[Any], n_features: int) -> Row:
    if len(values) != n_features:
        raise _refuse("features", "decision", f"of length {n_features}", f"length {len(values)}")
    row: Row = _numbers(values, "features")
    return row


def _numbers(values: list[Any], field: str) -> Any:
    if not set(map(type, values)) <= NUMBERS:
        at = next(i for i, value in enumerate(values) if type(value) not in NUMBERS)
        raise _refuse(f"{field}[{at}]", "decision", "a number", values[at])
    if values and not (max(values) <= LARGEST and min(values) >= -LARGEST):
        at = next(i for i, value in enumerate(values) if not abs(value) <= LARGEST)
        raise _refuse(f"{field}[{at}]", "decision", FINITE, values[at])
    return np.array(values, np.float32)


def _sparse(features: dict[str, Any], shape: Shape) -> Row:
    indices, values = features["indices"], features.get("values")
    if features.keys() != {"indices", "values"} or type(values) is not list or len(values) != len(indices):
        raise _refuse("features", "decision", "lists indices and values of one length, and no more", features)
    for at, index in enumerate(indices):
        if type(index) is not int or not 0 <= index < shape.n_features:
            raise _refuse(f"features.indices[{at}]", "decision", f"in [0, {shape.n_features})", index)
    order = np.argsort(np.array(indices, np.int64), kind="stable")
    index = np.array(indices, np.int32)[order]
    if (np.diff(index) == 0).any():
        twice = int(index[np.flatnonzero(np.diff(index) == 0)[0]])
        raise _refuse("features.indices", "decision", "distinct", twice)
    return SparseRow(index, _numbers(values, "features.values")[order], shape.n_features)


def place_of(name: str, n_features: int) -> int:
    """Where a named feature goes: its 8-byte BLAKE2b hash (of UTF-8, little-endian) mod n_features.

    >>> place_of("age", 64)
    27
    """
    digest = blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % n_features


def _hashed(features: dict[str, Any], shape: Shape) -> Row:
    """A number counts under its name; a string under "name=string", with 1. Collisions add up."""
    row: dict[int, float] = {}
    for name, value in features.items():
        kind = type(value)
        if kind is str:
            name, value = f"{name}={value}", 1.0
        elif kind is not bool and kind not in NUMBERS:
            raise _refuse(f"features.{name}", "decision", "a number, a string, true or false", value)
        place = place_of(name, shape.n_features)
        row[place] = row.get(place, 0.0) + float(value)
        if not abs(row[place]) <= LARGEST:
            raise _refuse(f"features.{name}", "decision", FINITE, value)
    places = sorted(row)
    values = np.array([row[place] for place in places], np.float32)
    return SparseRow(np.array(places, np.int32), values, shape.n_features)


def _labels(eligible: Any, shape: Shape) -> tuple[str, ...]:
    if type(eligible) is not list or not eligible:
        raise _refuse("eligible", "decision", "a list of at least one label", eligible)
    for at, label in enumerate(eligible):
        if type(label) is not str or label not in shape.known:
            raise _refuse(f"eligible[{at}]", "decision", "a known label", label)
    if len(set(eligible)) != len(eligible):
        raise _refuse("eligible", "decision", "distinct labels", eligible)
    return tuple(eligible)
