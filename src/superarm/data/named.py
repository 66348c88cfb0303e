"""Named rows: a dict, or a data frame's row, with numbers, words, true/false, dates and gaps.

Every learner takes them where it takes rows. The first one fixes the layout of the dense row that is
learnt from, and `Names`, which is kept in the model file, says what stands where:

    numbers   each name's number has a place of its own; new names get one as they come
    gaps      one place for each of them: 1 where it is missing (then the number counts as its mean)
    words     every (name, word) adds ± 1 to two places, which a hash of both chooses

True is 1. A date is a number (days since 1970) and words: weekday, month, and hour if it has a time.
None, NaN and a name that is left out are the same: a gap. A string that reads 2024-05-01 or
2024-05-01T12:30 is a date, for files and JSON have no other way to say so. Where a number is known to
stand, "41" is a number, "true" is 1, and "NA", "null", "-" or "?" is a gap (`spelt`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from math import inf, isnan
from numbers import Real
from typing import Any

import numpy as np

from superarm.data.rows import LARGEST
from superarm.errors import InvalidInput

__all__ = [
    "Names",
    "date_in",
    "has_words_or_gaps",
    "is_frame",
    "is_gap",
    "is_named_row",
    "is_named_rows",
    "plain_row",
    "spelt",
]

Array = np.ndarray[Any, Any]

PLACES, WORDS = 40, 256  # unless the first row has more numbers, or n_features was given
SHARED = 5  # one place in five takes the numbers for which no place of their own is left
LEAST = 8  # features
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
GAPS = ("NAType", "NaTType")  # of pandas, which is not imported for this
GAP_WORDS = ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "-", "?")
TRUTHS = {"true": True, "false": False}
KINDS = "a number, a word, true or false, a date or a gap"


class Names:
    """What stands where in the dense row that named rows become.

    Args:
        numbers: the names of numbers, in the order of their places.
        places: how many places there are for numbers, and as many for their gaps.
        words: how many places there are for words.

    >>> names = Names(places=5, words=8)
    >>> x = names.row({"age": 41, "city": "Rome", "income": None}, "this", grow=True)
    >>> x[:5].tolist(), x[5:10].tolist(), names.numbers
    ([41.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 1.0], ['age'])
    >>> names.row({"city": "Rome", "age": 41}, "this").tolist() == x.tolist()
    True
    """

    __slots__ = ("_place", "places", "words")

    def __init__(self, numbers: Sequence[str] = (), *, places: int = PLACES, words: int = WORDS) -> None:
        self.places, self.words = int(places), int(words)
        self._place = {str(name): i for i, name in enumerate(numbers)}

    @classmethod
    def first(cls, X: Any, n_features: int | None, owner: str) -> Names:
        """Names for these first rows; ``n_features`` is the width, if it was asked for."""
        numbers = len(X.columns) if is_frame(X) else max(len(x) for x in X)
        if n_features is None:
            return cls(places=max(PLACES, 2 * numbers + 8))
        if n_features < LEAST:
            wanted = f"left out, or at least {LEAST}, for rows with names"
            raise InvalidInput.must("n_features", owner, wanted, n_features)
        places = min(max(PLACES, 2 * numbers + 8), n_features // 4)
        return cls(places=places, words=n_features - 2 * places)

    @property
    def numbers(self) -> list[str]:
        """The names of numbers that have a place of their own."""
        return list(self._place)

    @property
    def width(self) -> int:
        return 2 * self.places + self.words

    def __len__(self) -> int:
        return len(self._place)

    def forget(self, after: int) -> None:
        """Keep only so many of the first names: those after them came with a row that was refused."""
        for name in self.numbers[after:]:
            del self._place[name]

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": self.numbers, "places": self.places, "words": self.words}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Names:
        return cls(data["numbers"], places=data["places"], words=data["words"])

    # ------------------------------------------------------------ rows

    def row(self, x: Any, owner: str, *, grow: bool = False) -> Array:
        """The dense row of a named one; with ``grow``, new names of numbers get places."""
        items = (x if isinstance(x, Mapping) else x.to_dict()).items()
        numbers, words = list[tuple[str, float]](), list[tuple[str, str]]()
        for name, value in items:
            if type(value) is str:
                if str(name) in self._place:
                    value = spelt(value)
                elif not (value[:1].isdigit() and DATE.fullmatch(value)):  # most of them
                    words.append((str(name), value))
                    continue
            for part in _parts(name, value, owner):
                if isinstance(part, float):
                    numbers.append((str(name), part))
                else:
                    words.append(part)
        numbers.sort()  # new names get places, and shared places add up, in an order of their own
        if grow:
            for name, _ in numbers:
                self._grow(name)
        row: Array = self._empty(1)[0]
        for name, number in numbers:
            at = self._at(name)
            if at is not None:
                row[at] += number
                row[self.places + at] = 0.0
        for word in words:
            self._add_word(row, word)
        return row

    def rows(self, X: Any, owner: str, *, grow: bool = False) -> Array:
        """The dense rows of a data frame, or of a list of named rows: the same bits as row by row."""
        if not is_frame(X):
            return np.stack([self.row(x, owner, grow=grow) for x in X])
        if len({str(name) for name in X.columns}) < len(X.columns):
            raise InvalidInput.must("columns of X", owner, "different", list(X.columns))
        columns = sorted(((str(name), X[name]) for name in X.columns), key=lambda pair: pair[0])
        cells = [(name, *_cells(name, column, owner, name in self._place, grow)) for name, column in columns]
        if grow:
            first = [(int(np.argmin(np.isnan(n))), name) for name, n, _ in cells if not np.isnan(n).all()]
            for _, name in sorted(first):
                self._grow(name)
        rows = self._empty(len(X))
        for name, numbers, words in cells:
            known, at = ~np.isnan(numbers), self._at(name)
            if at is not None and known.any():
                rows[known, at] += numbers[known].astype(np.float32)
                rows[known, self.places + at] = 0.0
            for part, where in words.items():
                for i in where:
                    self._add_word(rows[i], part)
        return rows

    def _empty(self, n: int) -> Array:
        rows = np.zeros((n, self.width), np.float32)
        rows[:, self.places : 2 * self.places] = 1.0
        return rows

    @property
    def _own(self) -> int:
        return self.places - self.places // SHARED

    def _grow(self, name: str) -> None:
        if name not in self._place and len(self._place) < self._own:
            self._place[name] = len(self._place)

    def _at(self, name: str) -> int | None:
        """The place of a number; ``None`` for a new name (nothing is known about it yet)."""
        at = self._place.get(name)
        if at is not None:
            return at
        if len(self._place) < self._own or self._own == self.places:
            return None
        return self._own + _hash("", name) % (self.places - self._own)

    def _add_word(self, row: Array, part: tuple[str, str]) -> None:
        h = _hash(*part)
        one = (h >> 2) % self.words
        two = (one + 1 + (h >> 34) % (self.words - 1)) % self.words
        start = 2 * self.places
        row[start + one] += 1.0 if h & 1 else -1.0
        row[start + two] += 1.0 if h & 2 else -1.0


@lru_cache(maxsize=65_536)
def _hash(name: str, word: str) -> int:
    return int.from_bytes(blake2b(f"{name}\0{word}".encode(), digest_size=8).digest(), "little")


# ---------------------------------------------------------------- values


def _parts(name: Any, value: Any, owner: str) -> Iterator[float | tuple[str, str]]:
    """What a value is made of: numbers, and words as (name, word)."""
    kind = type(value)
    if kind is str:
        when = date_in(value)
        if when is None:
            yield str(name), value
        else:
            yield from _date_parts(str(name), when)
    elif value is None or kind.__name__ in GAPS:
        return
    elif kind is float or kind is int or isinstance(value, Real | np.bool_) or kind.__name__ == "Decimal":
        try:
            number = float(value)
        except OverflowError:  # 10**400
            number = inf
        if isnan(number):
            return
        if not abs(number) <= LARGEST:
            raise InvalidInput.must(f"x[{name!r}]", owner, "finite as a 32-bit float, or a gap", value)
        yield number
    elif isinstance(value, np.datetime64):
        yield from _parts(name, value.astype("datetime64[us]").item(), owner)
    elif isinstance(value, date):
        yield from _date_parts(str(name), value)
    elif isinstance(value, timedelta):
        yield value / timedelta(days=1)
    elif isinstance(value, str):  # NumPy's, or an enumeration's
        yield from _parts(name, str(value), owner)
    else:
        raise InvalidInput.must(f"x[{name!r}]", owner, KINDS, value)


def spelt(text: str) -> Any:
    """What a text means where numbers stand: a number, true or false, a gap; or else itself.

    >>> [spelt(text) for text in (" 41", "-1.5e3", "True", "N/A", "forty", "1_000")]
    [41.0, -1500.0, True, None, 'forty', '1_000']
    """
    word = text.strip()
    if NUMBER.fullmatch(word):
        return float(word)
    low = word.lower()
    return None if low in GAP_WORDS else TRUTHS.get(low, text)


def date_in(text: str) -> date | None:
    """The date that a text spells, as 2024-05-01 or 2024-05-01T12:30 does."""
    if not (text[:1].isdigit() and DATE.fullmatch(text)):
        return None
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:  # 2024-02-30 is a word
        return None


def _date_parts(name: str, when: date) -> Iterator[float | tuple[str, str]]:
    midnight = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
    aware = midnight if midnight.tzinfo is not None else midnight.replace(tzinfo=UTC)
    yield (aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    yield f"{name} weekday", WEEKDAYS[when.weekday()]
    yield f"{name} month", str(when.month)
    if isinstance(when, datetime):
        yield f"{name} hour", str(when.hour)


def plain_row(x: Any) -> dict[str, Any]:
    """A named row as JSON-ready values that mean the same: what a Decision keeps of it."""
    if not isinstance(x, Mapping):  # a Series
        x = x.to_dict()
    return {str(name): _plain(value) for name, value in x.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if is_gap(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    if type(value).__name__ == "Decimal":
        return float(value)
    return value / timedelta(days=1) if isinstance(value, timedelta) else value


# ---------------------------------------------------------------- data frames


def is_gap(value: Any) -> bool:
    """Whether a value is missing: ``None``, NaN, or what pandas has for it."""
    missing = value is None or type(value).__name__ in GAPS
    return missing or (isinstance(value, float | np.floating) and bool(isnan(value)))


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or Polars (or something that looks like one)."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "dtypes")


def is_named_row(x: Any) -> bool:
    """Whether x is a dict, or a Series with names."""
    if isinstance(x, Mapping):
        return True
    series = hasattr(x, "to_dict") and hasattr(x, "index") and not hasattr(x, "columns")
    return series and any(isinstance(name, str) for name in x.index)


def is_named_rows(X: Any) -> bool:
    """Whether X is a data frame, or a list of dicts."""
    if is_frame(X):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(is_named_row, X))


def _cells(
    name: str, column: Any, owner: str, is_number: bool, grow: bool
) -> tuple[Array, dict[tuple[str, str], list[int]]]:
    """The numbers of a column, NaN where there is none, and the rows of each of its words.

    Texts may spell numbers once the name is known as a number: before, or from this column.
    """
    numbers = _numbers(column)
    words: dict[tuple[str, str], list[int]] = {}
    if numbers is not None:
        bad = np.isinf(numbers) | (np.abs(numbers) > LARGEST)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            wanted = "finite as a 32-bit float, or a gap"
            raise InvalidInput.must(f"{name!r} in row {at + 1} of X", owner, wanted, float(numbers[at]))
        return numbers, words
    values = column.to_list() if hasattr(column, "to_list") else list(column)
    numbers = np.full(len(values), np.nan)
    known: dict[Any, list[float | tuple[str, str]]] = {}
    for i, value in enumerate(values):
        try:
            parts = known.get((type(value), value, is_number))
        except TypeError:  # a list, say: refused below
            parts = None
        if parts is None:
            meant = spelt(value) if is_number and type(value) is str else value
            parts = list(_parts(name, meant, owner))
            known[type(value), value, is_number] = parts
        for part in parts:
            if isinstance(part, float):
                numbers[i] = part
                is_number = is_number or grow
            else:
                words.setdefault(part, []).append(i)
    return numbers, words


def _numbers(column: Any) -> Array | None:
    """A column of numbers or of true and false as float64, gaps as NaN; ``None`` for any other."""
    kind = str(column.dtype).lower().split("(")[0]
    if not kind.startswith(("int", "uint", "float", "bool", "decimal")):
        return None
    if hasattr(column, "cast"):  # Polars
        return np.array(column.cast(float).to_numpy(), np.float64)
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))


def has_words_or_gaps(X: Any) -> bool:
    """Whether a data frame is more than a matrix of numbers."""
    numbers = [_numbers(X[name]) for name in X.columns]
    return any(column is None or bool(np.isnan(column).any()) for column in numbers)
