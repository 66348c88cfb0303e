"""What stands in one cell of a log: a label, a set, a number, a yes or no. Anything else names its row."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np

from superarm.decisions.decision import Label
from superarm.errors import InvalidInput

WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
SEPARATOR = ";"
LIKELY_SEPARATORS = ("|", ",", "\t")  # what other people put between labels


class BadRow(InvalidInput):
    """A row of a log that cannot be used; the message names its row and field."""


def parse_number(value: Any) -> float | None:
    """The finite number in a cell, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def parse_label(value: Any, field: str, where: str) -> Label:
    """A label; "3" and 3.0 are the number 3 (learners find it by its name either way)."""
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal() and str(int(text)) == text:
            return int(text)
        if text:
            return text
    elif not isinstance(value, bool | np.bool_):
        number = parse_number(value)
        if number is not None and number.is_integer():
            return int(number)
    raise BadRow.must(field, where, "labels (names or whole numbers)", value)


def _parse_list(value: Any, field: str, where: str, separator: str | None) -> list[Any]:
    """A list from a cell: as it is, as JSON, or with a separator between."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part for part in value.split(separator or SEPARATOR) if part.strip()]
        try:
            value = json.loads(value)
        except ValueError:
            raise BadRow.must(field, where, 'a list such as a;b;c or ["a", "b"]', value) from None
    if value is None:
        return []
    if isinstance(value, list | tuple | np.ndarray | set | frozenset):
        return list(value)
    return value.to_list() if hasattr(value, "to_list") else [value]


def parse_labels(value: Any, field: str, where: str, separator: str | None = None) -> tuple[Label, ...]:
    """The labels in a cell; ``separator`` None is a semicolon that nobody has asked for."""
    labels = tuple(parse_label(part, field, where) for part in _parse_list(value, field, where, separator))
    if separator is None and len(labels) == 1 and isinstance(value, str):
        mark = next((mark for mark in LIKELY_SEPARATORS if mark in value), None)
        if mark is not None and not value.lstrip().startswith("["):
            wanted = f"a set such as a;b;c (if {mark!r} stands between labels, say --separator {mark!r};"
            wanted = f"{wanted} if this is one label, --separator ';'; in Python, Log(…, separator=…))"
            raise BadRow.must(field, where, wanted, value)
    return labels


def parse_numbers(value: Any, field: str, where: str, separator: str | None = None) -> Any:
    """The numbers in a cell, as a vector."""
    try:
        return np.array(_parse_list(value, field, where, separator), np.float64)
    except (TypeError, ValueError):
        raise BadRow.must(field, where, "numbers", value) from None


def parse_hit(value: Any, field: str, where: str) -> bool | None:
    """The yes or no in a cell; ``None`` if it is empty."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower().removesuffix(".0")
    if text not in WORDS:
        raise BadRow.must(field, where, "true or false (1 or 0, yes or no)", value)
    return WORDS[text]


def parse_probability(value: Any, field: str, where: str) -> float | None:
    """The probability in a cell; ``None`` if it is empty."""
    if value is None:
        return None
    number = parse_number(value)
    if number is None or not 0.0 < number <= 1.0:
        raise BadRow.must(field, where, "in (0, 1]", value)
    return number


def parse_rule(value: Any, where: str) -> dict[str, Any] | None:
    """How a set was drawn, as superarm writes it; somebody else's column of that name is not looked at."""
    if isinstance(value, str):
        if not value.lstrip().startswith("{"):
            return None
        try:
            value = json.loads(value)
        except ValueError:
            raise BadRow.must("rule", where, "a JSON object", value) from None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    return {key: part for key, part in value.items() if part is not None}
