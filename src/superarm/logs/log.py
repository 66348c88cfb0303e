"""Log: decisions from anywhere, ours or somebody else's, a row at a time: files may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from math import log as ln
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

from superarm.data.columns import Columns
from superarm.data.tables import TableRow, WithVectors, is_named_rows
from superarm.decisions.decision import COLUMNS, LOG_FORMAT, Decision, Record
from superarm.errors import InvalidInput, at_row
from superarm.logs.cells import (
    BadRow,
    parse_hit,
    parse_label,
    parse_labels,
    parse_number,
    parse_probability,
    parse_rule,
)
from superarm.logs.features import Features, MatrixFeatures, find_features
from superarm.logs.foreign import open_source
from superarm.logs.log_columns import LogColumns

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
        row_file = features if features is not None else vectors
        if len(self.sources) > 1 and row_file is not None:
            wanted = "left out: its rows belong to those of one log, and there are several"
            raise InvalidInput.must("features or vectors", "Log", wanted, str(row_file))
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
        self._features = self._find_features(features, list(declared))

    @property
    def features(self) -> Columns:
        return self._features.columns

    @property
    def n_features(self) -> int | None:
        """The length of the dense part of a row; ``None`` before the first one, or if there is none."""
        return self._features.n_features

    @property
    def missing(self) -> tuple[str, ...]:
        return self._features.missing

    @property
    def notices(self) -> dict[str, str]:
        return self._features.notices

    def __repr__(self) -> str:
        return f"Log({', '.join(self.names)})"

    @property
    def names(self) -> list[str]:
        """Of its files, without their folders; or what its tables are."""
        return [Path(one.name).name for one in self.sources]

    def _repr_html_(self) -> str:
        from superarm._html import log_html

        return log_html(self)

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
        records, size = list[Record](), 0
        for record in self._read():
            size += ROW_BYTES + int(getattr(record.decision.x, "nbytes", 0))
            if size <= KEPT:
                records.append(record)
            elif records:
                records.clear()
            yield record
        self._kept = records if size <= KEPT else None

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

    def _find_features(self, file: str | PathLike[str] | None, declared: list[Columns]) -> Features:
        """Where the features are; the first source tells for all of them: ids may begin again in each."""
        source = self.sources[0]
        rows, parsed = source.rows(), list[TableRow]()
        self._unread = chain(parsed, rows)  # what is looked at is not parsed again

        def remembered_rows() -> Iterator[TableRow]:
            for row in rows:
                parsed.append(row)
                yield row

        first_rows = list(islice(remembered_rows(), SAMPLE))
        sample = [row for row in first_rows if isinstance(row, dict)]
        if not any(sample):
            if first_rows:
                raise BadRow(f"{at_row(source.name, 0)} must be {first_rows[0]}")
            raise InvalidInput(f"{source.name} has no rows")
        self._check_columns(sample, source.name)
        if file is not None:
            return MatrixFeatures(Path(file))
        all_rows = chain(first_rows, remembered_rows())
        return find_features(sample, all_rows, self.columns, declared, self.separator, self.name)

    def _check_columns(self, sample: list[dict[str, Any]], owner: str) -> None:
        """Refuse a log without the columns that it must have."""
        names, c = list(dict.fromkeys(name for row in sample for name in row)), self.columns
        if set(COLUMNS) <= set(names):  # a log of ours says by which format it was written
            number = parse_number(sample[0]["format"])
            if number != LOG_FORMAT:
                raise InvalidInput.must("format", owner, f"{LOG_FORMAT}, as this superarm reads", number)
        listed = ", ".join(names)
        for name in c.labels:
            if name not in names:
                raise InvalidInput.must("labels column", owner, f"one of {listed}", name, choices=names)
        if c.hit not in names and c.label not in names:
            raise InvalidInput.must("hit column", owner, f"one of {listed}", c.hit, choices=names)
        for name in c.features or ():
            if name not in names:
                raise InvalidInput.must("features columns", owner, f"among {listed}", name, choices=names)

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
                x=self._features.of_row(row, number, where),
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
            row_number=number,
            extra_columns={name: row.get(name) for name in self._also} if self._also else None,
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
        sizes_vary = rule is not None and rule["name"] == "cover"  # it leaves labels of its top set out
        if top is not None and rule is not None and not sizes_vary and len(set(top)) != len(labels):
            raise BadRow.must("top", where, f"{len(labels)} distinct labels, as many as shown", list(top))
        return drawn, None if rule is None else top, rule
