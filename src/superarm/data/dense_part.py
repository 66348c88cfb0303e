"""The dense part of rows: the features of numbers and words.

numbers     a feature for each number
missing     beside each, 1 where the number is missing (rows of numbers alone, none of them missing, have no such marks)
words       features that all words share: each (column, word) adds ± 1 to two, which a hash of both chooses
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from superarm._types import Array
from superarm.data.column import VECTOR, Column

# of open columns, one feature in five takes the numbers for which none of their own is left
SHARED_DIVISOR = 5


class DensePart:
    """Which features of the dense part belong to which column.

    Args:
        columns: in the order of their features.
        missing: whether numbers may be missing, and are marked then.
        n_word_features: how many features words share.
        n_open_numbers: how many features numbers have, also for names yet to come; 0 leaves none for new names.
    """

    def __init__(
        self, columns: Iterable[Column], *, missing: bool, n_word_features: int, n_open_numbers: int
    ) -> None:
        self.missing, self.n_word_features, self.is_open = missing, n_word_features, n_open_numbers > 0
        self._columns: dict[str, Column] = {}
        self._start: dict[str, int] = {}
        self._used = 0
        self._empty: Array | None = None
        for column in columns:
            self.add(column)
        self.n_numbers = n_open_numbers or self._used or int(n_word_features > 0)
        self._unshared = self.n_numbers - self.n_numbers // SHARED_DIVISOR

    @property
    def n_dense(self) -> int:
        """The length of the dense part."""
        return (2 if self.missing else 1) * self.n_numbers + self.n_word_features

    def add(self, column: Column) -> None:
        """Give a column the next features, if it needs any."""
        if column.n_numbers:
            self._columns[column.name], self._start[column.name] = column, self._used
            self._used += column.n_numbers

    def remove(self, column: Column) -> None:
        """Take back the features of the last column."""
        if column.n_numbers:
            self._used -= column.n_numbers
            del self._columns[column.name], self._start[column.name]

    def has_room(self, name: str) -> bool:
        """Return whether a number with this new name can have a feature of its own."""
        return self.is_open and name not in self._start and self._used < self._unshared

    def empty_row(self) -> Array:
        """Return the dense part of a row without a value; not to be changed."""
        if self._empty is None:
            row = self._empty = np.zeros(self.n_dense, np.float32)
            if self.missing:
                row[self.n_numbers : 2 * self.n_numbers] = 1.0
            for name, start in self._start.items():
                column = self._columns[name]
                if not self.missing:
                    row[start] = column.imputed
                elif column.kind == VECTOR:  # one mark of length 1, over all its features
                    marks = self.n_numbers + start
                    row[marks : marks + column.length] = column.length**-0.5
        return self._empty

    def put_number(self, row: Array, name: str, number: float) -> None:
        """Write a number of the column ``name``; of a new name without room for it, nothing."""
        i = self._start.get(name)
        if i is not None:
            row[i] = number
        elif self.is_open and self._unshared <= self._used and self._unshared < self.n_numbers:
            i = self._unshared + _hash("", name) % (self.n_numbers - self._unshared)
            row[i] += number
        else:
            return
        if self.missing:
            row[self.n_numbers + i] = 0.0

    def put_numbers(self, rows: Array, column: Column, numbers: Array) -> None:
        """Write the numbers of a declared column, one for each row, NaN where it is missing."""
        i = self._start.get(column.name)
        if i is None:
            return
        present = ~np.isnan(numbers)
        rows[present, i] = numbers[present].astype(np.float32)
        if self.missing:
            rows[present, self.n_numbers + i] = 0.0

    def put_vector(self, row: Array, column: Column, vector: Array) -> None:
        """Write the numbers of a vector."""
        start = self._start[column.name]
        row[start : start + column.length] = vector
        if self.missing:
            row[self.n_numbers + start : self.n_numbers + start + column.length] = 0.0

    def word_features(self, column: str, word: str) -> Iterable[tuple[int, float]]:
        """Return the features that a word of a column adds to a row, each with its sign."""
        if not self.n_word_features:
            return ()
        first = self.n_dense - self.n_word_features
        return ((first + i, sign) for i, sign in _hashed_word(column, word, self.n_word_features))


@lru_cache(maxsize=65_536)
def _hash(name: str, word: str) -> int:
    data = f"{name}\0{word}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


@lru_cache(maxsize=65_536)
def _hashed_word(name: str, word: str, size: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return two of ``size`` features for a word, each with a sign."""
    h = _hash(name, word)
    first = (h >> 2) % size
    second = (first + 1 + (h >> 34) % (size - 1)) % size
    return (first, 1.0 if h & 1 else -1.0), (second, 1.0 if h & 2 else -1.0)


def column_seed(name: str) -> int:
    """Return the seed by which the texts of a column are hashed."""
    return _hash(name, "") | 1
