"""Which columns of a log hold what; and its features: in x without names, or in columns with names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from superarm._types import Array, Cell
from superarm.data.column import ColumnKinds
from superarm.data.columns import Columns
from superarm.data.inference import outcome_columns
from superarm.data.rows import NO_VALUES, AnyRow, Row
from superarm.decisions.logged_decision import COLUMNS
from superarm.errors import InvalidInput, Unquoted
from superarm.logs.parsing import BadRow, LogRow, parse_numbers, parse_object


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Which columns of a log hold what; the defaults are superarm's own names, others must be there.

    Attributes:
        labels: one column with the whole set, or one column for each label of the slate.
        hit: whether the right label was among the shown ones.
        label: the right label, where it is known.
        propensity: how probable the set was; ``None`` if the log does not say.
        eligible: the labels that could be shown.
        features: columns of numbers, words, text, dates, some of them missing; ``None`` takes ``x``, or
            ``x_indices`` and ``x_values``, or else every other column that is no id, index, constant, time of
            the row, or only known afterwards.
        kinds: what some columns are, whatever they look like, as `superarm.Columns.infer` takes it:
            ``{"note": "text", "id": "left out"}``.
    """

    labels: tuple[str, ...] = ("labels",)
    hit: str = "hit"
    label: str = "label"
    propensity: str | None = "propensity"
    eligible: str = "eligible"
    features: tuple[str, ...] | None = None
    kinds: ColumnKinds = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: Any = self.labels
        object.__setattr__(self, "labels", (given,) if isinstance(given, str) else tuple(given))

    @property
    def renamed(self) -> dict[str, str]:
        """The columns that have other names than the default, by what they hold."""
        defaults = {one.name: one.default for one in fields(LogColumns)}
        names = {part: getattr(self, part) for part in ("hit", "label", "propensity", "eligible")}
        return {part: name for part, name in names.items() if name not in (None, defaults[part])}

    @property
    def reserved(self) -> dict[str, str]:
        """Columns that are no features, and why; those of superarm's own format need no reason."""
        return {
            **dict.fromkeys(COLUMNS, ""),
            "id": "an id",
            "time": "time",
            "context": "the context of a decision, which is no feature",
            self.hit: "the outcome",
            self.label: "the outcome",
            **dict.fromkeys(self.labels, "the set"),
            self.eligible: "what could be shown",
            **({} if self.propensity is None else {self.propensity: "how probable the set was"}),
        }


class UnnamedFeatures:
    """Reads numbers without names: dense ones in x, sparse ones in x_indices and x_values."""

    def __init__(self, separator: str | None) -> None:
        self.columns = Columns()  # none has a name
        self.column_warnings: dict[str, str] = {}
        self._separator = separator
        self._n_dense: int | None = None  # as the first row has

    def extract(self, row: LogRow, where: str) -> AnyRow:
        """Return the features of a row of a log; ``where`` it stands, for messages."""
        dense = NO_VALUES
        if row.get("x") is not None:
            dense = self._numbers(row, "x", where)
            self._n_dense = self._n_dense or len(dense)
            if len(dense) != self._n_dense or not len(dense):
                wanted = f"{self._n_dense} numbers, as in the rows before"
                raise BadRow.must("x", where, wanted, len(dense))
            dense = np.ascontiguousarray(dense, np.float32)
            if row.get("x_indices") is None:
                return dense
        index = parse_numbers(row.get("x_indices"), "x_indices", where, self._separator)
        values = self._numbers(row, "x_values", where)
        indices = index.astype(np.int64)
        increasing = (indices == index).all() and (np.diff(indices, prepend=-1) > 0).all()
        if len(values) != len(index) or not increasing:
            wanted = "increasing whole numbers, one for each of x_values"
            raise BadRow.must("x_indices", where, wanted, row.get("x_indices"))
        width = row.get("x_width") or (int(indices[-1]) + 1 if len(indices) else 1)
        return Row.from_parts(dense, indices.astype(np.int32), values.astype(np.float32), width)

    def _numbers(self, row: LogRow, name: str, where: str) -> Array:
        numbers = parse_numbers(row.get(name), name, where, self._separator)
        if not np.isfinite(numbers).all():
            raise BadRow.must(name, where, "finite numbers", float(numbers[~np.isfinite(numbers)][0]))
        return numbers


@dataclass(frozen=True, slots=True)
class NamedFeatures:
    """Reads columns with names.

    Attributes:
        columns: what they are.
        in_x: they are in x, by name; else they are the log's own columns.
        raw: leave the values as they are: several models read them, each in its own way.
        column_warnings: what is not as declared: a sentence for each column.
    """

    columns: Columns
    in_x: bool
    raw: bool = False
    column_warnings: dict[str, str] = field(default_factory=dict)

    def extract(self, row: LogRow, where: str) -> AnyRow | dict[str, Cell]:
        """Return the features of a row of a log; ``where`` it stands, for messages."""
        declared = self.columns.columns
        cells = (parse_object(row.get("x")) or {}) if self.in_x else row
        if self.raw:
            return dict(cells) if self.in_x else {name: cells.get(name) for name in declared}
        try:
            if not self.columns.is_numeric_only:
                return self.columns.parse_row(cells, where)
            if self.in_x:
                return self.columns.encode_row(cells, where)
            # columns of the log's format need no warning
            cells = {name: value for name, value in cells.items() if name in declared or name not in COLUMNS}
            return self.columns.encode_row(cells, where, warnings=self.column_warnings)
        except InvalidInput as error:
            raise BadRow(str(error)) from error


def find_features(
    sample: Sequence[LogRow],
    rows: Iterable[LogRow],
    *,
    columns: LogColumns,
    reserved: Mapping[str, str],
    declared: Sequence[Columns],
    separator: str | None,
    owner: str,
) -> NamedFeatures | UnnamedFeatures:
    """Find the features of a log by its first rows.

    Args:
        sample: a few rows.
        rows: more of them, from the start, to tell what columns are.
        columns: which columns of the log hold what.
        reserved: columns that are no features, and why.
        declared: the columns of models, taken if the log has them.
        separator: of numbers in one cell.
        owner: the name of the log.
    """
    names = column_names = _distinct(name for row in sample for name in row)
    declared_names = _distinct(name for one in declared for name in one.names)
    in_columns = columns.features is not None or not set(declared_names).isdisjoint(names)
    in_x = not in_columns and any(parse_object(row.get("x")) is not None for row in sample)
    if in_x:
        names = _distinct(name for row in sample for name in parse_object(row.get("x")) or ())
    elif not in_columns and not {"x", "x_indices"}.isdisjoint(names):
        return UnnamedFeatures(separator)
    by_models = columns.features is None and bool(declared) and (in_columns or in_x)
    if by_models and all(one == declared[0] and not one.is_open for one in declared):
        return NamedFeatures(declared[0].copy(), in_x=in_x)
    present = [name for name in declared_names if name in names]
    if in_x:  # x was known at the decision, so no name in it is reserved
        only = None if by_models else present or None
        features = Columns.infer(
            ((parse_object(row.get("x")) or {}) for row in rows), only=only, kinds=columns.kinds
        )
    else:
        only = present or None if columns.features is None else list(columns.features)
        features = Columns.infer(
            rows, reserved=outcome_columns(names) | dict(reserved), only=only, kinds=columns.kinds
        )
    lists = [name for name in columns.features or () if name not in features.columns]
    if not len(features) or lists:
        wanted = "an x column, columns of numbers or words, or a file of their own"
        left_out = ", ".join(f"{name} ({why})" for name, why in features.left_out.items())
        got = f"lists in {lists[0]}" if lists else left_out or ", ".join(column_names)
        raise InvalidInput.must("features", owner, wanted, Unquoted(got))
    return NamedFeatures(features, in_x=in_x, raw=by_models)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
