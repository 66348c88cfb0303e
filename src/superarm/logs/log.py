"""Log: decisions of superarm's or of other tools, a row at a time: files may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from math import log as ln
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

from superarm._types import Cell, JsonObject
from superarm.data.columns import Columns
from superarm.data.inference_messages import leak_warnings
from superarm.data.labels import Label, has_float_labels, whole_label
from superarm.data.tables import Table, is_named_rows, with_matrix
from superarm.decisions.decision import Decision
from superarm.decisions.logged_decision import COLUMNS, LOG_FORMAT, LoggedDecision
from superarm.errors import InvalidInput, Unquoted, at_row
from superarm.logs.columns import LogColumns, NamedFeatures, UnnamedFeatures, find_features
from superarm.logs.other_formats import LogSource, convert_row, open_source
from superarm.logs.parsing import (
    BadRow,
    LogRow,
    is_empty,
    label_in_cell,
    labels_in_cell,
    parse_hit,
    parse_number,
    parse_object,
    parse_probability,
    parse_rule,
)

SAMPLE = 200  # rows looked at to find out which columns there are
CACHE_BYTES = 2**27  # of rows that stay in memory after the first reading; a longer log is read again
ROW_BYTES = 1500  # of a row in memory beside its numbers, about
Labels = tuple[Label, ...]
UNIFORM = {"name": "dilute", "gamma": 1.0}  # around any top set
# which other tools' columns may be called, too
DRAW_COLUMNS = ("drawn", "top", "set_size", "gamma", "ordered_propensity")


class Log:
    """A decision log. Iterating reads it from the start, a `LoggedDecision` for each row.

    Args:
        source: a file (Parquet, JSON lines, CSV or VW's dsjson, by its ending), a pandas, Polars or Arrow
            table, or OBP's ``bandit_feedback``; or a list of those, read one after another: the first tells what
            the columns are. Rows are counted in each, so those kept out stay the same whatever it is read with.
        columns: where columns are called otherwise.
        matrix: a file of features, ``.npy`` or ``.npz``, whose row i belongs to row i of the log.
        uniform: the sets were drawn uniformly at random from all (or the eligible) labels.
        empty_is_no: an empty answer is a no, as where only clicks were written down; else such rows are passed over.
        skip_bad: pass over rows that cannot be used, and count them in ``bad``.
        separator: what stands between the labels of a set in one cell; a semicolon by default.
        feature_columns: what the columns are, as `superarm.Columns`, of one model or of several; taken if the log has
            them. Else the first 20,000 rows tell.
        vectors: an .npy whose row i becomes a column of row i of the log, beside its others.

    Attributes:
        feature_columns: the columns taken as features, as what, and why the others are left out (none of
            them if features come without names, in ``x`` or a file).
        columns: which columns of the log hold what.
        column_warnings: what was found later that is not as declared: a sentence for each column.
    """

    def __init__(
        self,
        source: LogSource | Sequence[LogSource],
        *,
        columns: LogColumns | None = None,
        matrix: str | PathLike[str] | None = None,
        uniform: bool = False,
        empty_is_no: bool = False,
        skip_bad: bool = False,
        separator: str | None = None,
        feature_columns: Iterable[Columns] = (),
        vectors: str | PathLike[str] | None = None,
    ) -> None:
        several = isinstance(source, list | tuple) and not is_named_rows(source)
        sources: Any = source if several else [source]
        self.sources = [open_source(one) for one in sources]
        if not self.sources:
            raise InvalidInput.must("source", "Log", "at least one file or table", source)
        self.columns = columns or LogColumns()
        beside = {"matrix": matrix, "vectors": vectors}
        row_files = {name: Path(file) for name, file in beside.items() if file is not None}
        if len(row_files) > 1:
            raise InvalidInput.must("matrix", "Log", "left out: there are vectors", str(matrix))
        if matrix is not None and self.columns.features is not None:
            wanted = "left out: features are in columns of the log"
            raise InvalidInput.must("matrix", "Log", wanted, str(matrix))
        for name, file in row_files.items():
            if len(self.sources) > 1:
                wanted = "left out: its rows belong to those of one log, and there are several"
                raise InvalidInput.must(name, "Log", wanted, str(file))
            self.sources = [with_matrix(self.sources[0], file, "x" if name == "matrix" else "vectors")]
        self.name = ", ".join(one.name for one in self.sources)
        self.uniform = uniform
        self.empty_is_no = empty_is_no
        self.skip_bad = skip_bad
        self.separator = separator
        if separator == "":
            raise InvalidInput.must("separator", "superarm", "at least one character", separator)
        self.bad = 0  # rows passed over in the last reading, and why the first of them
        self.first_bad = ""
        self._cache: list[LoggedDecision] | None = None  # all rows, after a reading to the end
        self._extra_columns: tuple[str, ...] = ()
        self._fingerprints: dict[str, str] | None = None
        self._has_float_labels = False
        if len(self.sources) > 1 and len(self.fingerprints()) < len(self.sources):
            got = Unquoted(f"the same rows in some of {', '.join(self.names)}")
            raise InvalidInput.must("logs", "Log", "different, as rows would count twice", got)
        self._features = self._find_features(list(feature_columns))
        self.feature_columns = self._features.columns
        self.column_warnings = self._features.column_warnings

    def __repr__(self) -> str:
        return f"Log({', '.join(self.names)})"

    @property
    def names(self) -> list[str]:
        """The names of its files, without their folders; or what its tables are."""
        return [Path(one.name).name for one in self.sources]

    def keep_columns(self, names: Iterable[str]) -> None:
        """Keep further columns with each record, in its ``extra_columns``.

        Args:
            names: the columns; of those that the log does not have, all values are ``None``.
        """
        new = [name for name in names if name not in self._extra_columns]
        if new:
            self._extra_columns = (*self._extra_columns, *new)
            self._cache = None

    def __iter__(self) -> Iterator[LoggedDecision]:
        if self._cache is not None:
            yield from self._cache
            return
        records = list[LoggedDecision]()
        size = 0
        for record in self._read():
            size += ROW_BYTES + int(getattr(record.decision.x, "nbytes", 0))
            if size <= CACHE_BYTES:
                records.append(record)
            elif records:
                records.clear()
            yield record
        self._cache = records if size <= CACHE_BYTES else None

    def _read(self) -> Iterator[LoggedDecision]:
        self.bad = 0
        self.first_bad = ""
        for source in self.sources:
            for number, row in enumerate(_converted_rows(source)):
                try:
                    if isinstance(row, BadRow):
                        raise row
                    yield self._record(row, number, at_row(source.name, number))
                except BadRow as error:
                    if not self.skip_bad:
                        raise
                    self.bad += 1
                    self.first_bad = self.first_bad or str(error)

    def fingerprints(self) -> dict[str, str]:
        """Return the name of each source, by a hash of its content to know it again."""
        if self._fingerprints is None:
            named = zip(self.sources, self.names, strict=True)
            self._fingerprints = {one.fingerprint(): name for one, name in named}
        return self._fingerprints

    # ------------------------------------------------------------ columns

    def _find_features(self, declared: list[Columns]) -> NamedFeatures | UnnamedFeatures:
        """Find the features; the first source tells for all of them: ids may begin again in each."""
        source = self.sources[0]
        first_rows = list(islice(_converted_rows(source), SAMPLE))
        sample = [row for row in first_rows if isinstance(row, dict)]
        if not any(sample):
            if first_rows and isinstance(first_rows[0], BadRow):
                raise first_rows[0]
            raise InvalidInput(f"{source.name} has no rows")
        self._check_columns(sample, source.name)
        labels = self._sample_labels(sample)
        self._has_float_labels = has_float_labels(labels)
        if self._has_float_labels:
            labels = set(map(whole_label, labels))
        self._unrelated = self._unrelated_columns(sample, source.name)
        reserved = self.columns.reserved
        reserved = {name: why for name, why in reserved.items() if name not in self._unrelated}
        rows = (row for row in _converted_rows(source) if isinstance(row, dict))
        features = find_features(
            sample,
            rows,
            columns=self.columns,
            reserved=reserved,
            declared=declared,
            separator=self.separator,
            owner=self.name,
        )
        if isinstance(features, NamedFeatures) and not declared:
            named = [parse_object(row.get("x")) or row for row in sample]
            cells = {name: [x.get(name) for x in named] for name in features.columns.names}
            features.columns.warnings += leak_warnings(features.columns.kinds, cells, labels)
        return features

    def _sample_labels(self, sample: list[LogRow]) -> set[Label]:
        """Return the labels of the first rows that can be read."""
        labels: set[Label] = set()
        for row in sample:
            with suppress(BadRow):
                labels.update(self._labels(row, ""))
        return labels

    def _unrelated_columns(self, sample: list[LogRow], owner: str) -> set[str]:
        """Return the columns that are called like one of superarm's and hold something else in all first rows."""
        if sample[0].keys() >= set(COLUMNS):
            return set()
        unrelated = {name for name in DRAW_COLUMNS if any(row.get(name) is not None for row in sample)}
        for number, row in enumerate(sample):
            where = at_row(owner, number)
            for name in [name for name in unrelated if row.get(name) is not None]:
                with suppress(BadRow):
                    self._check_draw_column(name, row, self._labels(row, where), where)
                    unrelated.discard(name)
        return unrelated

    def _check_columns(self, sample: list[LogRow], owner: str) -> None:
        """Refuse a log without the columns that it must have."""
        names = {name: None for row in sample for name in row}
        c = self.columns
        if names.keys() >= set(COLUMNS):  # a log of ours says by which format it was written
            number = parse_number(sample[0]["format"])
            if number != LOG_FORMAT:
                raise InvalidInput.must("format", owner, f"{LOG_FORMAT}, as this superarm reads", number)
        listed = ", ".join(names)

        def missing_column(part: str, name: str) -> InvalidInput:
            wanted = f"one of {listed} (--{part}-column, LogColumns({part}=…))"
            return InvalidInput.must(f"{part} column", owner, wanted, name, choices=names)

        for name in c.labels:
            if name not in names:
                raise missing_column("labels", name)
        if c.hit not in names and c.label not in names:
            raise missing_column("hit", c.hit)
        for part, name in c.renamed.items():
            # of JSON lines, some have columns that the first do not
            rows = (row for source in self.sources for row in _converted_rows(source))
            if name not in names and not any(isinstance(row, dict) and name in row for row in rows):
                raise missing_column(part, name)
        for name in c.features or ():
            if name not in names:
                raise InvalidInput.must("features columns", owner, f"among {listed}", name, choices=names)

    # ------------------------------------------------------------ one row

    def _labels(self, row: LogRow, where: str) -> Labels:
        """Return the labels that were shown."""
        c = self.columns
        if len(c.labels) == 1:
            labels = self._parse_labels(row.get(c.labels[0]), c.labels[0], where)
        else:
            slots = [row.get(name) for name in c.labels]
            labels = tuple(self._parse_label(v, ", ".join(c.labels), where) for v in slots if not is_empty(v))
        if not labels or len(set(labels)) != len(labels):
            field = ", ".join(c.labels)
            raise BadRow.must(field, where, "distinct labels, at least one", list(labels))
        return labels

    def _parse_label(self, value: Cell, name: str, where: str) -> Label:
        label = label_in_cell(value, name, where)
        return whole_label(label) if self._has_float_labels else label

    def _parse_labels(self, value: Cell, name: str, where: str) -> Labels:
        labels = labels_in_cell(value, name, where, self.separator)
        return tuple(map(whole_label, labels)) if self._has_float_labels else labels

    def _record(self, row: LogRow, number: int, where: str) -> LoggedDecision:
        """Return a row of a source in superarm's format as a LoggedDecision."""
        c = self.columns
        labels = self._labels(row, where)
        hit = parse_hit(row.get(c.hit), c.hit, where)
        label = None if is_empty(row.get(c.label)) else self._parse_label(row[c.label], c.label, where)
        if label is not None:
            if hit is not None and hit != (label in labels):
                wanted = f"{label in labels}, as {c.label} is {label!r}"
                raise BadRow.must(c.hit, where, wanted, row.get(c.hit))
            hit = label in labels
        if hit is None and self.empty_is_no:
            hit = False
        eligible = self._parse_labels(row.get(c.eligible), c.eligible, where) or None
        drawn, top, rule = self._draw(row, labels, where)
        if eligible is not None and not {*labels, *(top or ())} <= set(eligible):
            raise BadRow.must(c.eligible, where, "a list that holds the shown labels", row.get(c.eligible))
        propensity = None
        if c.propensity is not None:
            propensity = parse_probability(row.get(c.propensity), c.propensity, where)
        return LoggedDecision(
            Decision.from_parts(
                x=self._features.extract(row, where),
                sets=(labels, drawn or labels, top or ()),
                size=len(labels),
                eligible=eligible,
                log_propensity=nan if propensity is None else ln(propensity),
                rule=rule,
                learner=None if row.get("learner") is None else str(row["learner"]),
            ),
            hit=hit,
            label=label,
            id=None if row.get("id") is None else str(row["id"]),
            time=row.get("time"),
            context=row.get("context"),
            row_index=number,
            extra_columns={name: row.get(name) for name in self._extra_columns} or None,
        )

    def _draw(
        self, row: LogRow, labels: Labels, where: str
    ) -> tuple[Labels | None, Labels | None, JsonObject | None]:
        """Return the order of the draw, the top set, and the rule."""
        names = [name for name in DRAW_COLUMNS if row.get(name) is not None and name not in self._unrelated]
        values = {name: self._check_draw_column(name, row, labels, where) for name in names}
        drawn, top, gamma = map(values.get, ("drawn", "top", "gamma"))
        if self.uniform:
            return drawn, None, UNIFORM
        rule = parse_rule(row.get("rule"), where)
        if rule is None and gamma is not None and (top is not None or gamma == 1.0):
            rule = {"name": "dilute", "gamma": gamma}
        dilute = rule is not None and rule["name"] == "dilute"  # other rules may show fewer or more
        if top is not None and dilute and len(top) != len(labels):
            raise BadRow.must("top", where, f"{len(labels)} distinct labels, as many as shown", list(top))
        return drawn, None if rule is None else top, rule

    def _check_draw_column(self, name: str, row: LogRow, labels: Labels, where: str) -> Any:
        """Return the value of one of DRAW_COLUMNS; ``None`` if it is empty, BadRow if it does not fit the shown set."""
        value = row.get(name)
        if name in ("gamma", "ordered_propensity"):
            return parse_probability(value, name, where)
        if name == "set_size":
            if not is_empty(value) and parse_number(value) != len(labels):
                raise BadRow.must(name, where, f"{len(labels)}, the number of labels shown", value)
            return value
        parsed = self._parse_labels(value, name, where) or None
        if name == "drawn" and parsed is not None and sorted(map(str, parsed)) != sorted(map(str, labels)):
            raise BadRow.must(name, where, f"an order of {list(labels)}", list(parsed))
        if name == "top" and parsed is not None and len(set(parsed)) != len(parsed):
            raise BadRow.must(name, where, "distinct labels", list(parsed))
        return parsed


def _converted_rows(source: Table) -> Iterator[LogRow | BadRow]:
    """Return the rows of a source in superarm's format, with an error in place of a row that cannot be read."""
    for number, row in enumerate(source.rows()):
        where = at_row(source.name, number)
        try:
            yield BadRow(f"{where} must be {row}") if isinstance(row, str) else convert_row(row, where)
        except BadRow as error:
            yield error
