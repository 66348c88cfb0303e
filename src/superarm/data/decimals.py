"""Whether a point or a comma stands before the decimals of a column's numbers, and which digits are no numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from superarm.data.cells import parse_scalar, without_unit

AMBIGUOUS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # thousands, or three decimals
DECIMAL_COMMA = re.compile(
    r"[+-]?(?:(?:\d{1,3}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+),\d+|[1-9]\d{0,2}(?:\.\d{3}){2,})"
)
CODE = re.compile(r"\d{3,}")


def shown_mark(texts: Iterable[str]) -> str | None:
    """Return what stands before decimals in most of the numbers that can be read in one way only; ``None``: in none.

    >>> shown_mark(["3,5", "1.234"]), shown_mark(["12.5 %"]), shown_mark(["1.234", "7"])
    (',', '.', None)
    """
    marks = Counter(_mark_of(without_unit(text)) for text in texts)
    if not marks[","] + marks["."]:
        return None
    return "," if marks[","] > marks["."] else "."


def first_ambiguous(texts: Iterable[str]) -> str | None:
    """Return the first number such as 1.234, which are thousands or three decimals; ``None`` if there is none."""
    return next(filter(AMBIGUOUS_NUMBER.fullmatch, map(without_unit, texts)), None)


def parse_by_mark(text: str, mark: str) -> float | bool | str | None:
    """Return what `parse_scalar` makes of a text, by its own mark if it can be read in one way only."""
    number = without_unit(text)
    return parse_scalar(text, mark if AMBIGUOUS_NUMBER.fullmatch(number) else _mark_of(number) or ".")


def describe_ambiguous(number: str, column: str) -> str:
    """Return how an ambiguous number of a column is read, and what to do if it means something else."""
    as_read, other = parse_scalar(number), parse_scalar(number, ",")
    return (
        f"{number} in {column} is read as {as_read:g}, since no cell and no other column shows what stands "
        f'before decimals; for {other:g} set "decimal": "," for {column} in a columns file'
    )


def _mark_of(number: str) -> str | None:
    """Return what stands before the decimals of a number that can be read in one way only; else ``None``."""
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
