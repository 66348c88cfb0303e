"""Columns: what each column of a table is, decided once and kept with the model, and how its rows are encoded.

    numbers     a feature for each column                                   41   3,5   12 %   1,234.5
    yes or no   a number, 1 or 0                                            true   no
    dates       a number (days since 1970), and words for what repeats: weekday, month, hour
    vector      a feature for each of its numbers                           [0.1, 0.7, 0.2]
    words       each (column, word) adds ± 1 to two features, which a hash of both chooses
    text        words, pairs and parts of words, hashed into the sparse part (native/text.pyx)

A missing value (None, NaN, an empty cell, a name that is left out; where numbers stand NA and its like) has a feature
that is 1 where a number is missing; the number then counts as its mean. A table of numbers, none of them missing, has
no such features: its row is the list of its numbers.

Columns are **declared** (`Columns.infer` from a table, a file, a model): then a column that is new is left out. Or they
are **open**, for rows with names that come one at a time: each value is judged alone, a number's name gets a feature as
it comes, and a name that has had a text holds texts from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from superarm._files import check_place, read_model, write_atomically
from superarm.data.cells import json_row, parse_vector
from superarm.data.column import (
    BOOLEAN,
    KINDS,
    LEFT_OUT,
    NUMBERS,
    VECTOR,
    WORDS,
    Column,
    ColumnKinds,
    is_vector,
)
from superarm.data.encoding import DensePart, Warnings, encode_row, encode_table, max_text_width
from superarm.data.inference import MANY_WORDS, column_profiles, select_features
from superarm.data.inference_messages import describe, inference_warnings
from superarm.data.rows import AnyRow, Layout, Rows
from superarm.data.tables import first_cells, named_rows
from superarm.errors import InvalidInput, Unquoted
from superarm.parameters import check_int, parameters

INFERENCE_ROWS = 20_000  # the first rows, from which columns are inferred
OPEN_NUMBERS = 40  # features for numbers of open columns, unless the first row has more numbers
WORD_FEATURES, MAX_WORD_FEATURES = 256, 2048
MIN_FEATURES = 8  # of open columns


class ColumnWarning(UserWarning):
    """A value or a column that is not what was declared; given once for each column."""


class Columns:
    """The columns of a table: their kinds, and how rows with these names are encoded.

    Args:
        columns: `Column` objects or dicts, in the order of their features.
        left_out: columns that are no features, and why.
        missing: whether numbers may be missing, and are marked then.
        n_word_features: how many features words share; ``None`` chooses.
        text_width: how wide the sparse part is; ``None`` leaves it to the number of labels.
        descriptions: of each column as it was inferred, for people.
        rows: from how many rows they were inferred; 0 if they were declared.
        n_open_numbers: how many features there are for numbers with names that are yet to come; 0 takes no new ones.

    >>> columns = Columns([Column("age", "numbers"), Column("note", "text")], text_width=1024)
    >>> row = columns.encode_row({"age": "41", "note": "card not working"}, "this")
    >>> row.dense.tolist(), len(row.indices)
    ([41.0, 0.0], 16)
    """

    def __init__(
        self,
        columns: Iterable[Column | Mapping[str, Any]] = (),
        *,
        left_out: Mapping[str, str] | None = None,
        missing: bool = True,
        n_word_features: int | None = None,
        text_width: int | None = None,
        descriptions: Mapping[str, str] | None = None,
        rows: int = 0,
        n_open_numbers: int = 0,
    ) -> None:
        self.columns: dict[str, Column] = {}
        self.left_out, self._descriptions = dict(left_out or {}), dict(descriptions or {})
        self.warnings: list[str] = []  # what inference may have taken for something else
        self.n_rows_seen = rows
        self.n_open_numbers = n_open_numbers
        self.text_width = text_width
        try:
            for entry in columns:
                column = entry if isinstance(entry, Column) else Column(**entry)
                if column.name in self.columns:
                    raise InvalidInput.must("columns", "Columns", "of different names", column.name)
                self.columns[column.name] = column
        except TypeError as error:
            wanted = "a list of columns, each with a name and a kind"
            raise InvalidInput.must("columns", "Columns", wanted, error) from error
        declared = self.columns.values()
        if n_word_features is None:
            n_word_features = (
                WORD_FEATURES if n_open_numbers or any(c.has_dense_words for c in declared) else 0
            )
        check_int("n_open_numbers", "Columns", n_open_numbers, 0)
        if check_int("n_word_features", "Columns", n_word_features, 0) == 1:
            raise InvalidInput.must("n_word_features", "Columns", "0 or at least 2: a word has two", 1)
        if text_width is not None and check_int("text_width", "Columns", text_width, 1).bit_count() != 1:
            raise InvalidInput.must("text_width", "Columns", "a power of two", text_width)
        if n_word_features and not missing:
            raise InvalidInput.must("missing", "Columns", "true where there are words or dates", missing)
        self.dense_part = DensePart(
            declared, marks_missing=missing, n_word_features=n_word_features, n_open_numbers=n_open_numbers
        )

    # ------------------------------------------------------------ inferred, open, or from a file

    @classmethod
    def infer(
        cls,
        table: Any,
        *,
        reserved: Mapping[str, str] | None = None,
        only: Sequence[str] | None = None,
        kinds: ColumnKinds | None = None,
    ) -> Columns:
        """Return columns that are inferred from the first 20,000 rows of a table.

        Ids, constants and counters are left out, unless there is nothing else.

        Args:
            table: a pandas, Polars or Arrow table, a list of dicts, or a file (.csv, .jsonl, .parquet).
            reserved: columns that are no features (the answer, what is only known afterwards), and what they are.
            only: the columns to take, whatever they hold.
            kinds: what some columns are, whatever they look like: by name a kind of `Column`, or ``"left out"``.
        """
        kinds = dict(kinds or {})
        for name, kind in kinds.items():
            if kind not in (choices := (*KINDS, LEFT_OUT)):
                wanted = f"one of {', '.join(choices)}"
                raise InvalidInput.must(f"kind of {name!r}", "columns", wanted, kind, choices=choices)
        cells = first_cells(table, INFERENCE_ROWS)
        profiles = column_profiles(cells, kinds)
        unknown = [name for name in (*kinds, *(only or ())) if name not in profiles]
        if unknown:
            wanted = f"among its columns {', '.join(profiles)}"
            raise InvalidInput.must("columns", "a table", wanted, unknown[0], choices=profiles)
        excluded = {name: why for name, why in (reserved or {}).items() if name not in kinds}
        excluded |= {name: "as asked for" for name, kind in kinds.items() if kind == LEFT_OUT}
        chosen = None if only is None else dict.fromkeys([*only, *kinds])
        features, left_out = select_features(profiles, excluded, chosen)
        columns = [profile.to_column() for profile in features]
        distinct = [profile.n_distinct for profile in features if profile.kind == WORDS]
        n_words = sum(n for n in distinct if n <= MANY_WORDS)  # of columns with more, words are hashed
        has_words = any(c.has_dense_words for c in columns) or any(p.n_non_numeric for p in features)
        # the next power of two to twice as many as there are words
        n_word_features = min(max(WORD_FEATURES, 1 << (2 * n_words - 1).bit_length()), MAX_WORD_FEATURES)
        inferred = cls(
            columns,
            left_out=left_out,
            missing=not all(
                p.kind in (NUMBERS, BOOLEAN) and not p.n_missing + p.n_non_numeric for p in features
            ),
            n_word_features=n_word_features if has_words else 0,
            descriptions={profile.name: describe(profile) for profile in features},
            rows=max((profile.n_rows for profile in profiles.values()), default=0),
        )
        inferred.warnings = inference_warnings(profiles, features, left_out)
        return inferred

    @classmethod
    def open_for(cls, X: Any, n_features: int | None, owner: str) -> Columns:
        """Open columns for the first rows ``X`` of ``owner``; ``n_features`` is the width, if it was asked for."""
        rows = list(named_rows(X))
        vectors = dict[str, Column]()
        for x in rows:
            for name, value in x.items():
                if is_vector(value) and name not in vectors:
                    vectors[name] = Column(name, VECTOR, length=len(parse_vector(value, name, owner)))
        numbers = max((len(x) for x in rows), default=0) + sum(c.length for c in vectors.values())
        max_room = max(OPEN_NUMBERS, 2 * numbers + 8)
        if n_features is None:
            return cls(vectors.values(), n_word_features=WORD_FEATURES, n_open_numbers=max_room)
        if n_features < MIN_FEATURES:
            wanted = f"left out, or at least {MIN_FEATURES}, for rows with names"
            raise InvalidInput.must("n_features", owner, wanted, n_features)
        room = min(max_room, n_features // 4)
        return cls(vectors.values(), n_word_features=n_features - 2 * room, n_open_numbers=room)

    @classmethod
    def read(cls, source: Columns | Mapping[str, Any] | str | PathLike[str]) -> Columns:
        """Return the columns in a file, of JSON (by `write` or by hand) or of a model; or a copy of ``source``.

        Args:
            source: the path of the file; or columns, or what `to_dict` gave.
        """
        if isinstance(source, Columns):
            return source.copy()
        if isinstance(source, Mapping):
            return cls.from_dict(source)
        path = Path(source)
        if path.suffix == ".npz":
            header, _ = read_model(path)
            if header.get("columns") is None:
                raise InvalidInput.must(
                    "columns", str(path), "a model of rows with names", Unquoted("numbers alone")
                )
            return cls.from_dict(header["columns"])
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            wanted = 'a JSON file such as {"columns": [{"name": "age", "kind": "numbers"}]}, or a model'
            raise InvalidInput.must("columns", str(path), wanted, error) from error
        return cls.from_dict(content)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the columns to a JSON file at ``path``, for `serve --columns` and for people."""
        check_place(path, "path", "columns")
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        write_atomically(path, lambda file: file.write(text.encode()))

    def to_dict(self) -> dict[str, Any]:
        """Return the columns as JSON-ready values."""
        return {
            "columns": [column.to_dict() for column in self.columns.values()],
            "left_out": self.left_out,
            "missing": self.dense_part.marks_missing,
            "n_word_features": self.dense_part.n_word_features,
            "text_width": self.text_width,
            "descriptions": self._descriptions,
            "rows": self.n_rows_seen,
            "n_open_numbers": self.n_open_numbers,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Columns:
        """Return the columns that `to_dict` gave as ``data``."""
        if isinstance(data, Mapping) and "columns" in data and data.keys() <= parameters(cls).keys():
            return cls(**data)
        wanted = (
            "an object with a list columns, each with a name and a kind "
            "(where a table tells the others, Columns.infer(table, kinds=…))"
        )
        raise InvalidInput.must("content", "columns", wanted, data)

    def copy(self) -> Columns:
        columns = Columns.from_dict(self.to_dict())
        columns.warnings = list(self.warnings)
        return columns

    def for_labels(self, k: int) -> Columns:
        """Return a copy with a sparse part, as wide as the number of labels ``k`` and a bound on memory allow."""
        columns = self.copy()
        if columns.has_sparse:
            columns.add_sparse_part(k)
        return columns

    # ------------------------------------------------------------ properties

    @property
    def is_open(self) -> bool:
        """Whether new names get features as they come."""
        return self.n_open_numbers > 0

    @property
    def has_sparse(self) -> bool:
        return any(column.is_sparse for column in self.columns.values())

    @property
    def is_numeric_only(self) -> bool:
        """Whether a row is the list of its numbers."""
        return not self.dense_part.marks_missing and not self.has_sparse

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column."""
        return {name: column.kind for name, column in self.columns.items()}

    @property
    def n_dense(self) -> int:
        """The length of the dense part of a row."""
        return self.dense_part.n_dense

    @property
    def layout(self) -> Layout:
        return Layout(
            self.n_dense,
            self.text_width or 0,
            self.dense_part.n_numbers if self.dense_part.marks_missing else 0,
        )

    @property
    def descriptions(self) -> dict[str, str]:
        """A few words on each column: what it is taken as, and why."""
        return {name: self._descriptions.get(name, column.kind) for name, column in self.columns.items()}

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {column.kind}" for name, column in self.columns.items())
        return f"Columns({parts}{', …' if self.is_open else ''})"

    def grown(self, new: Sequence[Column], k: int | None) -> Columns:
        """Return a copy with ``new`` columns, as far as there is room, and a sparse part for ``k`` labels, if any."""
        columns = self.copy()
        for column in new:
            if column.is_sparse or columns.dense_part.has_room:
                columns.columns[column.name] = column
                columns.dense_part.add(column)
        if k is not None:
            columns.add_sparse_part(k)
        return columns

    def add_sparse_part(self, k: int) -> None:
        """Give rows a sparse part, for ``k`` labels, if they have none."""
        if self.text_width is None:
            self.text_width = max_text_width(k)

    # ------------------------------------------------------------ rows

    def encode_row(self, x: Any, owner: str, warnings: Warnings | None = None) -> AnyRow:
        """Return the row of a dict or a Series ``x`` of ``owner``.

        ``warnings`` gets a sentence for each column that is not what was declared.
        """
        return encode_row(self, x, owner, {} if warnings is None else warnings)[0]

    def encode_table(self, X: Any, owner: str, warnings: Warnings | None = None) -> Rows:
        """Return the rows of a table ``X``, or of a list of named rows: the same bits as row by row.

        ``owner`` and ``warnings`` are as in `encode_row`.
        """
        return encode_table(self, X, owner, {} if warnings is None else warnings)[0]

    def parse_row(self, x: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """Return the row ``x`` of ``owner`` as JSON-ready values of the declared kinds, which give the same row."""
        cells = {str(name): value for name, value in x.items()}
        return json_row({name: column.parse(cells.get(name), owner) for name, column in self.columns.items()})
