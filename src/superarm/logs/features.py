"""Which columns of somebody's table are features, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from superarm.logs.cells import number_in

__all__ = ["choose_features"]

SURE = 20  # rows, before a column is called an index or a constant
ID_NAME = re.compile(r"(^|[_ .])(id|ids|uuid|guid|key|index|idx)$|[a-z]I[dD]$", re.IGNORECASE)


def choose_features(
    sample: list[dict[str, Any]], rows: Iterable[dict[str, Any] | str], taken: set[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns to take, and for each other one the reason to leave it out.

    Args:
        sample: the first rows, which say what holds numbers: a word further on is a bad row.
        rows: all rows, which say what is constant, or counts the rows.
        taken: columns that hold something else.
    """
    names = dict.fromkeys(name for row in sample for name in row if name not in taken)
    left_out, columns = {}, {}
    for name in names:
        given = (row.get(name) for row in sample)
        values = [value for value in given if value is not None and value == value]  # NaN is a gap
        if not values:
            left_out[name] = "empty"
        elif any(isinstance(value, list | dict) for value in values):
            left_out[name] = "lists"
        elif any(number_in(value) is None for value in values):
            left_out[name] = "words"
        else:
            columns[name] = _Column(name)
    count = 0
    for row in rows:
        if isinstance(row, dict):
            count += 1
            for name, column in columns.items():
                column.see(row.get(name))
    if count >= SURE:
        left_out |= {name: why for name, column in columns.items() if (why := column.why_not())}
    return tuple(name for name in columns if name not in left_out), left_out


class _Column:
    """What all values of a column have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first: float | None = None
        self.last: float | None = None
        self.constant = self.whole = self.increasing = True
        self.different: set[float] | None = set() if ID_NAME.search(name) else None

    def see(self, value: Any) -> None:
        number = number_in(value)
        if number is None:
            return
        if self.first is None:
            self.first = number
        self.constant &= number == self.first
        self.whole &= number.is_integer()
        self.increasing &= self.last is None or number > self.last
        self.last = number
        if self.different is not None and number in self.different:
            self.different = None
        elif self.different is not None:
            self.different.add(number)

    def why_not(self) -> str:
        if self.constant:
            return f"always {self.first:g}"
        if self.whole and self.increasing:
            return "counts the rows"
        if self.whole and self.different is not None:
            return "an id"
        return ""
