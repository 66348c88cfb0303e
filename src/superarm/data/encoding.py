"""Rows with names as numbers: one row, or a whole table, with the same bits.

The dense part of a row has
    numbers     a feature for each number
    missing     beside each, 1 where the number is missing (if the columns mark missing numbers)
    words       features that all words share: each (column, word) adds ± 1 to two, which a hash of both chooses
and texts are hashed into the sparse part (native/text.pyx).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array, Cell
from superarm.data.cells import ParsedCell, days_since_1970, is_text, normalize_text
from superarm.data.column import AS_NUMBER, DATES, NUMBERS, TEXT, VECTOR, WORDS, Column, infer_value
from superarm.data.rows import FLOAT32_MAX, AnyRow, Row, Rows, stack
from superarm.data.tables import cell_list, columns_of, named_rows
from superarm.errors import InvalidInput
from superarm.native.text import hash_texts

if TYPE_CHECKING:
    from superarm.data.columns import Columns

TEXT_WIDTH, TEXT_MEMORY = 2**16, 2**28  # of the sparse part, at most: its width, bytes of its two matrices
# of open columns, one feature in five takes the numbers for which none of their own is left
SHARED_DIVISOR = 5
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

Warnings = dict[str, str]  # by column, a sentence if it is not what was declared
NumberAndWords = tuple[float | None, list[tuple[str, str]]]  # words with the names of their columns
# of a column: the seed of its hashes, whether each cell is one word, and the texts
TextsToHash = tuple[int, bool, list[ParsedCell]]


def encode_row(
    columns: Columns, x: Any, owner: str, warnings: Warnings, *, grow_for: int | None = None
) -> tuple[AnyRow, Columns]:
    """Return the row of a dict or a Series, and its columns: a copy, where open columns have got new ones.

    Args:
        columns: as they are; they stay so.
        x: names and values.
        owner: whose it is, for messages.
        warnings: gets a sentence for each column that is not what was declared.
        grow_for: let open columns make room for new names; the sparse part is as wide as so many labels allow.
    """
    cells: dict[str, Cell] = {str(name): value for name, value in x.items()}
    dense, is_open = columns.dense_part, columns.is_open
    row: Array = dense.empty_row().copy()
    numbers: list[tuple[str, float]] = []
    texts: list[TextsToHash] = []
    new: list[Column] = []
    for name, value in cells.items():
        column, parsed = _parse_cell(columns, name, value, owner, warnings, grow=grow_for is not None)
        if column is not None and isinstance(parsed, np.ndarray):
            dense.put_vector(row, column, parsed)
        elif column is not None and column.is_sparse and isinstance(parsed, str):
            texts.append(_to_hash(column, [parsed]))
            if name not in columns.columns:
                new.append(column)
        else:
            has_time = column.has_time if column is not None and not is_open else isinstance(parsed, datetime)
            number, words = _number_and_words(name, parsed, has_time)
            if number is not None:
                numbers.append((name, number))
            for word in words:
                for i, sign in dense.word_features(*word):
                    row[i] += sign
    if not is_open:
        warnings.update({name: _missing_warning(name) for name in columns.columns if name not in cells})
    numbers.sort()  # an order of their own, whatever the row's: new names get features, and shared features add up
    if grow_for is not None and is_open:
        if dense.has_room:
            new += [Column(name, NUMBERS) for name, _ in numbers if dense.lacks(name)]
        if new or (texts and columns.text_width is None):
            columns = columns.grown(new, grow_for if texts else None)
            dense = columns.dense_part
    for name, number in numbers:
        dense.put_number(row, name, number)
    if columns.text_width is None:
        return row, columns
    indices, values, _ = hash_texts(texts, 1, columns.text_width)
    return Row.from_parts(row, indices, values, columns.text_width), columns


def _parse_cell(
    columns: Columns, name: str, value: Cell, owner: str, warnings: Warnings, *, grow: bool
) -> tuple[Column | None, ParsedCell]:
    """Return the column of a cell, if it has one, and its value; of open columns, a new one for a text."""
    column = columns.columns.get(name)
    if column is not None:
        parsed = column.parse(value, owner)
        _add_value_warning(warnings, column, parsed)
        return column, parsed
    if not columns.is_open:
        if name not in columns.left_out:
            warnings[name] = _new_warning(name)
        return None, None
    kind, parsed = infer_value(name, value, owner)
    if kind != TEXT:
        return None, parsed
    if not grow and columns.text_width is None:  # there is no sparse part yet
        return None, None
    return Column(name, TEXT), parsed


def encode_table(
    columns: Columns, X: Any, owner: str, warnings: Warnings, *, grow_for: int | None = None
) -> tuple[Rows, Columns]:
    """Return the rows of a table, or of a list of named rows, and its columns; `encode_row` has the arguments."""
    if columns.is_open:
        one_by_one = []
        for x in named_rows(X):
            row, columns = encode_row(columns, x, owner, {}, grow_for=grow_for)
            one_by_one.append(row)
        return stack(one_by_one, columns.layout), columns
    table, n = columns_of(X)
    new = [name for name in table if name not in columns.columns and name not in columns.left_out]
    warnings.update({name: _new_warning(name) for name in new})
    rows, texts = np.tile(columns.dense_part.empty_row(), (n, 1)), list[TextsToHash]()
    for name, column in columns.columns.items():
        cells = table.get(name)
        if cells is None:
            warnings[name] = _missing_warning(name)
        elif column.is_sparse:
            texts.append(_to_hash(column, [column.parse(value, owner) for value in cell_list(cells)]))
        else:
            columns.dense_part.put_column(rows, column, cells, owner, warnings)
    if columns.text_width is None:
        return Rows(rows), columns
    indices, values, starts = hash_texts(texts, n, columns.text_width)
    return Rows(rows if columns.n_dense else None, indices, values, starts, columns.text_width), columns


def _number_and_words(name: str, parsed: ParsedCell, has_time: bool) -> NumberAndWords:
    """Return the number of a parsed cell in the dense part, ``None`` if it has none, and its words."""
    if isinstance(parsed, str):
        return None, [(name, parsed)]
    if not isinstance(parsed, date):
        return (parsed if isinstance(parsed, float) else None), []
    words = [(f"{name} weekday", WEEKDAYS[parsed.weekday()]), (f"{name} month", str(parsed.month))]
    if has_time:
        words.append((f"{name} hour", str(parsed.hour if isinstance(parsed, datetime) else 0)))
    return days_since_1970(parsed), words


def _to_hash(column: Column, texts: Iterable[ParsedCell]) -> TextsToHash:
    """Return the texts of a column as `hash_texts` takes them; words of high cardinality stay as they are."""
    is_word = column.high_cardinality
    normalized = [normalize_text(text) if isinstance(text, str) and not is_word else text for text in texts]
    return column_seed(column.name), is_word, normalized


def _new_warning(name: str) -> str:
    return f"column {name!r} is new: it is left out"


def _missing_warning(name: str) -> str:
    return f"column {name!r} is missing"


def _add_value_warning(warnings: Warnings, column: Column, value: ParsedCell) -> None:
    """Add a warning if a parsed value is not what its column was declared to hold."""
    if isinstance(value, float) and column.kind == DATES:
        warnings[column.name] = (
            f"column {column.name!r} holds dates, got the number {value:.15g}: it counts as days since 1970"
        )
    if not isinstance(value, str):
        return
    name, short = column.name, value if len(value) <= 40 else f"{value[:40]}…"
    if column.kind in AS_NUMBER:
        warnings[name] = (
            f"column {name!r} holds {column.kind}, got {short!r}: the number counts as missing, and this as a word"
        )
    elif column.kind == WORDS and is_text(value) and len(value.split()) > 4 and not column.high_cardinality:
        warnings[name] = (
            f"column {name!r} holds words, got a text: {short!r} (declared as text, it is read word by word)"
        )


def _numbers(cells: Any) -> Array | None:
    """Return a series of numbers or booleans as float64, NaN where one is missing; ``None`` for any other series."""
    if not hasattr(cells, "dtype"):
        return None
    if not re.match(r"u?int\d|float|bool|decimal", str(cells.dtype).lower()):
        return None
    if hasattr(cells, "cast"):  # Polars
        return np.array(cells.cast(float).to_numpy(), np.float64)
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64)
    return np.array(cells.to_numpy(dtype=np.float64, na_value=np.nan))


def is_matrix(X: Any) -> bool:
    """Return whether a frame is a matrix of numbers, none of them missing."""
    numbers = [_numbers(cells) for cells in columns_of(X)[0].values()]
    return all(column is not None and not np.isnan(column).any() for column in numbers)


def max_text_width(k: int) -> int:
    """Return the width of the sparse part for k labels: at most 65,536, and two matrices of at most 256 MiB."""
    width = TEXT_WIDTH
    while width > 1024 and width * k * 8 > TEXT_MEMORY:
        width //= 2
    return width


# ---------------------------------------------------------------- the dense part


class DensePart:
    """The dense part of a row: which of its features belong to which column.

    Args:
        columns: in the order of their features.
        marks_missing: whether numbers may be missing, and are marked then.
        n_word_features: how many features words share.
        n_open_numbers: how many features numbers have, also for names yet to come; 0 leaves none for new names.
    """

    def __init__(
        self, columns: Iterable[Column], *, marks_missing: bool, n_word_features: int, n_open_numbers: int
    ) -> None:
        self.marks_missing = marks_missing
        self.n_word_features = n_word_features
        self.is_open = n_open_numbers > 0
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
        return (2 if self.marks_missing else 1) * self.n_numbers + self.n_word_features

    def add(self, column: Column) -> None:
        """Give a column the next features, if it needs any."""
        if column.n_numbers:
            self._columns[column.name], self._start[column.name] = column, self._used
            self._used += column.n_numbers

    def lacks(self, name: str) -> bool:
        """Return whether a number with this name has no feature of its own."""
        return name not in self._start

    @property
    def has_room(self) -> bool:
        """Whether one more number with a new name can have a feature of its own."""
        return self._used < self._unshared

    def empty_row(self) -> Array:
        """Return the dense part of a row without a value; not to be changed."""
        if self._empty is None:
            row = self._empty = np.zeros(self.n_dense, np.float32)
            if self.marks_missing:
                row[self.n_numbers : 2 * self.n_numbers] = 1.0
            for name, start in self._start.items():
                column = self._columns[name]
                if not self.marks_missing:
                    row[start] = column.imputed
                elif column.kind == VECTOR:  # one mark of length 1, over all its features
                    marks = self.n_numbers + start
                    row[marks : marks + column.length] = column.length**-0.5
        return self._empty

    def put_number(self, row: Array, name: str, number: float) -> None:
        """Write the number of the column ``name``; a new name for which there is no room is left out."""
        i = self._start.get(name)
        if i is not None:
            row[i] = number
        elif self.is_open and self._unshared <= self._used and self._unshared < self.n_numbers:
            i = self._unshared + _hash("", name) % (self.n_numbers - self._unshared)
            row[i] += number
        else:
            return
        if self.marks_missing:
            row[self.n_numbers + i] = 0.0

    def put_column(self, rows: Array, column: Column, cells: Any, owner: str, warnings: Warnings) -> None:
        """Write the numbers, dates, words or vectors of a declared column into ``rows``."""
        if column.kind == VECTOR:
            for i, value in enumerate(cell_list(cells)):
                vector = column.parse(value, f"row {i + 1} of {owner}")
                if isinstance(vector, np.ndarray):
                    self.put_vector(rows[i], column, vector)
            return
        numbers = _numbers(cells) if column.kind in AS_NUMBER else None
        if numbers is not None:
            too_large = np.flatnonzero(np.abs(numbers) > FLOAT32_MAX)
            if len(too_large):
                i = int(too_large[0])
                cell = f"{column.name!r} in row {i + 1} of X"
                raise InvalidInput.must(
                    cell, owner, "finite as a 32-bit float, or missing", float(numbers[i])
                )
            for number in numbers[~np.isnan(numbers)][:1].tolist():
                _add_value_warning(warnings, column, number)
            self._put_numbers(rows, column, numbers)
            return
        numbers = np.full(len(rows), np.nan)
        rows_of_word: dict[tuple[str, str], list[int]] = {}
        parsed_texts: dict[str, NumberAndWords] = {}
        for i, value in enumerate(cell_list(cells)):
            number_and_words = parsed_texts.get(value) if type(value) is str else None
            if number_and_words is None:
                parsed = column.parse(value, f"row {i + 1} of {owner}")
                _add_value_warning(warnings, column, parsed)
                number_and_words = _number_and_words(column.name, parsed, column.has_time)
                if type(value) is str:
                    parsed_texts[value] = number_and_words
            numbers[i] = np.nan if number_and_words[0] is None else number_and_words[0]
            for word in number_and_words[1]:
                rows_of_word.setdefault(word, []).append(i)
        self._put_numbers(rows, column, numbers)
        for word, with_word in rows_of_word.items():
            for i, sign in self.word_features(*word):
                rows[with_word, i] += np.float32(sign)

    def _put_numbers(self, rows: Array, column: Column, numbers: Array) -> None:
        """Write the numbers of a declared column, one for each row, NaN where it is missing."""
        i = self._start.get(column.name)
        if i is None:
            return
        present = ~np.isnan(numbers)
        rows[present, i] = numbers[present].astype(np.float32)
        if self.marks_missing:
            rows[present, self.n_numbers + i] = 0.0

    def put_vector(self, row: Array, column: Column, vector: Array) -> None:
        """Write a ``vector`` into the features of its column."""
        start = self._start[column.name]
        row[start : start + column.length] = vector
        if self.marks_missing:
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
