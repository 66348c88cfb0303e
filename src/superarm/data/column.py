"""Column: what one column of a table is, and its cells as values of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np

from superarm._types import Cell, JsonObject
from superarm.data.cells import (
    ParsedCell,
    check_value,
    finite_number,
    is_missing,
    is_text,
    parse_by_mark,
    parse_date,
    parse_scalar,
    parse_vector,
    split_unit,
    to_python,
    to_word,
)
from superarm.data.rows import FLOAT32_MAX
from superarm.errors import InvalidInput, Unquoted

NUMBERS, BOOLEAN, DATES, WORDS, TEXT, VECTOR = KINDS = (
    "numbers",
    "yes or no",
    "dates",
    "words",
    "text",
    "vector",
)
AS_NUMBER = (NUMBERS, BOOLEAN, DATES)
LEFT_OUT = "left out"  # in place of a kind: the column is no feature

ColumnKinds = Mapping[str, str]  # the kind of a column by its name, or LEFT_OUT


@dataclass(frozen=True, slots=True)
class Column:
    """The kind of one column of a table, and how its cells are read.

    Attributes:
        name: its name.
        kind: numbers, yes or no, dates, words, text, vector.
        decimal: the decimal mark of numbers in files of text that can be read in two ways, as 1.234.
        unit: what stands behind its numbers in files of text, as °C or min; per cent signs and currencies may always.
        has_time: whether dates have a time of day.
        day_first: whether the day stands first in dates with slashes, where both are possible.
        length: of a vector.
        high_cardinality: whether there are so many different words that they go to the sparse part.
        imputed: what a missing value counts as in rows that do not mark missing ones.
    """

    name: str
    kind: str
    decimal: str = "."
    unit: str = ""
    has_time: bool = False
    day_first: bool = True
    length: int = 0
    high_cardinality: bool = False
    imputed: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            wanted = f"one of {', '.join(KINDS)}"
            raise InvalidInput.must(f"kind of {self.name!r}", "columns", wanted, self.kind, choices=KINDS)
        if self.decimal not in (".", ","):
            raise InvalidInput.must(f"decimal of {self.name!r}", "columns", "'.' or ','", self.decimal)
        if not isinstance(self.unit, str):
            raise InvalidInput.must(f"unit of {self.name!r}", "columns", "a text such as '°C'", self.unit)
        if not isinstance(self.day_first, bool):
            raise InvalidInput.must(f"day_first of {self.name!r}", "columns", "true or false", self.day_first)
        if self.kind == VECTOR and not (isinstance(self.length, int) and self.length > 0):
            wanted = "how many numbers it has"
            raise InvalidInput.must(f"length of {self.name!r}", "columns", wanted, self.length)

    @property
    def is_sparse(self) -> bool:
        """Whether the column goes to the sparse part of a row."""
        return self.kind == TEXT or self.high_cardinality

    @property
    def has_dense_words(self) -> bool:
        """Whether the column adds words to the dense part of a row."""
        return self.kind == DATES or (self.kind == WORDS and not self.high_cardinality)

    @property
    def n_numbers(self) -> int:
        """How many numbers the column has in the dense part of a row."""
        return self.length if self.kind == VECTOR else int(self.kind in AS_NUMBER)

    def parse(self, value: Cell, owner: str) -> ParsedCell:
        """Return a cell as float, str, date, vector or ``None``; among numbers or dates, a str is none of them.

        ``value`` is the cell, ``owner`` whose it is, for messages.
        """
        kind = self.kind
        number = type(value) is float or type(value) is int
        if number and kind in AS_NUMBER and -FLOAT32_MAX <= value <= FLOAT32_MAX:
            return float(value)  # most of them
        if value == "" if isinstance(value, str) else is_missing(value):
            return None
        if kind == VECTOR:
            vector = parse_vector(value, self.name, owner)
            if len(vector) != self.length:
                wanted, got = f"a list of {self.length} numbers", Unquoted(f"{len(vector)} numbers")
                raise InvalidInput.must(f"x[{self.name!r}]", owner, wanted, got)
            return vector
        if isinstance(value, str):
            return self._parse_text(to_python(value), owner)
        if isinstance(value, bool | np.bool_) and kind in (WORDS, TEXT):
            return "true" if value else "false"
        parsed = check_value(value, self.name, owner)
        if isinstance(parsed, np.ndarray):
            raise InvalidInput.must(f"x[{self.name!r}]", owner, f"{kind}, as declared or seen before", value)
        return parsed if parsed is None or kind in AS_NUMBER else to_word(parsed)

    def _parse_text(self, text: str, owner: str) -> ParsedCell:
        if self.kind in (WORDS, TEXT):
            return text
        when = parse_date(text, self.day_first) if self.kind == DATES else None
        if when is not None:
            return when
        if self.unit and (parts := split_unit(text)) is not None and parts[1] == self.unit:
            text = parts[0]
        scalar = parse_scalar(text, self.decimal)
        if isinstance(scalar, str):  # 12,50 among decimal points can still be read in one way only
            scalar = parse_by_mark(text, self.decimal)
        if isinstance(scalar, str):
            return parse_date(text, self.day_first) or text
        return None if scalar is None else finite_number(scalar, self.name, owner)

    def to_dict(self) -> JsonObject:
        """Return JSON-ready values, without the defaults."""
        usual = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


def infer_value(name: str, value: Cell, owner: str) -> tuple[str, ParsedCell]:
    """Return the kind of a value, judged alone, and the value as `Column.parse` returns it."""
    if isinstance(value, str):
        value = to_python(value)
        when = parse_date(value)
        if when is not None:
            return DATES, when
        return TEXT if is_text(value) else WORDS, value or None
    if is_vector(value):
        wanted = "in the first row, or declared (learner.use_columns): a vector needs features of its own"
        raise InvalidInput.must(f"x[{name!r}]", owner, wanted, Unquoted("a new vector"))
    return NUMBERS, check_value(value, name, owner)


def is_vector(value: object) -> bool:
    """Return whether a value is a list of numbers, or looks like one."""
    if isinstance(value, list | tuple | np.ndarray):
        return np.ndim(value) > 0
    return hasattr(value, "to_list") and not isinstance(value, np.generic)
