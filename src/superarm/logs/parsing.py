"""The cells of a log: labels, sets, numbers, yes or no. A cell that cannot be read raises an error with its row."""

from __future__ import annotations

import json
import re
from math import isfinite

import numpy as np

from superarm._types import Array, Cell, JsonObject
from superarm.data.cells import is_missing
from superarm.data.labels import Label, parse_label
from superarm.errors import InvalidInput

HIT_WORDS = dict.fromkeys(("true", "yes", "y", "1"), True) | dict.fromkeys(("false", "no", "n", "0"), False)
SEPARATOR = ";"
DECIMAL_COMMA = re.compile(r"\d?,\d+(?:[eE]-?\d+)?")  # in a probability no comma can stand between thousands
LIKELY_SEPARATORS = ("|", ",", "\t")  # of other tools
LogRow = dict[str, Cell]  # by column


class BadRow(InvalidInput):
    """A row of a log that cannot be used; the message names its row and field."""


def parse_number(value: Cell) -> float | None:
    """Return the finite number in a cell, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def is_empty(value: Cell) -> bool:
    """Return whether a cell is empty: missing, or a text of spaces."""
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def label_in_cell(value: Cell, field: str, where: str) -> Label:
    """Return the label in a cell, as all tables spell it; anything else is refused."""
    whole = not isinstance(value, float | np.floating) or (isfinite(value) and float(value).is_integer())
    label = parse_label(value) if whole and isinstance(value, str | int | float | np.generic) else None
    if label is None or isinstance(value, bool | np.bool_):
        raise BadRow.must(field, where, "labels (names or whole numbers)", value)
    return label


def _parse_list(value: Cell, field: str, where: str, separator: str | None) -> list[Cell]:
    """Return a list from a cell: as it is, as JSON, or with a separator between."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part for part in value.split(separator or SEPARATOR) if part.strip()]
        try:
            value = json.loads(value)
        except ValueError:
            raise BadRow.must(field, where, 'a list such as a;b;c or ["a", "b"]', value) from None
    if is_missing(value):
        return []
    if isinstance(value, list | tuple | np.ndarray | set | frozenset):
        return list(value)
    return value.to_list() if hasattr(value, "to_list") else [value]


def labels_in_cell(value: Cell, field: str, where: str, separator: str | None = None) -> tuple[Label, ...]:
    """Return the labels in a cell; without a ``separator`` it is a semicolon, and likely others are refused."""
    labels = tuple(label_in_cell(part, field, where) for part in _parse_list(value, field, where, separator))
    if separator is None and len(labels) == 1 and isinstance(value, str):
        mark = next((mark for mark in LIKELY_SEPARATORS if mark in value), None)
        if mark is not None and not value.lstrip().startswith("["):
            other = f"if {mark!r} stands between labels, set the separator to {mark!r}; if this is one label, to ';'"
            raise BadRow.must(field, where, f"a set such as a;b;c ({other})", value)
    return labels


def parse_numbers(value: Cell, field: str, where: str, separator: str | None = None) -> Array:
    """Return the numbers in a cell, as a vector."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return value.astype(np.float64)
    try:
        return np.array(_parse_list(value, field, where, separator), np.float64)
    except (TypeError, ValueError):
        raise BadRow.must(field, where, "numbers", value) from None


def parse_hit(value: Cell, field: str, where: str) -> bool | None:
    """Return the yes or no in a cell; ``None`` if it is empty."""
    if is_empty(value):
        return None
    text = str(value).strip().lower().removesuffix(".0")
    if text not in HIT_WORDS:
        mapped = f"frame[{field!r}].map({{'ja': True, 'nein': False}})"
        remedy = f"replace other words by these first, as in pandas by {mapped}"
        wanted = f"true or false (1 or 0, yes or no, y or n; empty is no answer; {remedy})"
        raise BadRow.must(field, where, wanted, value)
    return HIT_WORDS[text]


def parse_probability(value: Cell, field: str, where: str) -> float | None:
    """Return the probability in a cell; ``None`` if it is empty."""
    if is_empty(value):
        return None
    if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(",", ".")
    number = parse_number(value)
    if number is None or not 0.0 < number <= 1.0:
        raise BadRow.must(field, where, "in (0, 1]", value)
    return number


def parse_object(value: Cell) -> JsonObject | None:
    """Return the values with names in a cell: as they are, or of JSON; ``None`` for anything else."""
    if looks_like_object(value):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def looks_like_object(value: Cell) -> bool:
    """Return whether a cell is a text that begins as a JSON object does."""
    return isinstance(value, str) and value.lstrip().startswith("{")


def parse_rule(value: Cell, where: str) -> JsonObject | None:
    """Return the record of a rule as superarm writes it; ``None`` for anything else in a column of that name."""
    rule = parse_object(value)
    if rule is None and looks_like_object(value):
        raise BadRow.must("rule", where, "a JSON object", value)
    if rule is None or not isinstance(rule.get("name"), str):
        return None
    return {key: part for key, part in rule.items() if part is not None}
