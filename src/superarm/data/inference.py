"""Which kind each column of a table is, by its first rows, and whether it can be a feature.

A column is what nine in ten of its cells are; else it holds words. Words of which many are different, several in a
cell, are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from numbers import Real
from typing import Any

import numpy as np

from superarm.data.cells import GROUPED, UNSPACED, date_order, parse_date, parse_scalar, to_python
from superarm.data.column import DATES, KINDS, NUMBERS, TEXT, TRUTHS, VECTOR, WORDS, Column
from superarm.data.rows import LARGEST
from superarm.errors import InvalidInput

MOST = 0.9  # of the cells say what a column is
ENOUGH_ROWS = 20  # before a column is called an index, an id or a constant
MAX_DISTINCT = 20_000  # different values that are counted
MANY_WORDS = 1024  # different words, from which on a column of words is hashed into the sparse part
TEXT_WORDS, TEXT_SHARE = 2.5, 0.2  # words of a text on average, and the share of different ones
MOSTLY_WORDS = " words in most cells"  # where numbers or dates were asked for
UNSURE_ORDER = ", which no cell tells"  # of dates such as 1/2/2024
LIKELY_ID = "an id: hardly any word twice"
COMMA = re.compile(r"\s*[+-]?(?:\d{1,3}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+),\d+\s*%?\s*")
ID_NAME = re.compile(r"(^|[_ .])(id|ids|uuid|guid|key|index|idx)$|[a-z]I[dD]$", re.IGNORECASE)
# columns of a log that are only known after the decision, whatever else they are called for
OUTCOME_NAMES = frozenset(
    [
        *("hit", "solved", "outcome", "outcomes", "answer", "answered", "reward", "rewards"),
        *("feedback", "correct"),
        *("click", "clicked", "converted", "conversion", "propensity", "propensities", "ordered_propensity"),
        *("log_propensity", "pscore", "p_score", "prob", "probability", "model_version"),
    ]
)


def outcome_columns(names: Iterable[str]) -> dict[str, str]:
    """Those of ``names`` that are no features, since they are only known after the decision; and that reason."""
    return {name: "only known afterwards" for name in names if name.lower() in OUTCOME_NAMES}


class ColumnProfile:
    """What all cells of a column have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = dict.fromkeys(KINDS, 0)
        self.filled = 0
        self.missing_words = 0  # NA and its like: missing among numbers, words among words
        self.commas = self.points = 0  # numbers that only a decimal comma, or a point, explains
        self.odd = False  # something that is no value
        self.length = 0  # of its vectors; -1 if they differ
        self.times = False
        self.orders = {"day": 0, "month": 0, "unknown": 0}  # of dates with slashes: what comes first
        self.sum = 0.0
        self.words = 0  # in all its cells together
        self.first: Any = None
        self.last: Any = None
        self.constant = self.whole = self.increasing = self.in_order = True
        self.named_id = ID_NAME.search(name) is not None
        self.different: set[Any] = set()  # words, or what might be ids, as far as they were compared
        self.compared = 0

    def add(self, value: Any) -> None:
        """One more cell."""
        value = to_python(value)
        if isinstance(value, str):
            value = self._read(value)
        if value is None:
            return
        if isinstance(value, bool):
            self.counts[TRUTHS] += 1
        elif isinstance(value, date):
            self.counts[DATES] += 1
        elif isinstance(value, str):
            self.counts[WORDS] += 1
            self.words += 1 + value.count(" ") + len(UNSPACED.findall(value))
        elif isinstance(value, int | Real):
            self.counts[NUMBERS] += 1
            value = value if isinstance(value, int) else float(value)
        else:
            self._add_vector(value)
            return
        self._compare(value)

    def _read(self, text: str) -> Any:
        """What a text says, by itself: a number, true or false, a date, a word; ``None`` if it is missing."""
        if text == "":
            return None
        scalar = parse_scalar(text)
        if scalar is None:
            self.missing_words += 1
        elif "," in text and COMMA.fullmatch(text) and not GROUPED["."].fullmatch(text.strip(" %")):
            self.commas, scalar = self.commas + 1, parse_scalar(text, ",")
        elif "." in text and isinstance(scalar, float) and not GROUPED[","].fullmatch(text.strip(" %")):
            self.points += 1
        when = parse_date(text, self.order) if isinstance(scalar, str) else None
        if when is None:
            return scalar
        order = date_order(text)
        if order is not None:
            self.orders[order] += 1
        return when

    def _add_vector(self, value: Any) -> None:
        try:
            shape = np.asarray(value, np.float64).shape
        except (TypeError, ValueError):
            shape = ()
        if len(shape) != 1 or shape[0] == 0:
            self.odd = True
            return
        self.counts[VECTOR] += 1
        self.filled += 1
        self.constant = self.whole = self.in_order = False
        self.length = shape[0] if self.length in (0, shape[0]) else -1

    def _compare(self, value: Any) -> None:
        self.filled += 1
        if self.filled == 1:
            self.first = value
        elif self.constant or self.in_order:
            self.constant = self.constant and value == self.first
            self.in_order = self.in_order and _in_order(self.last, value)
            self.increasing = self.increasing and self.in_order and value != self.last
        self.last = value
        number = isinstance(value, float | int)
        if number:
            self.sum += value
        elif isinstance(value, datetime):
            self.times = self.times or value.time() != datetime.min.time()
        if self.whole:
            self.whole = number and float(value).is_integer()
        if (isinstance(value, str) or self.named_id) and len(self.different) < MAX_DISTINCT:
            self.different.add(value)
            self.compared += 1

    @property
    def kind(self) -> str:
        """The kind of the column, by most of its cells."""
        counts, n = self.counts, self.filled + (self.missing_words if self.counts[WORDS] else 0)
        if counts[VECTOR] and counts[VECTOR] == self.filled:
            return VECTOR
        if counts[TRUTHS] >= MOST * n:
            return TRUTHS
        if counts[NUMBERS] + counts[TRUTHS] >= MOST * n:
            return NUMBERS
        if counts[DATES] >= MOST * n:
            return DATES
        return TEXT if self.is_text else WORDS

    @property
    def is_text(self) -> bool:
        """Whether its words are texts: several in a cell, and many cells that are different."""
        cells, different = self.counts[WORDS], len(self.different)
        several = cells > 0 and self.words >= TEXT_WORDS * cells
        seldom = (
            self.compared >= ENOUGH_ROWS and different >= MOST * self.compared and self.words >= 1.5 * cells
        )
        return (
            several and (self.compared < ENOUGH_ROWS or different >= TEXT_SHARE * self.compared)
        ) or seldom

    @property
    def decimal(self) -> str:
        """What stands before the decimals of its numbers."""
        return "," if self.commas > self.points else "."

    @property
    def order(self) -> str:
        """What comes first in its dates with slashes, the day or the month."""
        return "month" if self.orders["month"] > self.orders["day"] else "day"

    def _describe_order(self) -> str:
        """What comes first in dates with slashes, and how sure that is; empty if no date has slashes."""
        orders = self.orders
        if not any(orders.values()):
            return ""
        other = orders["day" if self.order == "month" else "month"]
        if other:
            return f"{self.order} first, but for {other:,}"
        return f"{self.order} first" + (UNSURE_ORDER if not orders[self.order] else "")

    @property
    def mean(self) -> float:
        count = self.counts[NUMBERS] + self.counts[TRUTHS]
        return self.sum / count if count else 0.0

    def missing(self, rows: int, kind: str) -> int:
        """How many of ``rows`` rows have no value here, if it is of this kind."""
        return rows - self.filled - (self.missing_words if kind in (WORDS, TEXT) else 0)

    def strays(self, kind: str) -> int:
        """Words where numbers or dates stand."""
        return self.counts[WORDS] if kind in (NUMBERS, TRUTHS, DATES) else 0

    def describe(self, rows: int, column: Column, *, asked: bool) -> str:
        """What the column is taken as, and why."""
        kind, cells = column.kind, self.counts[WORDS]
        missing, strays = self.missing(rows, kind), self.strays(kind)
        parts = [
            kind if kind != VECTOR else f"vectors of {self.length:,} numbers",
            "as asked for" if asked else "",
            "with a decimal comma" if column.decimal == "," and kind == NUMBERS else "",
            self._describe_order() if kind == DATES else "",
            f"{self.words / cells:.0f} words each" if kind == TEXT and cells else "",
            f"{strays:,}{MOSTLY_WORDS if 2 * strays > self.filled else ' words'}" if strays else "",
            f"{missing:,} missing" if missing else "",
        ]
        return ", ".join(part for part in parts if part)

    def to_column(self, kind: str) -> Column:
        """The column, taken as this kind."""
        if self.filled and self.strays(kind) == self.filled:
            got = f"words in all {self.filled:,}"
            raise InvalidInput.must(kind, f"column {self.name!r}", "in some of its cells", got)
        numbers = kind in (NUMBERS, TRUTHS)
        return Column(
            self.name,
            kind,
            decimal=self.decimal if numbers else ".",
            times=self.times if kind == DATES else False,
            order=self.order if kind == DATES else "day",
            length=self.length if kind == VECTOR else 0,
            many=kind == WORDS and len(self.different) > MANY_WORDS,
            fill=float(np.float32(self.mean)) if numbers and abs(self.mean) <= LARGEST else 0.0,
        )

    def why_not(self, rows: int, asked: bool) -> str:
        """Why it is no feature; empty if it may be one. Where it was asked for, only lists of anything are not."""
        if self.odd or self.length < 0 or (self.counts[VECTOR] and self.kind != VECTOR):
            return "lists"
        if asked:
            return ""
        if not self.filled:
            return "empty"
        if self.filled < ENOUGH_ROWS:
            return ""
        kind = self.kind
        complete = not self.missing(rows, kind)
        if self.constant and complete:
            return f"always {self.first:g}" if isinstance(self.first, float) else f"always {self.first}"
        if self.whole and self.increasing and complete:
            return "counts the rows"
        if kind == DATES and self.in_order and complete:
            return "time: it goes on with the rows"
        if self.named_id and len(self.different) == self.compared and (self.whole or kind in (WORDS, TEXT)):
            return "an id"
        if kind == WORDS and len(self.different) >= MOST * self.compared:
            return LIKELY_ID
        return ""


def _in_order(before: Any, value: Any) -> bool:
    try:
        return bool(before <= value)
    except TypeError:  # a word after a number
        return False


def profile_columns(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, ColumnProfile], int]:
    """All columns of a table by name, in the order in which they turn up; how many rows."""
    profiles: dict[str, ColumnProfile] = {}
    count = 0
    for row in rows:
        count += 1
        for name, value in row.items():
            profile = profiles.get(str(name))
            if profile is None:
                profile = profiles[str(name)] = ColumnProfile(str(name))
            if value is not None:
                profile.add(value)
    return profiles, count
