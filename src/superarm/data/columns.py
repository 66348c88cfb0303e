"""Columns: what each column of a table is, decided once, kept with the model; and the rows that they make.

    numbers     a place of its own for each column                          41   3,5   12 %   1,234.5
    yes or no   a number, 1 or 0                                            true   no
    dates       a number (days since 1970), and words for what repeats: weekday, month, hour
    vector      a place of its own for each of its numbers                  [0.1, 0.7, 0.2]
    words       each (column, word) adds ± 1 to two places, which a hash of both chooses
    text        words, pairs and parts of words, hashed into the sparse part (native/text.pyx)

A gap (None, NaN, an empty cell, a name that is left out; where numbers stand NA and its like) has a place that is 1
where a number is missing; the number then counts as its mean. A table of numbers without gaps has no such places: its
row is the list of its numbers.

Columns are **declared** (`Columns.look` at a table, a file, a model): then a column that is new is left out. Or they
are **open**, for rows with names that come one at a time: each value is judged alone, a number's name gets a place as
it comes, and a name that has had a text holds texts from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.looking import DATES, KINDS, NUMBERS, TEXT, TRUTHS, VECTOR, WORDS, Look, look_at
from superarm.data.rows import LARGEST, NO_INDICES, NOTHING, AnyRow, Layout, Row, Rows, stack
from superarm.data.tables import columns_of, first_rows, records
from superarm.data.values import (
    as_word,
    date_in,
    days,
    is_gap,
    is_text,
    normal,
    number_of,
    spelt,
    value_of,
    vector_of,
)
from superarm.errors import InvalidInput
from superarm.native.text import hash_texts
from superarm.storage import write_atomically

__all__ = ["LOOK", "Column", "ColumnWarning", "Columns", "is_matrix", "text_width"]

Array = np.ndarray[Any, Any]

LOOK = 20_000  # rows that tell what columns are
PLACES, WORD_PLACES, MOST_WORD_PLACES = (
    40,
    256,
    2048,
)  # of open columns, unless the first row has more numbers
SHARED = 5  # one place in five takes the numbers for which no place of their own is left
LEAST = 8  # features of open columns
MANY_WORDS = 1024  # different words, from which on a column of words is hashed into the sparse part
TEXT_WIDTH, TEXT_MEMORY = (
    2**16,
    2**28,
)  # places of the sparse part, at most; bytes of its two matrices, at most
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
AS_NUMBER = (NUMBERS, TRUTHS, DATES)


class ColumnWarning(UserWarning):
    """A value or a column that is not what was declared; said once."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column is.

    Attributes:
        name: its name.
        kind: numbers, yes or no, dates, words, text, vector.
        decimal: what stands before the decimals of numbers that are spelt.
        times: whether dates have a time of day.
        order: what comes first in dates with slashes, ``"day"`` or ``"month"``, where both are possible.
        length: of a vector.
        many: whether there are so many different words that they go to the sparse part.
        fill: what a gap counts as in rows without places for gaps.
    """

    name: str
    kind: str
    decimal: str = "."
    times: bool = False
    order: str = "day"
    length: int = 0
    many: bool = False
    fill: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            wanted = f"one of {', '.join(KINDS)}"
            raise InvalidInput.must(f"kind of {self.name!r}", "columns", wanted, self.kind, among=KINDS)
        if self.decimal not in (".", ","):
            raise InvalidInput.must(f"decimal of {self.name!r}", "columns", "'.' or ','", self.decimal)
        if self.order not in ("day", "month"):
            raise InvalidInput.must(f"order of {self.name!r}", "columns", "'day' or 'month'", self.order)
        if self.kind == VECTOR and not (isinstance(self.length, int) and self.length > 0):
            wanted = "how many numbers it has"
            raise InvalidInput.must(f"length of {self.name!r}", "columns", wanted, self.length)

    @property
    def is_sparse(self) -> bool:
        """Whether it goes to the sparse part of a row."""
        return self.kind == TEXT or self.many

    @property
    def places(self) -> int:
        """How many numbers it has."""
        return self.length if self.kind == VECTOR else int(self.kind in AS_NUMBER)

    def parse(self, value: Any, owner: str) -> Any:
        """A cell as float, str, date, vector, or ``None``; a str where numbers or dates stand is a stray word.

        Args:
            value: the cell.
            owner: whose it is, for messages.
        """
        kind = self.kind
        if (
            (type(value) is float or type(value) is int)
            and -LARGEST <= value <= LARGEST
            and kind in AS_NUMBER
        ):
            return float(value)  # most of them
        if value is None or (isinstance(value, str) and value == ""):
            return None
        if kind == VECTOR:
            if is_gap(value):
                return None
            vector = vector_of(value, self.name, owner)
            if len(vector) != self.length:
                wanted = f"a list of {self.length} numbers"
                raise InvalidInput.must(f"x[{self.name!r}]", owner, wanted, f"{len(vector)} numbers")
            return vector
        if isinstance(value, str):
            value = str(value)  # of NumPy, or of an enumeration
            if kind in (WORDS, TEXT):
                return value
            when = date_in(value, self.order) if kind == DATES else None
            if when is not None:
                return when
            meant = spelt(value, self.decimal)
            if not isinstance(meant, str):
                return None if meant is None else number_of(meant, self.name, owner)
            return date_in(value, self.order) or value
        if isinstance(value, bool | np.bool_) and kind in (WORDS, TEXT):
            return "true" if value else "false"
        given = value_of(value, self.name, owner)
        if isinstance(given, np.ndarray):
            raise InvalidInput.must(f"x[{self.name!r}]", owner, f"{kind}, as declared or seen before", value)
        return given if given is None or kind in AS_NUMBER else as_word(given)

    def to_dict(self) -> dict[str, Any]:
        usual = {one.name: one.default for one in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


class Columns:
    """What the columns of a table are, and the rows that they make.

    Args:
        columns: `Column` objects or dicts, in the order of their places.
        left_out: columns that are no features, and why.
        gaps: whether numbers may be missing, and have a place that says so.
        words: how many places there are for words; ``None`` chooses.
        text_width: how many places the sparse part has; ``None`` leaves it to the number of labels.
        remarks: what was found in each column, for people.
        rows: how many rows were looked at; 0 if the columns were declared by somebody.
        open_places: how many dense places there are for names that are yet to come; 0 takes no new ones.

    >>> columns = Columns([Column("age", "numbers"), Column("note", "text")], text_width=1024)
    >>> row = columns.row({"age": "41", "note": "card not working"}, "this")
    >>> row.dense.tolist(), len(row.indices)
    ([41.0, 0.0], 16)
    """

    def __init__(
        self,
        columns: Iterable[Column | Mapping[str, Any]] = (),
        *,
        left_out: Mapping[str, str] | None = None,
        gaps: bool = True,
        words: int | None = None,
        text_width: int | None = None,
        remarks: Mapping[str, str] | None = None,
        rows: int = 0,
        open_places: int = 0,
    ) -> None:
        self.columns: dict[str, Column] = {}
        self._place: dict[str, int] = {}
        self._used = 0  # places of numbers
        self._blank: Array | None = None
        self.left_out, self.remarks = dict(left_out or {}), dict(remarks or {})
        self.gaps, self.rows_seen, self.open_places = gaps, rows, open_places
        self.text_width = text_width
        try:
            for one in columns:
                column = one if isinstance(one, Column) else Column(**one)
                if column.name in self.columns:
                    raise InvalidInput.must("columns", "Columns", "of different names", column.name)
                self._add(column)
        except TypeError as error:
            wanted = "a list of columns, each with a name and a kind"
            raise InvalidInput.must("columns", "Columns", wanted, str(error)) from error
        in_words = any(c.kind == DATES or (c.kind == WORDS and not c.many) for c in self.columns.values())
        self.words = words if words is not None else WORD_PLACES if in_words or open_places else 0
        self.places = open_places or self._used or int(self.words > 0)
        if self.words and not gaps:
            raise InvalidInput.must("gaps", "Columns", "true where there are words or dates", gaps)

    # ------------------------------------------------------------ where they come from

    @classmethod
    def look(
        cls,
        table: Any,
        *,
        taken: Mapping[str, str] | None = None,
        only: Iterable[str] | None = None,
        text: Iterable[str] = (),
        words: Iterable[str] = (),
        numbers: Iterable[str] = (),
        dates: Iterable[str] = (),
        leave_out: Iterable[str] = (),
        everything: bool = False,
    ) -> Columns:
        """What the first 20,000 rows of a table tell.

        Args:
            table: a pandas, Polars or Arrow table, a list of dicts, or a file (.csv, .jsonl, .parquet).
            taken: columns that hold something else (the answer, what is only known afterwards), and what.
            only: the columns to take, whatever they hold.
            text: columns that hold text, whatever they look like.
            words: columns of words, each taken whole.
            numbers: columns of numbers.
            dates: columns of dates.
            leave_out: columns that are no features.
            everything: take ids, constants and counters, too.
        """
        asked = {name: kind for kind, names in ((TEXT, text), (WORDS, words), (NUMBERS, numbers), (DATES, dates))
                 for name in names}  # fmt: skip
        looks, count = look_at(first_rows(table, LOOK))
        unknown = [name for name in (*asked, *leave_out, *(only or ())) if name not in looks]
        if unknown:
            wanted = f"among its columns {', '.join(looks)}"
            raise InvalidInput.must("columns", "a table", wanted, unknown[0], among=looks)
        left_out = {name: why for name, why in (taken or {}).items() if name in looks and name not in asked}
        left_out |= dict.fromkeys(leave_out, "as asked for")
        found, remarks, gaps = list[Column](), dict[str, str](), False
        for name in looks if only is None else [*only, *(name for name in asked if name not in only)]:
            look = looks[name]
            if name in left_out:
                continue
            sure = everything or only is not None or name in asked
            why = look.why_not(count, sure)
            if why:
                left_out[name] = why
                continue
            column = _column(look, asked.get(name), count)
            gaps = gaps or bool(look.gaps(count, column.kind)) or column.kind not in (NUMBERS, TRUTHS)
            gaps = gaps or look.strays(column.kind) > 0
            found.append(column)
            remarks[name] = look.in_words(count, column.kind, column.decimal, asked=name in asked)
        distinct = sum(len(looks[c.name].different) for c in found if c.kind == WORDS and not c.many)
        places = WORD_PLACES
        while places < 2 * distinct and places < MOST_WORD_PLACES:
            places *= 2
        strays = any(looks[c.name].strays(c.kind) for c in found)
        in_words = strays or any(c.kind == DATES or (c.kind == WORDS and not c.many) for c in found)
        return cls(
            found,
            left_out={name: left_out[name] for name in looks if left_out.get(name)},
            gaps=gaps,
            words=places if in_words else 0,
            remarks=remarks,
            rows=count,
        )

    @classmethod
    def first(cls, X: Any, n_features: int | None, owner: str) -> Columns:
        """Open columns for the first rows ``X`` of ``owner``; ``n_features`` is the width, if it was asked for."""
        rows = list(records(X))
        vectors = dict[str, Column]()
        for x in rows:
            for name, value in _items(x):
                if _is_vector(value) and name not in vectors:
                    vectors[name] = Column(name, VECTOR, length=len(vector_of(value, name, owner)))
        numbers = max((len(x) for x in rows), default=0) + sum(c.length for c in vectors.values())
        most = max(PLACES, 2 * numbers + 8)
        if n_features is None:
            return cls(vectors.values(), words=WORD_PLACES, open_places=most)
        if n_features < LEAST:
            wanted = f"left out, or at least {LEAST}, for rows with names"
            raise InvalidInput.must("n_features", owner, wanted, n_features)
        places = min(most, n_features // 4)
        return cls(vectors.values(), words=n_features - 2 * places, open_places=places)

    @classmethod
    def of(cls, given: Any) -> Columns:
        """``given`` as columns: such already, what `to_dict` gave, or a file of them."""
        if isinstance(given, Columns):
            return given.copy()
        return cls.from_dict(given) if isinstance(given, Mapping) else cls.read(given)

    @classmethod
    def read(cls, path: Any) -> Columns:
        """The columns in the JSON file at ``path``, as `write` wrote it or by hand; or those in a model file."""
        path = Path(path)
        try:
            if path.suffix == ".npz":
                from superarm import storage

                given = storage.read(path)[0].get("columns")
                if given is None:
                    raise InvalidInput.must(
                        "columns", str(path), "a model of rows with names", "numbers alone"
                    )
            else:
                given = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            wanted = 'a JSON file such as {"columns": [{"name": "age", "kind": "numbers"}]}, or a model'
            raise InvalidInput.must("columns", str(path), wanted, str(error)) from error
        return cls.from_dict(given)

    def write(self, path: Any) -> None:
        """Write them to a JSON file at ``path``, for `serve --columns` and for people."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        write_atomically(path, lambda file: file.write(text.encode()))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "columns": [column.to_dict() for column in self.columns.values()],
            "left_out": self.left_out,
            "gaps": self.gaps,
            "words": self.words,
            "text_width": self.text_width,
            "remarks": self.remarks,
            "rows": self.rows_seen,
            "open_places": self.open_places,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Columns:
        """The columns that `to_dict` gave as ``data``."""
        known = ("columns", "left_out", "gaps", "words", "text_width", "remarks", "rows", "open_places")
        if not isinstance(data, Mapping) or "columns" not in data or not set(data) <= set(known):
            wanted = "an object with a list columns, each with a name and a kind"
            raise InvalidInput.must("content", "columns", wanted, data)
        options: dict[str, Any] = {name: value for name, value in data.items() if name != "columns"}
        return cls(data["columns"], **options)

    def copy(self) -> Columns:
        return Columns.from_dict(self.to_dict())

    def for_labels(self, k: int) -> Columns:
        """The same, with a sparse part whose width follows from the number of labels ``k`` and a bound on memory."""
        made = self.copy()
        if made.text_width is None and made.has_sparse:
            made.text_width = text_width(k)
        return made

    # ------------------------------------------------------------ what they are

    @property
    def is_open(self) -> bool:
        """Whether new names are taken as they come."""
        return self.open_places > 0

    @property
    def has_sparse(self) -> bool:
        return any(column.is_sparse for column in self.columns.values())

    @property
    def is_plain(self) -> bool:
        """Whether a row is the list of its numbers."""
        return not self.gaps and not self.has_sparse

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds."""
        return {name: column.kind for name, column in self.columns.items()}

    @property
    def d(self) -> int:
        """Dense columns of a row."""
        return (2 if self.gaps else 1) * self.places + self.words

    @property
    def layout(self) -> Layout:
        return Layout(self.d, self.text_width or 0, self.places if self.gaps else 0)

    @property
    def described(self) -> dict[str, str]:
        """What each column is taken as, in words."""
        return {name: self.remarks.get(name, column.kind) for name, column in self.columns.items()}

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {column.kind}" for name, column in self.columns.items())
        return f"Columns({parts}{', …' if self.is_open else ''})"

    def mark(self) -> tuple[int, int | None]:
        """What `put_back` needs."""
        return len(self.columns), self.text_width

    def put_back(self, mark: tuple[int, int | None]) -> None:
        """Forget what came since `mark` gave ``mark``: it came with a row that was refused."""
        count, self.text_width = mark
        for name in self.names[count:]:
            column = self.columns.pop(name)
            if column.places:
                self._used -= column.places
                del self._place[name]

    def _add(self, column: Column) -> None:
        self.columns[column.name] = column
        if column.places:
            self._place[column.name] = self._used
            self._used += column.places

    # ------------------------------------------------------------ one row

    def row(
        self, x: Any, owner: str, *, grow: bool = False, k: int = 2, notices: dict[str, str] | None = None
    ) -> AnyRow:
        """The row of a dict or a Series.

        Args:
            x: names and values.
            owner: whose it is, for messages.
            grow: let open columns make room for new names.
            k: labels, which decide on the width of the sparse part, when open columns get one.
            notices: gets a sentence for each column that is not what was declared.
        """
        numbers, words = list[tuple[str, float]](), list[tuple[str, str]]()
        sparse, vectors = list[tuple[Column, str]](), list[tuple[Column, Array]]()
        known, is_open = 0, self.is_open
        given = x if isinstance(x, Mapping) else x.to_dict()
        for name, value in given.items():
            if type(name) is not str:
                name = str(name)
            column = self.columns.get(name)
            if column is not None:
                known += 1
                parsed = column.parse(value, owner)
            elif is_open:
                kind, parsed = _judged(name, value, owner)
                if kind == TEXT and (grow or self.text_width is not None):
                    column = Column(name, TEXT)
                    if grow:
                        self._add(column)
                elif kind == TEXT:
                    continue
            else:
                if notices is not None and name not in self.left_out:
                    notices[name] = f"column {name!r} is new: it is left out"
                continue
            if parsed is None:
                continue
            if isinstance(parsed, float):
                numbers.append((name, parsed))
            elif isinstance(parsed, str):
                if notices is not None and column is not None:
                    self._notice(notices, column, parsed)
                if column is not None and column.is_sparse:
                    sparse.append((column, parsed))
                elif self.words:
                    words.append((name, parsed))
            elif isinstance(parsed, date):
                numbers.append((name, days(parsed)))
                times = column.times if column is not None and not is_open else isinstance(parsed, datetime)
                words += _date_words(name, parsed, times)
            elif column is not None:
                vectors.append((column, parsed))
        if notices is not None and not self.is_open and known < len(self.columns):
            there = {str(name) for name in given}
            for name in self.columns:
                if name not in there:
                    notices[name] = f"column {name!r} is missing: a gap"
        numbers.sort()  # new names get places, and shared places add up, in an order of their own
        if grow and self.is_open:
            for name, _ in numbers:
                self._grow(name)
            if sparse and self.text_width is None:
                self.text_width = text_width(k)
        row: Array = self._empty().copy()
        for name, number in numbers:
            at = self._at(name)
            if at is not None:
                row[at] = number if name in self._place else row[at] + number
                if self.gaps:
                    row[self.places + at] = 0.0
        for column, vector in vectors:
            at = self._place[column.name]
            row[at : at + column.length] = vector
            row[self.places + at : self.places + at + column.length] = 0.0
        if self.words:
            start = self.d - self.words
            for part in words:
                for at, sign in _word_places(*part, self.words):
                    row[start + at] += sign
        if self.text_width is None:
            return row
        texts = [(_seed(column.name), column.many, [text if column.many else normal(text)])
                 for column, text in sparse]  # fmt: skip
        if not texts:
            return Row.of(row, NO_INDICES, NOTHING, self.text_width)
        indices, values, _ = hash_texts(texts, 1, self.text_width)
        return Row.of(row, indices, values, self.text_width)

    def cells(self, x: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """The row ``x`` as JSON-ready values of the declared kinds: read once, and the same row again.

        Args:
            x: names and values.
            owner: whose row it is, for messages.
        """
        found = {}
        for name, column in self.columns.items():
            value = column.parse(x.get(name), owner)
            if isinstance(value, np.ndarray):
                value = value.tolist()
            found[name] = value.isoformat() if isinstance(value, date) else value
        return found

    # ------------------------------------------------------------ many rows

    def rows(
        self, X: Any, owner: str, *, grow: bool = False, k: int = 2, notices: dict[str, str] | None = None
    ) -> Rows:
        """The rows of a table, or of a list of named rows: the same bits as row by row.

        Args:
            X: the table.
            owner: whose it is, for messages.
            grow: whether new names are taken.
            k: how many labels there are, for the width of a sparse part.
            notices: gets what is not as declared, by column.
        """
        if self.is_open:
            made = [self.row(x, owner, grow=grow, k=k) for x in records(X)]
            return stack(made, self.layout)
        table, n = columns_of(X)
        if notices is not None:
            for name in table:
                if name not in self.columns and name not in self.left_out:
                    notices[name] = f"column {name!r} is new: it is left out"
        rows, texts = np.tile(self._empty(), (n, 1)), list[tuple[int, bool, list[Any]]]()
        for name, column in self.columns.items():
            cells = table.get(name)
            if cells is None:
                if notices is not None:
                    notices[name] = f"column {name!r} is missing: a gap"
            elif column.is_sparse:
                parsed = [column.parse(value, owner) for value in _list(cells)]
                texts.append(
                    (
                        _seed(name),
                        column.many,
                        [None if t is None else t if column.many else normal(t) for t in parsed],
                    )
                )
            elif column.kind == VECTOR:
                self._put_vectors(rows, column, cells, owner)
            else:
                self._put(rows, column, cells, owner, notices)
        if self.text_width is None:
            return Rows(rows)
        dense = rows if self.d else None
        indices, values, starts = hash_texts(texts, n, self.text_width)
        return Rows(dense, indices, values, starts, self.text_width)

    def _put(
        self, rows: Array, column: Column, cells: Any, owner: str, notices: dict[str, str] | None
    ) -> None:
        """Numbers, dates and words of a column into the dense rows."""
        n, at, name = len(rows), self._place.get(column.name), column.name
        numbers, where = (
            _numbers(cells) if column.kind in AS_NUMBER else None,
            dict[tuple[str, str], list[int]](),
        )
        if numbers is None:
            numbers = np.full(n, np.nan)
            known: dict[str, tuple[float, list[tuple[str, str]]]] = {}
            for i, value in enumerate(_list(cells)):
                found = known.get(value) if type(value) is str else None
                if found is None:
                    found = self._parts(column, value, f"row {i + 1} of {owner}", notices)
                    if type(value) is str:
                        known[value] = found
                numbers[i] = found[0]
                for part in found[1]:
                    where.setdefault(part, []).append(i)
        elif (
            np.isinf(numbers).any() or (np.abs(numbers[~np.isnan(numbers)]) > np.finfo(np.float32).max).any()
        ):
            i = int(
                np.flatnonzero(~(np.abs(np.nan_to_num(numbers, posinf=np.inf)) <= np.finfo(np.float32).max))[
                    0
                ]
            )
            wanted = "finite as a 32-bit float, or a gap"
            raise InvalidInput.must(f"{name!r} in row {i + 1} of X", owner, wanted, float(numbers[i]))
        if at is not None:
            there = ~np.isnan(numbers)
            rows[there, at] = numbers[there].astype(np.float32)
            if self.gaps:
                rows[there, self.places + at] = 0.0
        if self.words:
            start = self.d - self.words
            for part, which in where.items():
                for place, sign in _word_places(*part, self.words):
                    rows[which, start + place] += np.float32(sign)

    def _parts(
        self, column: Column, value: Any, owner: str, notices: dict[str, str] | None
    ) -> tuple[float, list[tuple[str, str]]]:
        parsed = column.parse(value, owner)
        if isinstance(parsed, str):
            if notices is not None:
                self._notice(notices, column, parsed)
            return np.nan, [(column.name, parsed)]
        if isinstance(parsed, date):
            return days(parsed), _date_words(column.name, parsed, column.times)
        return (np.nan if parsed is None else parsed), []

    def _put_vectors(self, rows: Array, column: Column, cells: Any, owner: str) -> None:
        at = self._place[column.name]
        for i, value in enumerate(_list(cells)):
            vector = column.parse(value, f"row {i + 1} of {owner}")
            if vector is not None:
                rows[i, at : at + column.length] = vector
                rows[i, self.places + at : self.places + at + column.length] = 0.0

    def _notice(self, notices: dict[str, str], column: Column, got: str) -> None:
        name, short = column.name, got if len(got) <= 40 else f"{got[:40]}…"
        if column.kind in AS_NUMBER:
            notices[name] = f"column {name!r} holds {column.kind}, got {short!r}: a gap, and a word"
        elif column.kind == WORDS and is_text(got) and len(got.split()) > 4 and not column.many:
            notices[name] = (
                f"column {name!r} holds words, got a text: {short!r} (columns say otherwise: --text)"
            )

    # ------------------------------------------------------------ places

    def _empty(self) -> Array:
        """The dense part of a row without a value."""
        if self._blank is None:
            self._blank = np.zeros(self.d, np.float32)
            if self.gaps:
                self._blank[self.places : 2 * self.places] = 1.0
            for name, at in self._place.items():
                column = self.columns[name]
                if not self.gaps:
                    self._blank[at] = column.fill
                elif column.kind == VECTOR:  # one mark of length 1, over all its places
                    start = self.places + at
                    self._blank[start : start + column.length] = column.length**-0.5
        return self._blank

    @property
    def _own(self) -> int:
        return self.places - self.places // SHARED

    def _grow(self, name: str) -> None:
        if name not in self._place and self._used < self._own:
            self._add(Column(name, NUMBERS))

    def _at(self, name: str) -> int | None:
        """The place of a number; ``None`` for a new name (nothing is known about it yet)."""
        at = self._place.get(name)
        if at is not None or not self.is_open:
            return at
        if self._used < self._own or self._own == self.places:
            return None
        return self._own + _hash("", name) % (self.places - self._own)


# ---------------------------------------------------------------- values and places


def text_width(k: int) -> int:
    """Places of the sparse part for k labels: at most 65,536, and two matrices of at most 256 MiB."""
    width = TEXT_WIDTH
    while width > 1024 and width * k * 8 > TEXT_MEMORY:
        width //= 2
    return width


def _column(look: Look, asked: str | None, count: int) -> Column:
    kind = asked or look.kind
    many = kind == WORDS and len(look.different) > MANY_WORDS
    return Column(
        look.name,
        kind,
        decimal=look.decimal if kind in (NUMBERS, TRUTHS) else ".",
        times=look.times if kind == DATES else False,
        order=look.order if kind == DATES else "day",
        length=look.length if kind == VECTOR else 0,
        many=many,
        fill=float(np.float32(look.mean)) if kind in (NUMBERS, TRUTHS) and abs(look.mean) <= LARGEST else 0.0,
    )


def _judged(name: str, value: Any, owner: str) -> tuple[str, Any]:
    """The kind of a value, judged alone by a rule that needs no other row; and the value as `Column.parse` has it."""
    if isinstance(value, str):
        value = str(value)
        when = date_in(value)
        if when is not None:
            return DATES, when
        return TEXT if is_text(value) else WORDS, value or None
    if _is_vector(value):
        wanted = "in the first row, or declared (columns=): a vector needs places of its own"
        raise InvalidInput.must(f"x[{name!r}]", owner, wanted, "a new vector")
    return NUMBERS, value_of(value, name, owner)


def _is_vector(value: Any) -> bool:
    return (isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0) or (
        hasattr(value, "to_list") and not isinstance(value, np.generic)
    )


def _items(x: Any) -> list[tuple[str, Any]]:
    given = x if isinstance(x, Mapping) else x.to_dict()
    return [(str(name), value) for name, value in given.items()]


def _date_words(name: str, when: date, times: bool) -> list[tuple[str, str]]:
    words = [(f"{name} weekday", WEEKDAYS[when.weekday()]), (f"{name} month", str(when.month))]
    if times:
        words.append((f"{name} hour", str(when.hour if isinstance(when, datetime) else 0)))
    return words


@lru_cache(maxsize=65_536)
def _hash(name: str, word: str) -> int:
    data = f"{name}\0{word}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


@lru_cache(maxsize=65_536)
def _word_places(name: str, word: str, places: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Two places of a word, each with a sign."""
    h = _hash(name, word)
    one = (h >> 2) % places
    two = (one + 1 + (h >> 34) % (places - 1)) % places
    return (one, 1.0 if h & 1 else -1.0), (two, 1.0 if h & 2 else -1.0)


def _seed(name: str) -> int:
    return _hash(name, "") | 1


def _list(cells: Any) -> Sequence[Any]:
    if hasattr(cells, "to_list"):
        return cells.to_list()  # type: ignore[no-any-return]
    return cells.tolist() if isinstance(cells, np.ndarray) and cells.ndim == 1 else list(cells)


def _numbers(column: Any) -> Array | None:
    """A series of numbers or of true and false as float64, gaps as NaN; ``None`` for any other."""
    if not hasattr(column, "dtype"):
        return None
    kind = str(column.dtype).lower().split("(")[0]
    if not kind.startswith(("int", "uint", "float", "bool", "decimal")):
        return None
    if hasattr(column, "cast"):  # Polars
        return np.array(column.cast(float).to_numpy(), np.float64)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))


def is_matrix(X: Any) -> bool:
    """Whether a frame is a matrix of numbers, without a gap."""
    numbers = [_numbers(cells) for cells in columns_of(X)[0].values()]
    return all(column is not None and not np.isnan(column).any() for column in numbers)
