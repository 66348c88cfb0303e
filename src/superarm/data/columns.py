"""Columns of somebody's table: what each of them holds, and whether it can be a feature.

    numbers, true or false, dates, words

A column is what nine in ten of its cells are; else it holds words. Files of text say 41, true, 2024-05-01
and NA, frames and JSON have values of their own: both mean the same here, and in `superarm.named`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from numbers import Real
from typing import Any

import numpy as np

from superarm.data.named import PLACES, WORDS, Names, date_in, is_gap, spelt

__all__ = ["Column", "cell", "layout", "look"]

NUMBERS, TRUTHS, DATES, TEXTS = KINDS = ("numbers", "true or false", "dates", "words")
MOST = 0.9  # of the cells say what a column is
SURE = 20  # rows, before a column is called an index, an id or a constant
MANY = 20_000  # different values that are kept in mind
MOST_PLACES, MOST_WORDS = 500, 2048  # of the dense row
COMMA = re.compile(r"\s*-?\d+,\d+\s*")
ID_NAME = re.compile(r"(^|[_ .])(id|ids|uuid|guid|key|index|idx)$|[a-z]I[dD]$", re.IGNORECASE)


class Column:
    """What all cells of a column have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = dict.fromkeys(KINDS, 0)
        self.filled = 0
        self.spelt_gaps = 0  # NA and its like: gaps among numbers, words among words
        self.commas = 0  # words such as 3,5
        self.lists = False
        self.first: Any = None
        self.last: Any = None
        self.constant = self.whole = self.increasing = self.in_order = True
        self.named_id = ID_NAME.search(name) is not None
        self.different: set[Any] = set()  # words, or what might be ids, as far as they were compared
        self.compared = 0

    def see(self, value: Any) -> None:
        """One more cell."""
        kind = type(value)
        if kind is str:
            if value == "":
                return
            meant = spelt(value)
            if meant is None:
                self.spelt_gaps += 1
                return
            value = meant
            kind = type(value)
        if kind is float or kind is int:
            if value != value:
                return
            self.counts[NUMBERS] += 1
        elif kind is str:
            when = date_in(value)
            self.counts[TEXTS if when is None else DATES] += 1
            self.commas += COMMA.fullmatch(value) is not None
            value = value if when is None else when
        elif is_gap(value):
            return
        elif isinstance(value, bool | np.bool_):
            self.counts[TRUTHS] += 1
        elif isinstance(value, date | np.datetime64):
            self.counts[DATES] += 1
        elif isinstance(value, Real | timedelta) or kind.__name__ == "Decimal":
            self.counts[NUMBERS] += 1
            value = value / timedelta(days=1) if isinstance(value, timedelta) else float(value)
        elif isinstance(value, str):
            self.counts[TEXTS] += 1
        else:
            self.lists = True
            return
        self._compare(value)

    def _compare(self, value: Any) -> None:
        self.filled += 1
        if self.filled == 1:
            self.first = value
        elif self.constant or self.in_order:
            self.constant = self.constant and value == self.first
            self.in_order = self.in_order and _in_order(self.last, value)
            self.increasing = self.increasing and self.in_order and value != self.last
        self.last = value
        if self.whole:
            self.whole = isinstance(value, float | int) and float(value).is_integer()
        if (isinstance(value, str) or self.named_id) and len(self.different) < MANY:
            self.different.add(value)
            self.compared += 1

    @property
    def kind(self) -> str:
        """What it holds."""
        n = self.filled + (self.spelt_gaps if self.counts[TEXTS] else 0)
        if self.counts[TRUTHS] >= MOST * n:
            return TRUTHS
        if self.counts[NUMBERS] + self.counts[TRUTHS] >= MOST * n:
            return NUMBERS
        return DATES if self.counts[DATES] >= MOST * n else TEXTS

    @property
    def has_commas(self) -> bool:
        """Whether its words look like numbers with a decimal comma."""
        return self.commas > MOST * self.filled

    def gaps(self, rows: int) -> int:
        """How many of so many rows have nothing here."""
        return rows - self.filled - (self.spelt_gaps if self.kind == TEXTS else 0)

    def in_words(self, rows: int) -> str:
        """What it is taken as."""
        gaps, words = self.gaps(rows), 0 if self.kind == TEXTS else self.counts[TEXTS]
        commas = "numbers with a comma? 3.5 is one, 3,5 a word" if self.has_commas else ""
        parts = [self.kind, commas, f"{words:,} words" if words else "", f"{gaps:,} gaps" if gaps else ""]
        return ", ".join(part for part in parts if part)

    def why_not(self, rows: int) -> str:
        """Why it is no feature; empty if it may be one."""
        if self.lists:
            return "lists"
        if not self.filled:
            return "empty"
        if self.filled < SURE:
            return ""
        if self.constant and not self.gaps(rows):
            return f"always {self.first:g}" if isinstance(self.first, float) else f"always {self.first}"
        kind, gaps = self.kind, self.gaps(rows)
        if self.whole and self.increasing and not gaps:
            return "counts the rows"
        if kind == DATES and self.in_order and not gaps:
            return "time: it goes on with the rows"
        if self.named_id and len(self.different) == self.compared and (self.whole or kind == TEXTS):
            return "an id"
        if kind == TEXTS and len(self.different) >= MOST * self.compared:
            return (
                "numbers with a comma: write 3.5, not 3,5"
                if self.has_commas
                else "words, hardly any of them twice"
            )
        return ""


def _in_order(one: Any, other: Any) -> bool:
    try:
        return bool(one <= other)
    except TypeError:  # a word after a number
        return False


def look(
    rows: Iterable[Mapping[str, Any]], only: Iterable[str] | None = None
) -> tuple[dict[str, Column], int]:
    """All columns of a table (or some of them) by name, in the order in which they turn up; how many rows."""
    columns = {} if only is None else {name: Column(name) for name in only}
    count = 0
    for row in rows:
        count += 1
        for name, value in row.items():
            column = columns.get(name)
            if column is None:
                if only is not None:
                    continue
                column = columns[name] = Column(name)
            if value is not None:
                column.see(value)
    return columns, count


def cell(value: Any, kind: str) -> Any:
    """A cell of a column of this kind, as a value of a row with names."""
    if is_gap(value) or value == "":
        return None
    if kind == TEXTS:
        return value if isinstance(value, str | date) else str(value)
    return spelt(value) if isinstance(value, str) else value


def layout(kinds: Mapping[str, str], columns: Mapping[str, Column]) -> Names:
    """A dense row with room for these columns, and for some that may come."""
    numbers = [name for name, kind in kinds.items() if kind != TEXTS]
    places = min(max(PLACES, 2 * len(kinds) + 8), MOST_PLACES)
    own = places - places // 5
    distinct = sum(len(columns[name].different) for name, kind in kinds.items() if kind == TEXTS)
    words = WORDS
    while words < 2 * distinct and words < MOST_WORDS:
        words *= 2
    return Names(numbers[:own], places=places, words=words)
