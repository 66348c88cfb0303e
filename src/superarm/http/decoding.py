"""From the bytes of a body to a message, or an error that names the field."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, TypeVar

import msgspec

from superarm._validation import ANY_KEY, KeyPath, format_path, parse_fault
from superarm.decisions.ids import ID_DESCRIPTION, IS_ID
from superarm.errors import Unquoted
from superarm.http.http_errors import HttpError

T = TypeVar("T")

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Return the message in a body."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid_request(error, decoder.type, body) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_values(bytes(body))
        raise HttpError.must("body", "request", "JSON", error, status=400) from None
    except RecursionError:
        raise HttpError.must(
            "body", "request", "JSON of a sane depth", Unquoted("a deeper one"), status=400
        ) from None


def decode_query(kind: type[T], query: dict[str, str]) -> T:
    """Return the message in a query string."""
    try:
        return msgspec.convert(query, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_request(error, kind, query) from None


def _invalid_request(
    error: msgspec.ValidationError, kind: Any, source: bytes | msgspec.Raw | dict[str, str]
) -> HttpError:
    """Return the error for a body or a query that is no such message: which field, what it must be, what it is."""
    fault = parse_fault(error)
    field, value = _locate(fault.keys, kind, source)
    for name, problem in ((fault.missing, "is missing"), (fault.unknown, "is not a known field")):
        if name is not None:
            name = f"{field}.{name}".lstrip(".")
            return HttpError(f"{name} of request {problem}", field=name)
    field = field or "body"
    if fault.text.endswith("out of range"):
        return HttpError(f"{field} of request must be a number of 64 bits, got a larger one", field=field)
    wanted = ID_DESCRIPTION if fault.pattern else fault.wanted or "one of the values in /docs"
    got = fault.got
    if fault.sized and isinstance(value, list | dict | str):
        got = str(len(value))
    if got is None:
        return HttpError.must(field, "request", wanted, value)
    return HttpError(f"{field} of request must be {wanted}, got {got}", field=field)


def _locate(keys: KeyPath, kind: Any, source: bytes | msgspec.Raw | dict[str, str]) -> tuple[str, Any]:
    """Return the name of a field, and its value (None if it cannot be read), in a body or a query."""
    try:
        value: Any = source if isinstance(source, dict) else json.loads(bytes(source))
    except (ValueError, RecursionError):  # the rest of the body is broken, too
        value = None
    path = KeyPath()
    for key in keys:
        if key == ANY_KEY:
            invalid = _first_invalid_key(format_path(path), kind, value)
            if invalid is None:
                return format_path(path), None
            key = invalid
        path = (*path, key)
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            value = None
    return format_path(path), value


def _first_invalid_key(field: str, kind: Any, values: Any) -> str | None:
    """Return the first key of a field with free keys whose value is invalid."""
    for name, value in values.items() if isinstance(values, dict) else ():
        try:
            msgspec.convert({field: {name: value}}, kind)
        except msgspec.ValidationError:
            return str(name)
    return None


def _check_values(body: bytes) -> None:
    """Refuse by the name of their field what is not JSON, but many clients send: NaN, Infinity, cut emoji."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return
    stack = [("", data)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, float) and not isfinite(value):
            raise HttpError.must(path.lstrip("."), "request", "finite", value)
        for text in value if isinstance(value, dict) else [value]:
            if isinstance(text, str) and LONE_SURROGATE.search(text):
                wanted = "of whole characters, without half of a surrogate pair"
                raise HttpError.must(path.lstrip(".") or "body", "request", wanted, text)
        if isinstance(value, dict):
            stack += [(f"{path}.{key}", part) for key, part in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", part) for i, part in enumerate(value)]


def check_id(value: str) -> str:
    """Return an id out of a path, if it is one."""
    if not IS_ID(value):
        raise HttpError.must("id", "request", ID_DESCRIPTION, value)
    return value
