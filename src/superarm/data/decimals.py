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


class DecimalMark:
    """What stands before the decimals of a column's numbers.

    Args:
        texts: the cells that are texts.
        elsewhere: what it is in the other columns, if they agree; it decides where no cell does.

    Attributes:
        mark: ``"."`` or ``","``.
        is_shown: whether a cell can be read in one way only.
        ambiguous_number: a number such as 1.234, where neither a cell nor another column tells if it means thousands.
    """

    def __init__(self, texts: Iterable[str], elsewhere: str | None = None) -> None:
        numbers = [without_unit(text) for text in texts]
        marks = Counter(map(_mark_of, numbers))
        self.is_shown = marks[","] + marks["."] > 0
        self.ambiguous_number: str | None = None
        if self.is_shown:
            self.mark = "," if marks[","] > marks["."] else "."
        else:
            self.mark = elsewhere or "."
            if elsewhere is None:
                self.ambiguous_number = next(filter(AMBIGUOUS_NUMBER.fullmatch, numbers), None)

    def parse(self, text: str) -> float | bool | str | None:
        """Return what `parse_scalar` makes of a text, by its own mark if it can be read in one way only."""
        number = without_unit(text)
        mark = self.mark if AMBIGUOUS_NUMBER.fullmatch(number) else _mark_of(number) or "."
        return parse_scalar(text, mark)

    def describe_ambiguous_number(self, column: str) -> str:
        """Return how the ambiguous number of this column is read, and what to do if it means something else."""
        text = str(self.ambiguous_number)
        as_read, other = parse_scalar(text), parse_scalar(text, ",")
        return (
            f"{text} in {column} is read as {as_read:g}, since no cell and no other column shows what stands "
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
