"""Which kind each column of a table is, by its first rows, and whether it can be a feature.

A column is what nine in ten of its cells are; else it holds words. Words of which many are different, several in a
cell, are text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from itertools import pairwise
from numbers import Real
from operator import add
from typing import Any

import numpy as np

from superarm._types import Cell
from superarm.data.cells import (
    UNSPACED,
    date_order,
    parse_date,
    parse_scalar,
    parse_vector,
    to_python,
    without_unit,
)
from superarm.data.column import (
    AS_NUMBER,
    BOOLEAN,
    DATES,
    NUMBERS,
    TEXT,
    VECTOR,
    WORDS,
    Column,
    ColumnKinds,
)
from superarm.data.rows import FLOAT32_MAX
from superarm.errors import InvalidInput

MAJORITY = 0.9  # of the cells say what a column is
ENOUGH_ROWS = 20  # before a column is called an index, an id or a constant
MANY_WORDS = 1024  # different words, from which on a column of words is hashed into the sparse part
MEAN_TEXT_WORDS, TEXT_SHARE = 2.5, 0.2  # words of a text on average, and the share of different ones
SCALARS = (NUMBERS, BOOLEAN, DATES, WORDS)
LIKELY_ID = "an id: hardly any word twice"
UNSURE_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # thousands, or three decimals
DECIMAL_COMMA = re.compile(
    r"[+-]?(?:(?:\d{1,3}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+),\d+|[1-9]\d{0,2}(?:\.\d{3}){2,})"
)
CODE = re.compile(r"\d{3,}")  # with a 0 in front, where all are as long: 01067 is no number
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


def inference_warnings(features: list[ColumnProfile], left_out: Mapping[str, str]) -> list[str]:
    """Return what in a table may have been taken for something else, and what to do about it."""
    likely_ids = [name for name, reason in left_out.items() if reason == LIKELY_ID]
    mostly_words = [profile.name for profile in features if profile.is_mostly_words]
    unsure = [profile.name for profile in features if profile.kind == DATES and profile.has_unsure_dates]
    warnings = [profile.describe_unsure_number() for profile in features if profile.has_unsure_numbers]
    if likely_ids:
        warnings.append(
            f"taken for ids: {', '.join(likely_ids)} (declared as text or words, they are features)"
        )
    if mostly_words:
        warnings.append(
            f"asked for as numbers or dates, but most cells hold words: {', '.join(mostly_words)}"
        )
    if unsure:
        remedy = f'set "day_first": false for {", ".join(unsure)} in a columns file'
        warnings.append(
            f"1/2/2024 is read as 1 February, since no cell shows the order; for 2 January {remedy}"
        )
    return warnings


def outcome_columns(names: Iterable[str]) -> dict[str, str]:
    """Those of ``names`` that are no features, since they are only known after the decision; and that reason."""
    return {name: "only known afterwards" for name in names if name.lower() in OUTCOME_NAMES}


def _parse_json_lists(values: list[Any]) -> list[Any]:
    """Return the cells with vectors in place of JSON, if every cell that is filled is such a text."""
    if not all(value is None or isinstance(value, str) for value in values) or not any(values):
        return values
    if not all(value.lstrip().startswith("[") for value in values if value):
        return values
    try:
        return [parse_vector(value, "cell", "Columns") if value else None for value in values]
    except InvalidInput:  # a text that begins with a bracket
        return values


def column_profiles(cells: Mapping[str, Sequence[Cell]], kinds: ColumnKinds) -> dict[str, ColumnProfile]:
    """Return what the cells of each column have in common, by name.

    Whether 1.234 means thousands, the other columns tell where its own cells do not.

    Args:
        cells: the first cells of each column.
        kinds: what some columns are to be taken as.
    """
    profiles = {name: ColumnProfile(name, cells[name], kinds.get(name)) for name in cells}
    numbers = [profile for profile in profiles.values() if profile.kind == NUMBERS]
    decimals = {profile.decimal for profile in numbers if profile.shows_decimal}
    if len(decimals) == 1:
        decimal = decimals.pop()
        for name in (profile.name for profile in numbers if profile.has_unsure_numbers):
            profiles[name] = ColumnProfile(name, cells[name], kinds.get(name), decimal)
    return profiles


class ColumnProfile:
    """What the first cells of a column have in common.

    Args:
        name: its name.
        cells: as the table has them; missing ones, too.
        kind: what it is to be taken as; ``None``: what most of its cells are.
        decimal: what stands before decimals in other columns, if they agree.
    """

    def __init__(
        self, name: str, cells: Iterable[Cell], kind: str | None = None, decimal: str | None = None
    ) -> None:
        self.name, self.is_declared = name, kind is not None
        python_values = _parse_json_lists([to_python(cell) for cell in cells])
        self.rows = len(python_values)
        texts = [value for value in python_values if isinstance(value, str)]
        self.orders = Counter(date_order(text) for text in texts if parse_date(text) is not None)
        self.missing_words = 0  # NA and its like: missing among numbers, words among words
        self._compare_numbers(texts, decimal)
        values = [self._parse(value) if isinstance(value, str) else value for value in python_values]
        values = [value for value in values if value is not None]
        kinds = [_kind(value) for value in values]
        self.counts = Counter(kinds)
        lengths = {
            len(value) for value, value_kind in zip(values, kinds, strict=True) if value_kind == VECTOR
        }
        self.length = max(lengths, default=0)  # of its vectors
        # lists of something else, or of several lengths
        self.has_irregular_lists = None in kinds or len(lengths) > 1
        self._compare(
            [value for value, value_kind in zip(values, kinds, strict=True) if value_kind in SCALARS]
        )
        self.kind = kind or self._infer_kind()

    def _parse(self, text: str) -> Any:
        """What a text says, by itself: a number, true or false, a date, a word; ``None`` if it is missing."""
        if text == "":
            return None
        if self.holds_codes and CODE.fullmatch(text.strip()):
            return text
        bare = without_unit(text)
        decimal = self.decimal if UNSURE_NUMBER.fullmatch(bare) else _decimal_of(bare) or "."
        scalar = parse_scalar(text, decimal)
        if scalar is None:
            self.missing_words += 1
        return parse_date(text, self.day_first) or text if isinstance(scalar, str) else scalar

    def _compare_numbers(self, texts: list[str], decimal: str | None) -> None:
        """What the texts that are numbers have in common: their decimals, and whether they are codes."""
        bare = [without_unit(text) for text in texts]
        shown = Counter(_decimal_of(text) for text in bare)
        self.shows_decimal = shown[","] + shown["."] > 0
        if self.shows_decimal or decimal is None:
            decimal = "," if shown[","] > shown["."] else "."
            self.unsure_number = (
                None if self.shows_decimal else next(filter(UNSURE_NUMBER.fullmatch, bare), None)
            )
        else:
            self.unsure_number = None
        self.decimal = decimal  # what stands before the decimals of its numbers
        codes = [text for text in bare if CODE.fullmatch(text)]
        self.holds_codes = (
            not self.is_declared
            and any(text[0] == "0" for text in codes)
            and len({len(text) for text in codes}) == 1
            and not any(type(parse_scalar(text, decimal)) is float for text in set(bare).difference(codes))
        )

    def _compare(self, values: list[Any]) -> None:
        """What all values that are no vectors have in common."""
        self.first = values[0] if values else None
        numbers = [value for value in values if isinstance(value, Real)]
        words = [value for value in values if isinstance(value, str)]
        scalars_only = not self.counts[VECTOR]
        self.constant = scalars_only and all(value == self.first for value in values)
        self.whole = (
            scalars_only and len(numbers) == len(values) and all(float(v).is_integer() for v in numbers)
        )
        self.in_order = scalars_only and all(map(_in_order, values, values[1:]))
        self.increasing = self.in_order and all(a != b for a, b in pairwise(values))
        self.has_time = any(isinstance(v, datetime) and v.time() != datetime.min.time() for v in values)
        self.mean = reduce(add, numbers, 0.0) / len(numbers) if numbers else 0.0
        self.words = sum(1 + word.count(" ") + len(UNSPACED.findall(word)) for word in words)
        self.is_named_id = ID_NAME.search(self.name) is not None
        compared = values if self.is_named_id else words
        self.compared, self.distinct = len(compared), len(set(compared))

    @property
    def filled(self) -> int:
        """How many cells have a value."""
        return self.counts.total() - self.counts[None]

    def _infer_kind(self) -> str:
        """The kind of the column, by most of its cells."""
        counts, n = self.counts, self.filled + (self.missing_words if self.counts[WORDS] else 0)
        if counts[VECTOR] and counts[VECTOR] == self.filled:
            return VECTOR
        if counts[BOOLEAN] >= MAJORITY * n:
            return BOOLEAN
        if counts[NUMBERS] + counts[BOOLEAN] >= MAJORITY * n:
            return NUMBERS
        if counts[DATES] >= MAJORITY * n:
            return DATES
        return TEXT if self.holds_texts else WORDS

    @property
    def holds_texts(self) -> bool:
        """Whether its words are texts: several in a cell, and many cells that are different."""
        cells, different = self.counts[WORDS], self.distinct
        several = cells > 0 and self.words >= MEAN_TEXT_WORDS * cells
        seldom = (
            self.compared >= ENOUGH_ROWS
            and different >= MAJORITY * self.compared
            and self.words >= 1.5 * cells
        )
        return (
            several and (self.compared < ENOUGH_ROWS or different >= TEXT_SHARE * self.compared)
        ) or seldom

    @property
    def has_unsure_numbers(self) -> bool:
        """Whether it has numbers such as 1.234, and neither its cells nor other columns tell if they are thousands."""
        return self.kind == NUMBERS and self.unsure_number is not None

    def describe_unsure_number(self) -> str:
        """Return how such a number is read, and what to do if it means something else."""
        text = str(self.unsure_number)
        as_read, other = (parse_scalar(text, decimal) for decimal in (".", ","))
        return (
            f"{text} in {self.name} is read as {as_read:g}, since no cell and no other column shows what stands "
            f'before decimals; for {other:g} set "decimal": "," for {self.name} in a columns file'
        )

    @property
    def day_first(self) -> bool:
        """Whether the day stands first in its dates with slashes."""
        return self.orders["month"] <= self.orders["day"]

    def _describe_order(self) -> str:
        """Return what stands first in dates with slashes, and how sure that is; empty if no date has slashes."""
        first, second = ("day", "month") if self.day_first else ("month", "day")
        if self.has_unsure_dates:
            return f"{first} first, which no cell tells"
        if self.orders[second]:
            return f"{first} first, but for {self.orders[second]:,}"
        return f"{first} first" if self.orders[first] else ""

    @property
    def has_unsure_dates(self) -> bool:
        """Whether it has dates such as 1/2/2024, and none that tells what stands first."""
        return self.orders["unknown"] > 0 and not self.orders["day"] + self.orders["month"]

    @property
    def is_mostly_words(self) -> bool:
        """Whether most cells hold words though it is taken as numbers or dates."""
        return 2 * self.non_numeric > self.filled

    @property
    def missing(self) -> int:
        """How many rows have no value here."""
        return self.rows - self.filled - (self.missing_words if self.kind in (WORDS, TEXT) else 0)

    @property
    def non_numeric(self) -> int:
        """How many cells hold words where the others are numbers or dates."""
        return self.counts[WORDS] if self.kind in AS_NUMBER else 0

    def describe(self) -> str:
        """What the column is taken as, and why."""
        kind, cells, missing, non_numeric = self.kind, self.counts[WORDS], self.missing, self.non_numeric
        parts = [
            kind if kind != VECTOR else f"vectors of {self.length:,} numbers",
            "as asked for" if self.is_declared else "",
            "with a decimal comma" if self.decimal == "," and kind == NUMBERS else "",
            self._describe_order() if kind == DATES else "",
            f"{self.words / cells:.0f} words each" if kind == TEXT and cells else "",
            f"{non_numeric:,} words{' in most cells' if self.is_mostly_words else ''}" if non_numeric else "",
            f"{missing:,} missing" if missing else "",
        ]
        return ", ".join(part for part in parts if part)

    def to_column(self) -> Column:
        """The column."""
        kind = self.kind
        if self.filled and self.non_numeric == self.filled:
            raise InvalidInput(
                f"column {self.name!r} was declared as {kind}, but its {self.filled:,} filled cells hold words"
            )
        numbers = kind in (NUMBERS, BOOLEAN)
        return Column(
            self.name,
            kind,
            decimal=self.decimal if numbers else ".",
            has_time=kind == DATES and self.has_time,
            day_first=kind != DATES or self.day_first,
            length=self.length if kind == VECTOR else 0,
            high_cardinality=kind == WORDS and self.distinct > MANY_WORDS,
            imputed=float(np.float32(self.mean)) if numbers and abs(self.mean) <= FLOAT32_MAX else 0.0,
        )

    def exclusion_reason(self, *, wanted: bool = False) -> str:
        """Why it is no feature; empty if it may be one. Where it is wanted as one, only lists of anything are not."""
        if self.has_irregular_lists or (self.counts[VECTOR] and self.kind != VECTOR):
            return "lists"
        if wanted or self.is_declared:
            return ""
        if not self.filled:
            return "empty"
        if self.filled < ENOUGH_ROWS:
            return ""
        kind = self.kind
        complete = not self.missing
        if self.constant and complete:
            return f"always {self.first:g}" if isinstance(self.first, float) else f"always {self.first}"
        if self.whole and self.increasing and complete:
            return "counts the rows"
        if kind == DATES and self.in_order and complete:
            return "time: it goes on with the rows"
        if self.is_named_id and self.distinct == self.compared and (self.whole or kind in (WORDS, TEXT)):
            return "an id"
        if kind == WORDS and self.distinct >= MAJORITY * self.compared:
            return LIKELY_ID
        return ""


def _decimal_of(text: str) -> str | None:
    """Return what stands before decimals if a number without its unit can be read in one way only; else ``None``."""
    if not ("," in text or "." in text) or UNSURE_NUMBER.fullmatch(text):
        return None
    if DECIMAL_COMMA.fullmatch(text):
        return ","
    return "." if isinstance(parse_scalar(text), float) else None


def _kind(value: Any) -> str | None:
    """The kind of a parsed value; ``None`` for what is no value."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, date):
        return DATES
    if isinstance(value, str):
        return WORDS
    if isinstance(value, Real):
        return NUMBERS
    try:
        shape = np.asarray(value, np.float64).shape
    except (TypeError, ValueError):
        return None
    return VECTOR if len(shape) == 1 and shape[0] > 0 else None


def _in_order(before: Any, value: Any) -> bool:
    try:
        return bool(before <= value)
    except TypeError:  # a word after a number
        return False
