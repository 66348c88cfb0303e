"""Log: decisions from anywhere, ours or somebody else's, a row at a time: files may be larger than memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from math import log as ln
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.columns import Columns
from superarm.data.inference import AFTERWARDS
from superarm.data.rows import NOTHING, AnyRow, Row
from superarm.data.tables import Table, TableRow, WithVectors, is_named_rows, read_matrix
from superarm.decisions.decision import COLUMNS, LOG_FORMAT, Decision, Record
from superarm.errors import InvalidInput, at_row
from superarm.logs.fields import (
    BadRow,
    parse_hit,
    parse_label,
    parse_labels,
    parse_number,
    parse_numbers,
    parse_probability,
    parse_rule,
)
from superarm.logs.log_columns import LogColumns
from superarm.logs.sources import open_source

SAMPLE = 200  # rows looked at to find out which columns there are
KEPT = 2**27  # bytes of rows that stay in memory after the first reading; a longer log is read again
ROW_BYTES = 1500  # of a row in memory beside its numbers, about
UNIFORM = {"name": "dilute", "gamma": 1.0}  # around any top set


class Log:
    """A decision log. Iterating reads it from the start, a `Record` for each row.

    Args:
        source: a file (Parquet, JSON lines, CSV or VW's dsjson, by its ending), a pandas, Polars or Arrow
            table, or OBP's ``bandit_feedback``; or a list of those, read one after another: the first tells what
            the columns are. Rows are counted in each, so those kept out stay the same whatever it is read with.
        columns: where columns are called otherwise.
        features: a file of features, ``.npy`` or ``.npz``, whose row i belongs to row i of the log.
        uniform: the sets were drawn uniformly at random from all (or the eligible) labels.
        skip_bad: pass over rows that cannot be used, and count them in ``bad``.
        separator: what stands between the labels of a set in one cell; a semicolon by default.
        declared: what the columns are, as `superarm.Columns`, of one model or of several; taken if the log has
            them. Else the first 20,000 rows tell.
        vectors: an .npy whose row i becomes a column of row i of the log, beside its others.

    Attributes:
        features: the columns taken as features, as what, and why the others are left out (none of
            them if features come without names, in ``x`` or a file).
        missing: declared columns that the log does not have: gaps.
        notices: what was found later that is not as declared: a sentence for each column.
    """

    def __init__(
        self,
        source: Any,
        *,
        columns: LogColumns | None = None,
        features: str | PathLike[str] | None = None,
        uniform: bool = False,
        skip_bad: bool = False,
        separator: str | None = None,
        declared: Iterable[Columns] = (),
        vectors: str | PathLike[str] | None = None,
    ) -> None:
        several = isinstance(source, list | tuple) and not is_named_rows(source)
        self.sources = [open_source(one) for one in (source if several else [source])]
        if not self.sources:
            raise InvalidInput.must("source", "Log", "at least one file or table", source)
        beside = features if features is not None else vectors
        if len(self.sources) > 1 and beside is not None:
            wanted = "left out: its rows belong to those of one log, and there are several"
            raise InvalidInput.must("features or vectors", "Log", wanted, str(beside))
        if vectors is not None:
            self.sources = [WithVectors(self.sources[0], Path(vectors))]
        self.name = ", ".join(one.name for one in self.sources)
        self.columns = columns or LogColumns()
        self.uniform, self.skip_bad, self.separator = uniform, skip_bad, separator
        if separator == "":
            raise InvalidInput.must("separator", "superarm", "at least one character", separator)
        self.bad = 0  # rows passed over in the last reading, and why the first of them
        self.first_bad = ""
        self._kept: list[Record] | None = None  # all rows, after a reading to the end
        self._unread: Iterator[TableRow] | None = None  # of the first source, until the first reading
        self._also: tuple[str, ...] = ()
        self._fingerprints: dict[str, str] | None = None
        self._check_distinct()
        self.n_features: int | None = None
        self._matrix = None if features is None else read_matrix(Path(features))
        self._width: int | None = None
        self._inner = False  # features are in x, by name
        self._as_they_are = False  # several models read them, each in its own way
        self.missing: tuple[str, ...] = ()
        self.notices: dict[str, str] = {}
        self.features = self._find_features(list(declared))
        if len(self.features):
            self.n_features = self.features.d

    def __repr__(self) -> str:
        return f"Log({', '.join(self.names)})"

    @property
    def names(self) -> list[str]:
        """Of its files, without their folders; or what its tables are."""
        return [Path(one.name).name for one in self.sources]

    def _repr_html_(self) -> str:
        from superarm._html import log_html

        return log_html(self)

    def plot(self) -> Any:
        """Its hit rate along its rows, and how often each label was shown and hit: an Altair chart."""
        from superarm.logs.charts import log_chart

        return log_chart(self)

    def keep_columns(self, names: Iterable[str]) -> None:
        """Keep further columns with each record, in its ``also``.

        Args:
            names: the columns; of those that the log does not have, all values are ``None``.
        """
        new = [name for name in names if name not in self._also]
        if new:
            self._also, self._kept = (*self._also, *new), None

    def __iter__(self) -> Iterator[Record]:
        if self._kept is not None:
            yield from self._kept
            return
        kept, size = list[Record](), 0
        for record in self._read():
            size += ROW_BYTES + int(getattr(record.decision.x, "nbytes", 0))
            if size <= KEPT:
                kept.append(record)
            elif kept:
                kept.clear()
            yield record
        self._kept = kept if size <= KEPT else None

    def _read(self) -> Iterator[Record]:
        self.bad, self.first_bad = 0, ""
        unread, self._unread = self._unread, None
        for source in self.sources:
            rows, unread = source.rows() if unread is None else unread, None
            for number, row in enumerate(rows):
                where = at_row(source.name, number)
                try:
                    if isinstance(row, str):
                        raise BadRow(f"{where} must be {row}")
                    yield self._record(row, number, where)
                except BadRow as error:
                    if not self.skip_bad:
                        raise
                    self.bad += 1
                    self.first_bad = self.first_bad or str(error)

    def fingerprints(self) -> dict[str, str]:
        """A hash of the content of each source, to know it again, and its name."""
        if self._fingerprints is None:
            named = zip(self.sources, self.names, strict=True)
            self._fingerprints = {one.fingerprint(): name for one, name in named}
        return self._fingerprints

    def _check_distinct(self) -> None:
        """The rows of a log that is given twice would count twice."""
        if len(self.sources) > 1 and len(self.fingerprints()) < len(self.sources):
            wanted = "different, as rows would count twice"
            raise InvalidInput.must(
                "logs", "Log", wanted, f"the same rows in some of {', '.join(self.names)}"
            )

    # ------------------------------------------------------------ columns

    def _find_features(self, declared: list[Columns]) -> Columns:
        """The columns that are features, and a check that the others are there at all."""
        source = self.sources[0]  # it tells for all of them: ids may begin again in each
        rows, seen = source.rows(), list[TableRow]()
        self._unread = chain(seen, rows)  # what is looked at is not parsed again

        def look() -> Iterator[TableRow]:
            for row in rows:
                seen.append(row)
                yield row

        first = list(islice(look(), SAMPLE))
        return self._features_of(source, first, chain(first, look()), declared)

    def _features_of(
        self, source: Table, first: list[TableRow], rows: Iterator[TableRow], declared: list[Columns]
    ) -> Columns:
        sample = [row for row in first if isinstance(row, dict)]
        names = list(dict.fromkeys(name for row in sample for name in row))
        if not names:
            self._refuse_nothing(source.name, first)
        of, c, known = source.name, self.columns, ", ".join(names)
        if set(COLUMNS) <= set(names):  # a log of ours says by which format it was written
            number = parse_number(sample[0]["format"])
            if number != LOG_FORMAT:
                raise InvalidInput.must("format", of, f"{LOG_FORMAT}, as this superarm reads", number)
        for name in c.labels:
            if name not in names:
                raise InvalidInput.must("labels column", of, f"one of {known}", name, among=names)
        if c.hit not in names and c.label not in names:
            raise InvalidInput.must("hit column", of, f"one of {known}", c.hit, among=names)
        for name in c.features or ():
            if name not in names:
                raise InvalidInput.must("features columns", of, f"among {known}", name, among=names)
        if self._matrix is not None and c.features is None:
            return Columns()
        wanted = dict.fromkeys(name for one in declared for name in one.names)
        asked = c.features is not None or bool(set(wanted) & set(names))
        if not asked and ("x" in names or "x_indices" in names):
            self._inner = any(row.get("x") is not None and _named(row["x"]) is not None for row in sample)
            if not self._inner:
                return Columns()
            names = list(dict.fromkeys(name for row in sample for name in _named(row.get("x")) or ()))
        if c.features is None and declared and (asked or self._inner):
            self.missing = tuple(name for name in wanted if name not in names)
            if all(one == declared[0] and not one.is_open for one in declared):
                return declared[0].copy()
            self._as_they_are = True
        every = (self._given(row) for row in rows if isinstance(row, dict))
        return self._look(every, names, [name for name in wanted if name in names], known)

    def _look(self, rows: Iterator[Any], names: list[str], wanted: list[str], known: str) -> Columns:
        """What the first rows tell."""
        c = self.columns
        if self._inner:  # whatever is in x is a feature
            columns = Columns.look(
                rows, only=wanted if wanted and not self._as_they_are else None, everything=True
            )
        else:
            later = {name: "only known afterwards" for name in names if name.lower() in AFTERWARDS}
            only = c.features if c.features is not None else wanted or None
            columns = Columns.look(rows, taken=later | c.taken, only=only, **c.asked)
        lists = [name for name in c.features or () if name not in columns.columns]
        if not len(columns) or lists:
            wanted_ = "an x column, columns of numbers or words, or a file of their own"
            got = ", ".join(f"{name} ({why})" for name, why in columns.left_out.items()) or known
            raise InvalidInput.must("features", self.name, wanted_, f"lists in {lists[0]}" if lists else got)
        return columns

    def _given(self, row: dict[str, Any]) -> Mapping[str, Any]:
        """Where the features of a row are, by name."""
        return (_named(row.get("x")) or {}) if self._inner else row

    def _refuse_nothing(self, name: str, first: list[TableRow]) -> None:
        if first:
            raise BadRow(f"{at_row(name, 0)} must be {first[0]}")
        raise InvalidInput(f"{name} has no rows")

    # ------------------------------------------------------------ one row

    def _record(self, row: dict[str, Any], number: int, where: str) -> Record:
        c, separator = self.columns, self.separator
        if len(c.labels) == 1:
            labels = parse_labels(row.get(c.labels[0]), c.labels[0], where, separator)
        else:
            slots = [row.get(name) for name in c.labels]
            labels = tuple(parse_label(v, ", ".join(c.labels), where) for v in slots if v is not None)
        if not labels or len(set(labels)) != len(labels):
            field = ", ".join(c.labels)
            raise BadRow.must(field, where, "distinct labels, at least one", row.get(c.labels[0]))
        hit = parse_hit(row.get(c.hit), c.hit, where)
        label = None if row.get(c.label) is None else parse_label(row[c.label], c.label, where)
        if label is not None:
            if hit is not None and hit != (label in labels):
                wanted = f"{label in labels}, as {c.label} is {label!r}"
                raise BadRow.must(c.hit, where, wanted, row.get(c.hit))
            hit = label in labels
        eligible = parse_labels(row.get(c.eligible), c.eligible, where, separator) or None
        drawn, top, rule = self._drawn(row, where, labels)
        if eligible is not None and not {*labels, *(top or ())} <= set(eligible):
            raise BadRow.must(c.eligible, where, "a list that holds the shown labels", row.get(c.eligible))
        size = row.get("set_size")
        if size is not None and parse_number(size) != len(labels):
            raise BadRow.must("set_size", where, f"{len(labels)}, the number of labels shown", size)
        chance = parse_probability(row.get(c.propensity), c.propensity, where)
        ordered = parse_probability(row.get("ordered_propensity"), "ordered_propensity", where)
        return Record(
            Decision.from_parts(
                x=self._features(row, number, where),
                sets=(labels, drawn or labels, top or ()),
                size=len(labels),
                eligible=eligible,
                log_ordered=nan if ordered is None else ln(ordered),
                log_set=nan if chance is None else ln(chance),
                rule=rule,
                learner=None if row.get("learner") is None else str(row["learner"]),
            ),
            hit=hit,
            label=label,
            id=None if row.get("id") is None else str(row["id"]),
            time=row.get("time"),
            context=row.get("context"),
            number=number,
            also={name: row.get(name) for name in self._also} if self._also else None,
        )

    def _drawn(self, row: dict[str, Any], where: str, labels: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """The order of the draw, the top set, and the rule."""
        separator = self.separator
        drawn = parse_labels(row.get("drawn"), "drawn", where, separator) or None
        if drawn is not None and sorted(map(str, drawn)) != sorted(map(str, labels)):
            raise BadRow.must("drawn", where, f"an order of {list(labels)}", list(drawn))
        if self.uniform:
            return drawn, None, UNIFORM
        top = parse_labels(row.get("top"), "top", where, separator) or None
        gamma, rule = parse_probability(row.get("gamma"), "gamma", where), parse_rule(row.get("rule"), where)
        if rule is None and gamma is not None and (top is not None or gamma == 1.0):
            rule = {"name": "dilute", "gamma": gamma}
        vary = rule is not None and rule["name"] == "cover"  # it leaves labels of its top set out
        if top is not None and rule is not None and not vary and len(set(top)) != len(labels):
            raise BadRow.must("top", where, f"{len(labels)} distinct labels, as many as shown", list(top))
        return drawn, None if rule is None else top, rule

    def _features(self, row: dict[str, Any], number: int, where: str) -> AnyRow | dict[str, Any]:
        if self._matrix is not None:
            if number >= self._matrix.shape[0]:
                wanted = f"one of the {self._matrix.shape[0]} rows of the file of features"
                raise BadRow.must("row", where, wanted, f"row {number + 1}")
            if hasattr(self._matrix, "tocsr"):
                one = self._matrix[[number]]
                self.n_features = int(self._matrix.shape[1])
                parts = (one.indices.astype(np.int32), one.data.astype(np.float32))
                return Row.of(NOTHING, *parts, self.n_features)
            return self._checked(self._matrix[number], "x", where)
        if len(self.features):
            values: AnyRow | dict[str, Any] = self._by_name(self._given(row), where)
            return values
        dense: Any = NOTHING
        if row.get("x") is not None:
            dense = self._checked(parse_numbers(row["x"], "x", where, self.separator), "x", where)
            if row.get("x_indices") is None:
                return dense  # type: ignore[no-any-return]
        index = parse_numbers(row.get("x_indices"), "x_indices", where, self.separator)
        x = parse_numbers(row.get("x_values"), "x_values", where, self.separator)
        _finite(x, "x_values", where)
        whole = index.astype(np.int64)
        if len(x) != len(index) or (whole != index).any() or (whole < 0).any() or (np.diff(whole) <= 0).any():
            wanted = "increasing whole numbers, one for each of x_values"
            raise BadRow.must("x_indices", where, wanted, row.get("x_indices"))
        width = int(whole[-1]) + 1 if len(whole) else 1
        return Row.of(dense, whole.astype(np.int32), x.astype(np.float32), width)

    def _by_name(self, given: Mapping[str, Any], where: str) -> Any:
        """A row of columns: its numbers, where it has nothing else; or its cells by name, as the columns read them."""
        if self._as_they_are:
            return dict(given) if self._inner else {name: given.get(name) for name in self.features.columns}
        try:
            if self.features.is_plain:
                if not self._inner:  # the log's own columns are no news
                    known = self.features.columns
                    given = {
                        name: value for name, value in given.items() if name in known or name not in COLUMNS
                    }
                return self.features.row(given, where, notices=None if self._inner else self.notices)
            return self.features.cells(given, where)
        except InvalidInput as error:
            raise BadRow(str(error)) from error

    def _checked(self, x: Any, field: str, where: str) -> AnyRow:
        _finite(x, field, where)
        self._width = self._width or len(x)
        if len(x) != self._width or not len(x):
            raise BadRow.must(field, where, f"{self._width} numbers, as in the rows before", len(x))
        self.n_features = self._width
        return np.ascontiguousarray(x, np.float32)


def _named(x: Any) -> dict[str, Any] | None:
    """A row with names: as it is, or as JSON in a file of text."""
    if isinstance(x, str) and x.lstrip().startswith("{"):
        try:
            x = json.loads(x)
        except ValueError:
            return None
    return x if isinstance(x, dict) else None


def _finite(x: Any, field: str, where: str) -> None:
    if not np.isfinite(x).all():
        raise BadRow.must(field, where, "finite numbers", float(x[~np.isfinite(x)][0]))
