"""Places: where the values of columns stand in the dense part of a row.

numbers     a place for each number
missing     beside each, 1 where the number is missing (a row of plain numbers has no such places)
words       places that all words share: each (column, word) adds ± 1 to two, which a hash of both chooses
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from superarm._types import Array
from superarm.data.column import VECTOR, Column

SHARED = 5  # one place in five takes the numbers for which no place of their own is left


class Places:
    """The dense part of rows.

    Args:
        columns: in the order of their places; texts have none here.
        missing: whether numbers may be missing, and have a place that says so.
        words: how many places there are for words.
        room: how many places there are for numbers, those of names yet to come too; 0 leaves none for new names.
    """

    def __init__(self, columns: Iterable[Column], *, missing: bool, words: int, room: int) -> None:
        self.missing, self.words, self.is_open = missing, words, room > 0
        self._columns: dict[str, Column] = {}
        self._start: dict[str, int] = {}
        self._used = 0
        self._empty: Array | None = None
        for column in columns:
            self.add(column)
        self.numbers = room or self._used or int(words > 0)
        self._own = self.numbers - self.numbers // SHARED  # places of open columns that are not shared

    @property
    def d(self) -> int:
        """The length of the dense part."""
        return (2 if self.missing else 1) * self.numbers + self.words

    def add(self, column: Column) -> None:
        """Give a column the next places, if it needs any."""
        if column.places:
            self._columns[column.name], self._start[column.name] = column, self._used
            self._used += column.places

    def remove(self, column: Column) -> None:
        """Take back the places of the last column."""
        if column.places:
            self._used -= column.places
            del self._columns[column.name], self._start[column.name]

    def has_room(self, name: str) -> bool:
        """Whether a number with this new name can have a place of its own."""
        return name not in self._start and self._used < self._own

    def empty_row(self) -> Array:
        """The dense part of a row without a value; not to be changed."""
        if self._empty is None:
            row = self._empty = np.zeros(self.d, np.float32)
            if self.missing:
                row[self.numbers : 2 * self.numbers] = 1.0
            for name, at in self._start.items():
                column = self._columns[name]
                if not self.missing:
                    row[at] = column.fill
                elif column.kind == VECTOR:  # one mark of length 1, over all its places
                    start = self.numbers + at
                    row[start : start + column.length] = column.length**-0.5
        return self._empty

    def put_number(self, row: Array, name: str, number: float) -> None:
        """Write a number of the column ``name``; of a name that is not known yet, nothing."""
        at, own = self._start.get(name), True
        if at is None:
            if not self.is_open or self._used < self._own or self._own == self.numbers:
                return
            at, own = self._own + _hash("", name) % (self.numbers - self._own), False
        row[at] = number if own else row[at] + number
        if self.missing:
            row[self.numbers + at] = 0.0

    def put_numbers(self, rows: Array, column: Column, numbers: Array) -> None:
        """Write the numbers of a declared column, one for each row, NaN where it is missing."""
        at = self._start.get(column.name)
        if at is None:
            return
        there = ~np.isnan(numbers)
        rows[there, at] = numbers[there].astype(np.float32)
        if self.missing:
            rows[there, self.numbers + at] = 0.0

    def put_vector(self, row: Array, column: Column, vector: Array) -> None:
        """Write the numbers of a vector."""
        at = self._start[column.name]
        row[at : at + column.length] = vector
        row[self.numbers + at : self.numbers + at + column.length] = 0.0

    def of_word(self, column: str, word: str) -> Iterable[tuple[int, float]]:
        """What a word of a column adds to a row: places, each with a sign."""
        if not self.words:
            return ()
        start = self.d - self.words
        return ((start + at, sign) for at, sign in _word_places(column, word, self.words))


@lru_cache(maxsize=65_536)
def _hash(name: str, word: str) -> int:
    data = f"{name}\0{word}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


@lru_cache(maxsize=65_536)
def _word_places(name: str, word: str, places: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Two places of a word, each with a sign."""
    h = _hash(name, word)
    first = (h >> 2) % places
    second = (first + 1 + (h >> 34) % (places - 1)) % places
    return (first, 1.0 if h & 1 else -1.0), (second, 1.0 if h & 2 else -1.0)


def column_seed(name: str) -> int:
    """The seed by which the texts of a column are hashed."""
    return _hash(name, "") | 1
