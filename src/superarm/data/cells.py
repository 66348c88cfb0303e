"""One value of a user's table: a number, true or false, a date, a word, a text, a vector, or missing.

Texts such as 41, true, 2024-05-01 and NA (in a CSV) mean the same as the typed values of frames and JSON.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from math import inf, isnan
from numbers import Real
from typing import Any

import numpy as np

from superarm._types import Array, Cell, JsonObject
from superarm.data.rows import FLOAT32_MAX
from superarm.errors import InvalidInput

ParsedCell = float | str | date | Array | None  # None: missing

KINDS_OF_VALUES = "a number, a word, a text, true or false, a date, a list of numbers, or missing"
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which is not imported for this
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "-", "?")
BOOLEAN_WORDS = {"true": True, "false": False, "yes": True, "no": False}
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
SPACES = r"['\u2019 \u00a0\u202f]"  # between thousands, with either decimal mark
HEAD = r"[+-]?[1-9]\d{0,2}"  # before the first thousands: 0,532 is a fraction
GROUPED = {
    ".": re.compile(rf"{HEAD}(?:,\d{{3}})+(?:\.\d+)?|{HEAD}(?:{SPACES}\d{{3}})+(?:\.\d+)?"),
    ",": re.compile(rf"(?:{HEAD}(?:(?:\.|{SPACES})\d{{3}})+|[+-]?\d+)(?:,\d+)?"),
}
UNIT = re.compile(  # around a number
    r"^([+-]?)(?:[€$£¥]\s*|(?:EUR|USD|GBP|CHF)\s+)(?=[\d.+-])|(?<=[\d.])\s*(?:[%€$£¥]|EUR|USD|GBP|CHF)$"
)
# a number, and a unit behind it that is no per cent sign and no currency: 36.8 °C, 49 min, 5km/h
WITH_UNIT = re.compile(
    r"([+-]?\d(?:[\d.,'\u2019 \u00a0\u202f]*\d)?)\s*((?:[^\W\d_]|[°‰′″\"'])[^\d\s,;]{0,14}(?: [^\d\s,;]{1,9})?)"
)
NOT_DIGITS = {mark: re.compile(rf"{SPACES}|{other}") for mark, other in ((".", ","), (",", r"\."))}
AMBIGUOUS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # thousands, or three decimals
DECIMAL_COMMA = re.compile(
    r"[+-]?(?:(?:\d{1,3}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+),\d+|[1-9]\d{0,2}(?:\.\d{3}){2,})"
)
CODE = re.compile(r"\d{3,}")
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
OTHER_DATE = re.compile(
    r"(?:(\d{4})/(\d\d?)/(\d\d?)|(\d\d?)([./])(\d\d?)\5(\d{4}|(?<=\.)\d\d))"
    r"(?:[T ,]+(\d\d?):(\d\d(?::\d\d)?)(?: ?([AP])M)?)?",
    re.IGNORECASE,
)
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
TEXT_WORDS, TEXT_LETTERS = 2, 6  # words of a text, at least; letters, in scripts without spaces


# ---------------------------------------------------------------- what a text means


def parse_scalar(text: str, decimal: str = ".") -> float | bool | str | None:
    """Return a text as a number, true or false, ``None`` if it means a missing value; any other text as it is.

    >>> [parse_scalar(text) for text in (" 41", "-1.5e3", "True", "N/A", "12 %", "1,234.5", "forty", "1_000")]
    [41.0, -1500.0, True, None, 12.0, 1234.5, 'forty', '1_000']
    >>> parse_scalar("1.234,5", decimal=","), parse_scalar("3,5", decimal=","), parse_scalar("3,5")
    (1234.5, 3.5, '3,5')
    >>> parse_scalar("$1,234.50"), parse_scalar("12,50 €", decimal=","), parse_scalar("CHF 7")
    (1234.5, 12.5, 7.0)
    """
    word = text.strip()
    if decimal == "." and NUMBER.fullmatch(word):
        return float(word)
    low = word.lower()
    if low in MISSING_WORDS:
        return None
    if low in BOOLEAN_WORDS:
        return BOOLEAN_WORDS[low]
    bare = without_unit(word)
    if GROUPED[decimal].fullmatch(bare):
        return float(NOT_DIGITS[decimal].sub("", bare).replace(",", "."))
    return float(bare) if NUMBER.fullmatch(bare) else text


def without_unit(text: str) -> str:
    """Return a number as it is written, without a per cent sign or a currency before or after it."""
    return UNIT.sub(r"\1", text.strip())


def split_unit(text: str) -> tuple[str, str] | None:
    """Return a number as it is written, and the unit behind it; ``None`` for any other text, and for a number alone.

    >>> [split_unit(text) for text in ("36.8 °C", "49min", "-3,5 km/h", "12 €", "12", "12-A", "about 5 min")]
    [('36.8', '°C'), ('49', 'min'), ('-3,5', 'km/h'), None, None, None, None]
    """
    match = WITH_UNIT.fullmatch(text.strip())
    if match is None or isinstance(parse_by_mark(match[0], "."), float):  # 12 EUR is a number as it is
        return None
    number, unit = match.groups()
    return (number, unit) if isinstance(parse_by_mark(number, "."), float) else None


def parse_date(text: str, day_first: bool = True) -> date | None:
    """Return the date in a text: 2024-05-01T12:30, 2024/05/01, 1.5.2024 12:30, 1.5.24, 31/12/2024, 12/31/2024 3:05 PM.

    Args:
        text: the text of a cell.
        day_first: whether the day stands first between slashes, where both are possible.

    >>> parse_date("2024-05-01"), parse_date("1.5.2024 12:30"), parse_date("2024-02-30")
    (datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12, 30), None)
    >>> parse_date("1.5.24"), parse_date("1.5.72")
    (datetime.date(2024, 5, 1), datetime.date(1972, 5, 1))
    >>> parse_date("05/01/2024"), parse_date("05/01/2024", day_first=False), parse_date("12/31/2024")
    (datetime.date(2024, 1, 5), datetime.date(2024, 5, 1), datetime.date(2024, 12, 31))
    """
    if not text[:1].isdigit():
        return None
    try:
        if DATE.fullmatch(text):
            return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
        match = OTHER_DATE.fullmatch(text)
        if match is None:
            return None
        year, month, day, first, mark, second, year_last, hour, minutes, half = match.groups()
        if mark is not None:
            day_is_first = mark == "." or int(first) > 12 or (day_first and int(second) <= 12)
            year, month, day = (year_last, second, first) if day_is_first else (year_last, first, second)
        if len(year) == 2:  # as POSIX has it: 1969 to 2068
            year = f"{'19' if year > '68' else '20'}{year}"
        when = date(int(year), int(month), int(day))
        if hour is None:
            return when
        hours = int(hour) if half is None else int(hour) % 12 + 12 * (half in "pP")
        return datetime.fromisoformat(f"{when.isoformat()}T{hours:02}:{minutes}")
    except ValueError:  # 2024-02-30 is a word
        return None


def date_order(text: str) -> str | None:
    """Return what stands first in a date with slashes, ``"day"``, ``"month"``, ``"unknown"``; ``None`` for any other.

    >>> [date_order(text) for text in ("31/12/2024", "12/31/2024", "1/2/2024", "2024/12/31")]
    ['day', 'month', 'unknown', None]
    """
    match = OTHER_DATE.fullmatch(text)
    if match is None or match[5] != "/":
        return None
    return "day" if int(match[4]) > 12 else "month" if int(match[6]) > 12 else "unknown"


def is_text(value: str) -> bool:
    """Return whether a string is a text, and not a word, judged alone: by its words, or by its script.

    >>> [is_text(value) for value in ("Rome", "card not working", "c3-8f2a", "我的银行卡不能用")]
    [False, True, False, True]
    """
    if len(value) >= TEXT_LETTERS and not value.isascii() and UNSPACED.search(value):
        return True
    return len(value.split(None, TEXT_WORDS)) >= TEXT_WORDS


def normalize_text(text: str) -> str:
    """Return a text in lower case and in one normal form, as native/text.pyx hashes it."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


# ---------------------------------------------------------------- the decimal mark and codes of a column


def count_marks(texts: Iterable[str]) -> Counter[str]:
    """Count the marks before decimals, comma or point, among the numbers that can be read in one way only.

    >>> count_marks(["3,5", "1.234"]), count_marks(["12.5 %", "1.234", "7"])
    (Counter({',': 1}), Counter({'.': 1}))
    """
    return Counter(mark for text in texts if (mark := _mark_of(without_unit(text))) is not None)


def ambiguous_numbers(texts: Iterable[str]) -> list[str]:
    """Return the texts such as 1.234, whose mark may be of thousands or of decimals."""
    return list(filter(AMBIGUOUS_NUMBER.fullmatch, map(without_unit, texts)))


def parse_by_mark(text: str, mark: str) -> float | bool | str | None:
    """Parse a text as `parse_scalar` does, by ``mark`` only where the text itself leaves open which mark is meant."""
    number = without_unit(text)
    return parse_scalar(text, mark if AMBIGUOUS_NUMBER.fullmatch(number) else _mark_of(number) or ".")


def describe_ambiguous(number: str, column: str, count: int, mark: str, marks: Counter[str]) -> str:
    """Return how an ambiguous number of a column is read, and what to do if it means something else.

    Args:
        number, count: one of its ambiguous numbers, and how many there are.
        mark: before decimals, by which they are read.
        marks: of the numbers of the column that can be read in one way only.
    """
    other = "," if mark == "." else "."
    as_read, as_other = parse_scalar(number, mark), parse_scalar(number, other)
    what = f"{number} in {column} is read as {as_read:g}"
    why = "no cell and no other column shows what stands before decimals"
    if marks:
        what = f"{count:,} numbers such as {number} in {column} are read as {as_read:g}"
        why = f"{marks[mark]:,} cells show {mark!r} before decimals and {marks[other]:,} show {other!r}"
    return f'{what}, since {why}; for {as_other:g} set "decimal": "{other}" for {column} in a columns file'


def _mark_of(number: str) -> str | None:
    """Return the decimal mark of a number that can be read in one way only; ``None`` for any other."""
    if not ("," in number or "." in number) or AMBIGUOUS_NUMBER.fullmatch(number):
        return None
    if DECIMAL_COMMA.fullmatch(number):
        return ","
    return "." if isinstance(parse_scalar(number), float) else None


def is_code(text: str) -> bool:
    """Whether a text is three digits or more, and no other sign."""
    return CODE.fullmatch(text.strip()) is not None


def are_codes(texts: Iterable[str], mark: str) -> bool:
    """Whether all numbers among texts have as many digits, some with a 0 in front, as postcodes do: 01067."""
    numbers = [text.strip() for text in texts if type(parse_scalar(text, mark)) is float]
    one_length = len({len(number) for number in numbers}) == 1
    return one_length and all(map(is_code, numbers)) and any(number[0] == "0" for number in numbers)


# ---------------------------------------------------------------- values of any library


def is_missing(value: object) -> bool:
    """Return whether a value is missing: ``None``, NaN, or what pandas has for it."""
    missing = value is None or type(value).__name__ in MISSING_TYPES
    return missing or (isinstance(value, float | np.floating) and bool(isnan(value)))


def to_python(value: Cell) -> Cell:
    """Return a value of any library as Python's own: number, string, date, ``None`` if missing; all else as it is.

    A span of time is a number of days.

    >>> to_python(np.float32(0.5)), to_python(float("nan")), to_python(timedelta(hours=12))
    (0.5, None, 0.5)
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return value
    if isinstance(value, np.generic):
        if isinstance(value, np.datetime64 | np.timedelta64):  # finer ones have no item of Python's
            value = value.astype(f"{type(value).__name__}[us]")
        value = value.item()
    if value is None or kind.__name__ in MISSING_TYPES:
        return None
    if isinstance(value, float | np.floating) or kind.__name__ == "Decimal":
        number = float(value)
        return None if isnan(number) else number
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, date):
        return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return str.__str__(value) if isinstance(value, str) else value  # of an enumeration, its value


def finite_number(value: Cell, name: str, owner: str) -> float:
    """Return a value as a finite number, true as 1; any other is refused."""
    try:
        number = float(value)
    except OverflowError:  # 10**400
        number = inf
    if not abs(number) <= FLOAT32_MAX:
        raise InvalidInput.must(f"x[{name!r}]", owner, "finite as a 32-bit float, or missing", value)
    return number


def check_value(value: Cell, name: str, owner: str) -> ParsedCell:
    """Return a value of any library as float, str, date, float32 vector, ``None`` if missing; others are refused."""
    value = to_python(value)
    if value is None or isinstance(value, str | date):
        return value
    return finite_number(value, name, owner) if isinstance(value, Real) else parse_vector(value, name, owner)


def parse_vector(value: Cell, name: str, owner: str) -> Array:
    """Return a list, an array or a series of finite numbers, or one as JSON in files of text, as float32 numbers."""
    numbers = value
    if isinstance(value, str):
        try:
            numbers = json.loads(value)
        except ValueError:
            numbers = None
    elif hasattr(value, "to_list"):
        numbers = value.to_list()
    if isinstance(numbers, list | tuple | np.ndarray):
        try:
            with np.errstate(over="ignore"):
                vector = np.array(numbers, np.float32)
        except (TypeError, ValueError):
            vector = np.zeros(0, np.float32)
        if vector.ndim == 1 and len(vector) and np.isfinite(vector).all():
            return vector
    raise InvalidInput.must(f"x[{name!r}]", owner, KINDS_OF_VALUES, value)


def to_word(value: ParsedCell) -> str:
    """Return a value of a column of words as a word: 7 and 7.0 are the same."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def days_since_1970(when: date) -> float:
    """Return the days since 1970, in UTC."""
    midnight = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
    aware = midnight if midnight.tzinfo is not None else midnight.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)


# ---------------------------------------------------------------- rows


def is_named_row(x: Any) -> bool:
    """Return whether x is a dict, or a Series with names."""
    if isinstance(x, Mapping):
        return True
    series = hasattr(x, "to_dict") and hasattr(x, "index") and not hasattr(x, "columns")
    return series and any(isinstance(name, str) for name in x.index)


def json_row(x: Any) -> JsonObject:
    """Return a named row as JSON-ready values that mean the same: what a Decision keeps of it, and the client sends."""
    if not isinstance(x, Mapping):  # a Series
        x = x.to_dict()
    return {str(name): _plain(value) for name, value in x.items()}


def _plain(value: Cell) -> Any:
    value = to_python(value)
    if isinstance(value, np.ndarray) or hasattr(value, "to_list"):
        return np.asarray(value).tolist()
    return value.isoformat() if isinstance(value, date) else value
