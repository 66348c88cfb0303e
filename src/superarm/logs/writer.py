"""Writing decision logs: Parquet, JSON lines or CSV, by the file's ending, a batch at a time."""

from __future__ import annotations

import json
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from superarm._extras import require_extra
from superarm._types import JsonObject
from superarm.data.labels import Label
from superarm.data.table_writer import WriteRows, check_table_path, table_writer
from superarm.decisions.decision import Decision
from superarm.decisions.logged_decision import COLUMNS, LoggedDecision
from superarm.errors import InvalidInput, Unquoted

if TYPE_CHECKING:
    import polars

BATCH = 8192


class Writer:
    """A decision log being written in a ``with`` block; it appears under its name at the end, when it is whole.

    Args:
        path: a .parquet, .jsonl, .csv or .tsv file.

    >>> import tempfile, superarm as sa
    >>> file = tempfile.mkdtemp() + "/log.jsonl"
    >>> learner = sa.MCDBF(n_labels=5, n_features=2, set_size=2, gamma=0.2)
    >>> with Writer(file) as log:
    ...     log.add(learner.decide([1.0, 0.5]), hit=True)
    >>> from superarm.logs import Log
    >>> [(record.decision.labels, record.hit) for record in Log(file)]
    [([0, 4], True)]
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        check_table_path(path, "Writer")
        self.path = Path(path)
        self.rows = 0
        self._pending: list[JsonObject] = []
        self._file = ExitStack()
        self._write_rows: WriteRows | None = None

    def add(
        self,
        decision: Decision | LoggedDecision,
        *,
        hit: bool | None = None,
        label: Label | None = None,
        **details: Any,
    ) -> None:
        """Append a decision with its answer, or a whole `LoggedDecision`.

        Args:
            decision: what `decide` gave.
            hit: whether the right label was among the shown ones.
            label: the right label, where the world names it.
            details: id, time, context.
        """
        if self._write_rows is None:  # nothing would ever write what is pending
            wanted = "in the block of a with statement, at whose end the file is written"
            raise InvalidInput.must("add", "Writer", wanted, Unquoted(f"{self.path} outside of it"))
        if isinstance(decision, Decision):
            decision = LoggedDecision.from_decision(decision, hit=hit, label=label, **details)
        self._pending.append(decision.to_dict())
        self.rows += 1
        if len(self._pending) >= BATCH:
            self._flush(self._write_rows)

    def __enter__(self) -> Writer:
        self._write_rows = self._file.enter_context(table_writer(self.path, list(COLUMNS), _frame))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        write_rows, self._write_rows = self._write_rows, None
        if kind is not None:
            self._file.__exit__(kind, error, trace)
            return
        with self._file:
            if write_rows is not None and (self._pending or not self.rows):  # an empty log is a file, too
                self._flush(write_rows)

    def _flush(self, write_rows: WriteRows) -> None:
        rows, self._pending = self._pending, []
        write_rows(rows)


def _frame(rows: list[JsonObject]) -> polars.DataFrame:
    require_extra("logs")
    import polars as pl

    whole_labels_only = all(
        type(label) is int
        for row in rows
        for label in [*row["labels"], *([] if row["label"] is None else [row["label"]])]
    )
    label: Any = pl.Int64 if whole_labels_only else pl.String
    time: Any = pl.String if any(isinstance(row["time"], str) for row in rows) else pl.Float64
    lists = ("labels", "drawn", "top", "eligible")
    named_rows = any(isinstance(row["x"], dict) for row in rows)
    types: dict[str, Any] = {
        "format": pl.Int32,
        "time": time,
        "x": pl.String if named_rows else pl.List(pl.Float32),
        "x_indices": pl.List(pl.Int32),
        "x_values": pl.List(pl.Float32),
        "set_size": pl.Int32,
        "gamma": pl.Float64,
        "propensity": pl.Float64,
        "ordered_propensity": pl.Float64,
        "hit": pl.Boolean,
        "label": label,
    }
    types |= dict.fromkeys(lists, pl.List(label))
    for row in rows:
        row["rule"] = None if row["rule"] is None else json.dumps(row["rule"])
        if named_rows:  # as JSON: each row has names of its own
            row["x"] = None if row["x"] is None else json.dumps(row["x"], ensure_ascii=False)
        if not whole_labels_only:
            for name in lists:
                row[name] = None if row[name] is None else [str(value) for value in row[name]]
            row["label"] = None if row["label"] is None else str(row["label"])
    schema = {name: types.get(name, pl.String) for name in COLUMNS}
    return pl.DataFrame(rows, schema=schema)
