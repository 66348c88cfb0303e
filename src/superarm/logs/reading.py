"""Reading decision logs, ours or somebody else's, a row at a time: files may be larger than memory."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm.decision import Label
from superarm.errors import InvalidInput
from superarm.logs.entry import FIELDS, Entry
from superarm.logs.writing import kind_of
from superarm.rows import Row, SparseRow

__all__ = ["BadRow", "Columns", "Log"]

WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
SAMPLE = 200  # rows looked at to find out which columns hold numbers


class BadRow(InvalidInput):
    """A row of a log that cannot be used; the message names its line and field."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a file hold what; the defaults are superarm's own names.

    Attributes:
        labels: one column with the whole set, or one column for each place of the slate.
        features: columns of numbers; ``None`` takes ``x``, or ``x_indices`` and ``x_values``, or
            else every other column that holds only numbers.
    """

    labels: tuple[str, ...] = ("labels",)
    hit: str = "hit"
    label: str = "label"
    propensity: str = "propensity"
    eligible: str = "eligible"
    features: tuple[str, ...] | None = None

    @property
    def taken(self) -> set[str]:
        """Columns that are no features."""
        return {*FIELDS, *self.labels, self.hit, self.label, self.propensity, self.eligible}


class Log:
    """A decision log in a Parquet, JSON lines or CSV file. Iterating reads it from the start.

    Args:
        path: the file; its ending says the format.
        columns: where the file's columns are called otherwise.
        features: a file of features, ``.npy`` or ``.npz``, whose row i belongs to row i of the log.
        uniform: the sets were drawn uniformly at random from all (or the eligible) labels.
        skip_bad: pass over rows that cannot be used, and count them in ``bad``.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        columns: Columns | None = None,
        features: str | PathLike[str] | None = None,
        uniform: bool = False,
        skip_bad: bool = False,
    ) -> None:
        self.path = Path(path)
        self.kind = kind_of(path)
        if not self.path.is_file():
            raise InvalidInput.must("log", "superarm", "an existing file", str(path))
        self.columns = columns or Columns()
        self.uniform, self.skip_bad = uniform, skip_bad
        self.bad = 0  # rows passed over in the last reading, and why the first of them
        self.first_bad = ""
        self.n_features: int | None = None
        self._matrix = None if features is None else _feature_file(Path(features))
        self._width: int | None = None
        self.feature_columns = self._find_features()

    def __iter__(self) -> Iterator[Entry]:
        self.bad, self.first_bad = 0, ""
        for place, (where, row) in enumerate(self._rows()):
            try:
                if isinstance(row, str):
                    raise _bad("row", where, row, "something else")
                yield self._entry(row, place, where)
            except BadRow as error:
                if not self.skip_bad:
                    raise
                self.bad += 1
                self.first_bad = self.first_bad or str(error)

    def fingerprint(self) -> str:
        """A hash of the file's content, to know it again."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    # ------------------------------------------------------------ raw rows, each with where it is

    def _rows(self) -> Generator[tuple[str, dict[str, Any] | str], None, None]:
        """(line, row); instead of a row that cannot be read, what it must be."""
        if self.kind == "parquet":
            yield from self._parquet_rows()
            return
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            if self.kind == "csv":
                sheet = csv.reader(file)
                header = next(sheet, [])
                for cells in sheet:
                    where = f"{self.path}, line {sheet.line_num}"
                    if len(cells) == len(header):
                        pairs = zip(header, cells, strict=True)
                        yield where, {name: None if cell == "" else cell for name, cell in pairs}
                    elif cells:
                        yield where, f"{len(header)} cells, as the header has, not {len(cells)}"
                return
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError:
                    row = None
                yield f"{self.path}, line {number}", row if isinstance(row, dict) else "a JSON object"

    def _parquet_rows(self) -> Iterator[tuple[str, dict[str, Any] | str]]:
        import polars as pl

        number = 0
        try:
            batches = pl.scan_parquet(self.path).collect_batches(chunk_size=4096, maintain_order=True)
            for batch in batches:
                for row in batch.iter_rows(named=True):
                    number += 1
                    yield f"{self.path}, row {number}", row
        except pl.exceptions.PolarsError as error:
            raise InvalidInput.must("content", str(self.path), "a Parquet file", str(error)) from error

    def _find_features(self) -> tuple[str, ...]:
        """The columns that are features, and a check that the others are there at all."""
        with closing(self._rows()) as rows:
            sample = [row for _, row in islice(rows, SAMPLE) if isinstance(row, dict)]
        names = list(dict.fromkeys(name for row in sample for name in row))
        if not names:
            raise InvalidInput.must("content", str(self.path), "a log with at least one row", "nothing")
        of, c = str(self.path), self.columns
        for name in c.labels:
            if name not in names:
                raise InvalidInput.must("labels column", of, f"one of {', '.join(names)}", name)
        if c.hit not in names and c.label not in names:
            raise InvalidInput.must("hit column", of, f"one of {', '.join(names)}", c.hit)
        if c.features is not None:
            for name in c.features:
                if name not in names:
                    raise InvalidInput.must("features columns", of, f"among {', '.join(names)}", name)
            return c.features
        if self._matrix is not None or "x" in names or "x_indices" in names:
            return ()
        found = tuple(
            name
            for name in names
            if name not in c.taken
            and all(_number(row.get(name)) is not None for row in sample if row.get(name) is not None)
            and any(row.get(name) is not None for row in sample)
        )
        if not found:
            wanted = "an x column, columns of numbers, or a file of their own"
            raise InvalidInput.must("features", of, wanted, ", ".join(names))
        return found

    # ------------------------------------------------------------ one row

    def _entry(self, row: dict[str, Any], place: int, where: str) -> Entry:
        c = self.columns
        if len(c.labels) == 1:
            labels = _labels(row.get(c.labels[0]), c.labels[0], where)
        else:
            slots = [row.get(name) for name in c.labels]
            labels = tuple(_label(v, ", ".join(c.labels), where) for v in slots if v is not None)
        if not labels or len(set(labels)) != len(labels):
            field = ", ".join(c.labels)
            raise _bad(field, where, "distinct labels, at least one", row.get(c.labels[0]))
        hit = _hit(row.get(c.hit), c.hit, where)
        label = None if row.get(c.label) is None else _label(row[c.label], c.label, where)
        if label is not None:
            if hit is not None and hit != (label in labels):
                raise _bad(c.hit, where, f"{label in labels}, as {c.label} is {label!r}", row.get(c.hit))
            hit = label in labels
        drawn = _labels(row.get("drawn"), "drawn", where) or None
        if drawn is not None and sorted(map(str, drawn)) != sorted(map(str, labels)):
            raise _bad("drawn", where, f"an order of {list(labels)}", list(drawn))
        top = _labels(row.get("top"), "top", where) or None
        gamma = _share(row.get("gamma"), "gamma", where)
        if top is not None and gamma is not None and len(set(top)) != len(labels):
            raise _bad("top", where, f"{len(labels)} distinct labels, as many as shown", list(top))
        if self.uniform:
            top, gamma = None, 1.0
        eligible = _labels(row.get(c.eligible), c.eligible, where) or None
        if eligible is not None and not {*labels, *(top or ())} <= set(eligible):
            raise _bad(c.eligible, where, "a list that holds the shown labels", row.get(c.eligible))
        size = row.get("set_size")
        if size is not None and _number(size) != len(labels):
            raise _bad("set_size", where, f"{len(labels)}, the number of labels shown", size)
        return Entry(
            x=self._features(row, place, where),
            labels=labels,
            hit=hit,
            label=label,
            drawn=drawn,
            top=top,
            gamma=gamma,
            eligible=eligible,
            propensity=_share(row.get(c.propensity), c.propensity, where),
            ordered_propensity=_share(row.get("ordered_propensity"), "ordered_propensity", where),
            id=None if row.get("id") is None else str(row["id"]),
            time=row.get("time"),
            learner=row.get("learner"),
            context=row.get("context"),
            place=place,
        )

    def _features(self, row: dict[str, Any], place: int, where: str) -> Row:
        if self._matrix is not None:
            if place >= self._matrix.shape[0]:
                wanted = f"one of the {self._matrix.shape[0]} rows of the file of features"
                raise _bad("row", where, wanted, f"row {place + 1}")
            if hasattr(self._matrix, "tocsr"):
                one = self._matrix[[place]]
                self.n_features = int(self._matrix.shape[1])
                return SparseRow(one.indices.astype(np.int32), one.data.astype(np.float32), self.n_features)
            return self._checked(self._matrix[place], "x", where)
        if self.feature_columns:
            values = [row.get(name) for name in self.feature_columns]
            try:
                x = np.array(values, np.float32)
            except (TypeError, ValueError):
                x = np.array([np.nan])
            if not np.isfinite(x).all():
                pairs = zip(self.feature_columns, values, strict=True)
                name, got = next((n, v) for n, v in pairs if _number(v) is None)
                raise _bad(name, where, "a number", got)
            return self._checked(x, "x", where)
        if row.get("x") is not None:
            return self._checked(_numbers(row["x"], "x", where), "x", where)
        index = _numbers(row.get("x_indices"), "x_indices", where)
        x = self._finite(_numbers(row.get("x_values"), "x_values", where), "x_values", where)
        whole = index.astype(np.int64)
        if len(x) != len(index) or (whole != index).any() or (whole < 0).any() or (np.diff(whole) <= 0).any():
            wanted = "increasing whole numbers, one for each of x_values"
            raise _bad("x_indices", where, wanted, row.get("x_indices"))
        width = int(whole[-1]) + 1 if len(whole) else 1
        return SparseRow(whole.astype(np.int32), x.astype(np.float32), width)

    def _finite(self, x: Any, field: str, where: str) -> Any:
        if not np.isfinite(x).all():
            raise _bad(field, where, "finite numbers", float(x[~np.isfinite(x)][0]))
        return x

    def _checked(self, x: Any, field: str, where: str) -> Row:
        self._finite(x, field, where)
        self._width = self._width or len(x)
        if len(x) != self._width or not len(x):
            raise _bad(field, where, f"{self._width} numbers, as in the rows before", len(x))
        self.n_features = self._width
        return np.ascontiguousarray(x, np.float32)


# ---------------------------------------------------------------- cells


def _bad(field: str, where: str, be: str, got: object) -> BadRow:
    return BadRow.must(field, where, be, got)


def _number(value: Any) -> float | None:
    """The finite number in a cell, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def _label(value: Any, field: str, where: str) -> Label:
    """A label; "3" and 3.0 are the number 3 (learners find it by its name either way)."""
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal() and str(int(text)) == text:
            return int(text)
        if text:
            return text
    elif not isinstance(value, bool) and isinstance(value, int | float) and float(value).is_integer():
        return int(value)
    raise _bad(field, where, "labels (names or whole numbers)", value)


def _list(value: Any, field: str, where: str) -> list[Any]:
    """A list from a cell: as it is, as JSON, or separated by semicolons."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part for part in value.split(";") if part.strip()]
        try:
            value = json.loads(value)
        except ValueError:
            raise _bad(field, where, 'a list such as a;b;c or ["a", "b"]', value) from None
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _labels(value: Any, field: str, where: str) -> tuple[Label, ...]:
    return tuple(_label(part, field, where) for part in _list(value, field, where))


def _numbers(value: Any, field: str, where: str) -> Any:
    try:
        return np.array(_list(value, field, where), np.float64)
    except (TypeError, ValueError):
        raise _bad(field, where, "numbers", value) from None


def _hit(value: Any, field: str, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower().removesuffix(".0")
    if text not in WORDS:
        raise _bad(field, where, "true or false (1 or 0, yes or no)", value)
    return WORDS[text]


def _share(value: Any, field: str, where: str) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if number is None or not 0.0 < number <= 1.0:
        raise _bad(field, where, "in (0, 1]", value)
    return number


def _feature_file(path: Path) -> Any:
    """A matrix from .npy (left on disk), or from an .npz with X, or with the parts of a CSR matrix."""
    wanted = "an .npy, or an .npz with X or X_data, X_indices, X_indptr, X_shape"
    try:
        if path.suffix == ".npy":
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with np.load(path, allow_pickle=False) as file:
                if "X" in file:
                    matrix = file["X"]
                else:
                    from scipy.sparse import csr_matrix

                    parts = file["X_data"], file["X_indices"], file["X_indptr"]
                    matrix = csr_matrix(parts, file["X_shape"])
                    matrix.sum_duplicates()
    except (OSError, EOFError, KeyError, ValueError) as error:
        raise InvalidInput.must("features", os.fspath(path), wanted, str(error)) from error
    if len(matrix.shape) != 2:
        raise InvalidInput.must("features", os.fspath(path), "a matrix", f"shape {matrix.shape}")
    return matrix
