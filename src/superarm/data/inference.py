"""Which kind each column of a table is, by its first rows, and whether it can be a feature.

A column is what nine in ten of its cells are; else it holds words. Words of which many are different, several in a
cell, are text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property, reduce
from numbers import Real
from operator import add
from typing import Any

import numpy as np

from superarm._types import Cell
from superarm.data.cells import (
    MISSING_WORDS,
    UNSPACED,
    ambiguous_numbers,
    are_codes,
    count_marks,
    date_order,
    is_code,
    parse_by_mark,
    parse_date,
    parse_vector,
    split_unit,
    to_python,
)
from superarm.data.column import AS_NUMBER, BOOLEAN, DATES, NUMBERS, TEXT, VECTOR, WORDS, Column, ColumnKinds
from superarm.data.rows import FLOAT32_MAX
from superarm.errors import InvalidInput

MAJORITY = 0.9  # of the cells decide the kind of a column
ENOUGH_ROWS = 20  # before a column is called an index, an id or a constant
MAX_UNITS, MAX_LISTED_UNITS = 20, 5  # of one column, and in a message; 12 Main Street has another meaning
MANY_WORDS = 1024  # different words, from which on a column of words is hashed into the sparse part
MEAN_TEXT_WORDS, TEXT_SHARE = 2.5, 0.2  # words of a text on average, and the share of different ones
SCALARS = (NUMBERS, BOOLEAN, DATES, WORDS)
LIKELY_ID = "an id: hardly any word twice"
OF_NO_KIND = LISTS, OF_TYPE = "lists", "of type "  # how reasons begin to leave out values that cannot be read
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
    """Return the ``names`` of columns that are only known after the decision, with the reason to leave them out."""
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


class ColumnProfile:
    """Statistics of the first cells of a column, and the kind that follows from them.

    Args:
        name: its name.
        cells: as the table has them; missing ones, too.
        kind: what it is to be taken as; ``None``: what most of its cells are.
        decimal: the decimal mark of other columns, if they agree.
    """

    def __init__(
        self, name: str, cells: Iterable[Cell], kind: str | None = None, decimal: str | None = None
    ) -> None:
        self.name = name
        self.is_declared = kind is not None
        values = _parse_json_lists([to_python(cell) for cell in cells])
        self.n_rows = len(values)
        self.units, self.unit = Counter[str](), ""  # behind its numbers; the one that is taken off them
        if kind in (None, NUMBERS):
            self.units, self.unit = _find_units(values, is_declared=self.is_declared)
        if self.unit:
            values = [_without_unit(value, self.unit) for value in values]
        texts = [value for value in values if isinstance(value, str)]
        self.date_orders = Counter(date_order(text) for text in texts if parse_date(text) is not None)
        self.marks = count_marks(texts)
        self.decimal = self.shown_decimal or decimal or "."
        is_clear = len(self.marks) == 1 or (not self.marks and decimal is not None)
        self.ambiguous_numbers = [] if is_clear else ambiguous_numbers(texts)
        self.holds_codes = kind is None and are_codes(texts, self.decimal)
        # NA and its like: missing among numbers, words among words
        self.n_missing_words = sum(text != "" and text.strip().lower() in MISSING_WORDS for text in texts)
        parsed = [self._parse(value) if isinstance(value, str) else value for value in values]
        self._values = [value for value in parsed if value is not None]
        self._kinds = [_kind(value) for value in self._values]
        self.kind = kind or self._infer_kind()

    def _parse(self, text: str) -> Any:
        """Return a text, judged alone, as a number, true or false, a date, a word; ``None`` if it is missing."""
        if text == "":
            return None
        if self.holds_codes and is_code(text):
            return text
        scalar = parse_by_mark(text, self.decimal)
        return parse_date(text, self.day_first) or text if isinstance(scalar, str) else scalar

    # ------------------------------------------------------------ its values

    @cached_property
    def n_by_kind(self) -> Counter[str | None]:
        """How many cells hold each kind of value; ``None`` counts the cells without one."""
        return Counter(self._kinds)

    @cached_property
    def scalars(self) -> list[Any]:
        """Numbers, truth values, dates and words, in their order."""
        return [value for value, kind in zip(self._values, self._kinds, strict=True) if kind in SCALARS]

    @cached_property
    def words(self) -> list[str]:
        """The values that are words or texts."""
        return [value for value in self.scalars if isinstance(value, str)]

    @cached_property
    def n_words(self) -> int:
        """How many words all texts have together; each letter of a script without spaces counts as one."""
        return sum(1 + text.count(" ") + len(UNSPACED.findall(text)) for text in self.words)

    @property
    def mean(self) -> float:
        """The mean of the numbers in the column."""
        numbers = [value for value in self.scalars if isinstance(value, Real)]
        # not by sum(), which rounds otherwise from Python 3.12 on
        return reduce(add, numbers, 0.0) / len(numbers) if numbers else 0.0

    @property
    def has_id_name(self) -> bool:
        """Whether the column's name is one that ids have."""
        return ID_NAME.search(self.name) is not None

    @property
    def n_compared(self) -> int:
        """How many values are looked at for repetitions: all in a column with the name of an id, else words."""
        return len(self.scalars if self.has_id_name else self.words)

    @cached_property
    def n_distinct(self) -> int:
        """How many distinct values are among those that `n_compared` counts."""
        return len(set(self.scalars if self.has_id_name else self.words))

    @cached_property
    def vector_lengths(self) -> set[int]:
        """The lengths of the vectors in the column."""
        pairs = zip(self._values, self._kinds, strict=True)
        return {len(value) for value, kind in pairs if kind == VECTOR}

    @property
    def shown_decimal(self) -> str | None:
        """The decimal mark of most of the numbers that can be read in one way only; ``None`` without such numbers."""
        return None if not self.marks else "," if self.marks[","] > self.marks["."] else "."

    # ------------------------------------------------------------ counts

    @property
    def n_filled(self) -> int:
        """How many cells have a value."""
        return self.n_by_kind.total() - self.n_by_kind[None]

    @property
    def n_missing(self) -> int:
        """How many rows have no value here."""
        return self.n_rows - self.n_filled - (self.n_missing_words if self.kind in (WORDS, TEXT) else 0)

    @property
    def n_non_numeric(self) -> int:
        """How many cells hold words where the others are numbers or dates."""
        return self.n_by_kind[WORDS] if self.kind in AS_NUMBER else 0

    @property
    def is_mostly_words(self) -> bool:
        """Whether most cells hold words though it is taken as numbers or dates."""
        return 2 * self.n_non_numeric > self.n_filled

    # ------------------------------------------------------------ its kind

    def _infer_kind(self) -> str:
        """Return the kind of most cells."""
        counts = self.n_by_kind
        n = self.n_filled + (self.n_missing_words if counts[WORDS] else 0)
        if counts[VECTOR] and counts[VECTOR] == self.n_filled:
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
        """Whether cells of words are texts: several words in a cell, and many different cells."""
        n_cells = self.n_by_kind[WORDS]
        is_short = self.n_compared < ENOUGH_ROWS
        has_several = n_cells > 0 and self.n_words >= MEAN_TEXT_WORDS * n_cells
        if has_several and (is_short or self.n_distinct >= TEXT_SHARE * self.n_compared):
            return True
        hardly_any_twice = self.n_distinct >= MAJORITY * self.n_compared
        return not is_short and hardly_any_twice and self.n_words >= 1.5 * n_cells

    @property
    def day_first(self) -> bool:
        """Whether the day stands first in dates with slashes."""
        return self.date_orders["month"] <= self.date_orders["day"]

    @property
    def has_ambiguous_dates(self) -> bool:
        """Whether there are dates such as 1/2/2024, and none that shows whether the day stands first."""
        orders = self.date_orders
        return orders["unknown"] > 0 and not orders["day"] + orders["month"]

    def to_column(self) -> Column:
        """Return the column that has this profile."""
        kind = self.kind
        if self.n_filled and self.n_non_numeric == self.n_filled:
            what = f"column {self.name!r} was declared as {kind}, but its {self.n_filled:,} filled cells hold words"
            if self.has_several_units:
                what = f"{what}: numbers with different units ({self.list_units()}), write them in one"
            raise InvalidInput(what)
        numbers = kind in (NUMBERS, BOOLEAN)
        return Column(
            self.name,
            kind,
            decimal=self.decimal if numbers else ".",
            unit=self.unit if numbers else "",
            has_time=kind == DATES and any(map(_has_time, self.scalars)),
            day_first=kind != DATES or self.day_first,
            length=max(self.vector_lengths) if kind == VECTOR else 0,
            high_cardinality=kind == WORDS and self.n_distinct > MANY_WORDS,
            imputed=float(np.float32(self.mean)) if numbers and abs(self.mean) <= FLOAT32_MAX else 0.0,
        )

    @property
    def has_several_units(self) -> bool:
        """Whether its cells are numbers, most with a unit, and not nearly all with the same one."""
        return 1 < len(self.units) <= MAX_UNITS and not self.unit

    def list_units(self) -> str:
        """Return the units in the column, each with its count of numbers, as text."""
        listed = [f"{unit}: {n:,}" for unit, n in self.units.most_common(MAX_LISTED_UNITS)]
        return ", ".join([*listed, "…"] if len(self.units) > MAX_LISTED_UNITS else listed)

    def exclusion_reason(self, *, wanted: bool = False) -> str:
        """Return why the column is no feature; empty if it may be one, as ``wanted`` columns with usable values may."""
        if self.n_by_kind[None]:
            return _describe_type(self._values[self._kinds.index(None)])
        if len(self.vector_lengths) > 1 or (self.n_by_kind[VECTOR] and self.kind != VECTOR):
            return LISTS
        if wanted or self.is_declared:
            return ""
        if not self.n_filled:
            return "empty"
        if self.n_filled < ENOUGH_ROWS:
            return ""
        values = self.scalars
        is_whole = bool(values) and all(map(_is_whole, values))
        if values and not self.n_missing and not self.n_by_kind[VECTOR]:
            first = values[0]
            if all(value == first for value in values):
                return f"always {first:g}" if isinstance(first, float) else f"always {first}"
            is_sorted = all(map(_in_order, values, values[1:]))
            if is_sorted and is_whole and len(set(values)) == len(values):
                return "counts the rows"
            if is_sorted and self.kind == DATES:
                return "time: it goes on with the rows"
        is_unique = self.n_distinct == self.n_compared
        if self.has_id_name and is_unique and (is_whole or self.kind in (WORDS, TEXT)):
            return "an id"
        return LIKELY_ID if self.kind == WORDS and self.n_distinct >= MAJORITY * self.n_compared else ""


def column_profiles(cells: Mapping[str, Sequence[Cell]], kinds: ColumnKinds) -> dict[str, ColumnProfile]:
    """Return the profile of each column, by name.

    Where its own cells do not tell whether 1.234 means thousands, the other columns do, if they agree.
    """
    profiles = {name: ColumnProfile(name, cells[name], kinds.get(name)) for name in cells}
    numbers = [profile for profile in profiles.values() if profile.kind == NUMBERS]
    decimals = {profile.shown_decimal for profile in numbers} - {None}
    if len(decimals) == 1:
        decimal = decimals.pop()
        for name in (profile.name for profile in numbers if profile.ambiguous_numbers and not profile.marks):
            profiles[name] = ColumnProfile(name, cells[name], kinds.get(name), decimal)
    return profiles


def select_features(
    profiles: Mapping[str, ColumnProfile], left_out: Mapping[str, str], wanted: Iterable[str] | None
) -> tuple[list[ColumnProfile], dict[str, str]]:
    """Return the columns of a table that are taken as features, and why the others are left out.

    Args:
        profiles: of all columns, by name.
        left_out: columns that are no features in any case, and why.
        wanted: the only columns to take, whatever they hold; ``None`` leaves out ids, constants and counters.
    """
    candidates = [profiles[name] for name in (profiles if wanted is None else wanted) if name not in left_out]
    reasons = {profile.name: profile.exclusion_reason(wanted=wanted is not None) for profile in candidates}
    if all(reasons.values()):  # ids and constants alone are better than nothing
        reasons = {profile.name: profile.exclusion_reason(wanted=True) for profile in candidates}
    reasons = {**left_out, **reasons}
    features = [profile for profile in candidates if not reasons[profile.name]]
    return features, {name: reasons[name] for name in profiles if reasons.get(name)}


def _find_units(values: list[Any], *, is_declared: bool) -> tuple[Counter[str], str]:
    """Return the units of a column of numbers with units, and the one that nearly all have; empty where there is none.

    ``is_declared``: whether it was asked for as numbers; then one unit is enough.
    """
    texts = [value for value in values if isinstance(value, str)]
    filled = [text for text in texts if text.strip().lower() not in MISSING_WORDS]
    parts = list(filter(None, map(split_unit, filled)))
    n_others = sum(value is not None for value in values) - len(texts)
    n_filled = n_others + len(filled)
    n_alone = n_others + sum(type(parse_by_mark(text, ".")) is float for text in filled)
    has_units = bool(parts) and 2 * len(parts) >= n_filled and len(parts) + n_alone >= MAJORITY * n_filled
    # codes are postal areas, with a country: 01067 DE
    if not has_units or are_codes([number for number, _ in parts], "."):
        return Counter(), ""
    units = Counter(unit for _, unit in parts)
    unit, count = units.most_common(1)[0]
    if count >= MAJORITY * n_filled or (is_declared and len(units) == 1):
        return units, unit
    return units | Counter({"none": n_alone}), ""


def _without_unit(value: Any, unit: str) -> Any:
    parts = split_unit(value) if isinstance(value, str) else None
    return parts[0] if parts is not None and parts[1] == unit else value


def _kind(value: Any) -> str | None:
    """Return the kind of a parsed value; ``None`` for what is no value."""
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


def _describe_type(value: Any) -> str:
    is_list = isinstance(value, list | tuple | np.ndarray)
    return LISTS if is_list else f"{OF_TYPE}{type(value).__name__}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, Real) and float(value).is_integer()


def _has_time(value: Any) -> bool:
    return isinstance(value, datetime) and value.time() != datetime.min.time()


def _in_order(before: Any, value: Any) -> bool:
    try:
        return bool(before <= value)
    except TypeError:  # a word after a number
        return False
