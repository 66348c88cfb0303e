"""The user's own data: tables (tables.py), .npz, svmlight/LIBSVM files, and Polars or pandas frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from superarm._extras import require_extra
from superarm._types import Cell, Frame
from superarm.data.column import ColumnKinds
from superarm.data.columns import Columns
from superarm.data.encoding import Warnings
from superarm.data.inference import outcome_columns
from superarm.data.inference_messages import leak_warnings
from superarm.data.labels import Label, parse_label_column
from superarm.data.tables import TABLES, cell_list, columns_of, open_table, read_npz
from superarm.errors import InvalidInput, Unquoted
from superarm.streams.arrays import Arrays

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
SUFFIXES = (".npz", *TABLES, *SVMLIGHT)
LABEL_COLUMNS = ("label", "y", "class", "target")  # tried in this order if no column is named


def read_data(path: Path, *, vectors: Path | None = None, **table_options: Any) -> dict[str, Any]:
    """Return arguments of `Arrays` from a file; options are for tables: see `superarm.streams.open_data`."""
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _table_arrays(open_table(path, vectors=vectors).read(), str(path), **table_options)
    if suffix in SVMLIGHT:
        return _read_svmlight(path)
    if suffix != ".npz":
        wanted = f"a name or a file ending in {', '.join(SUFFIXES)}"
        raise InvalidInput.must("data", "superarm", wanted, str(path))
    content = read_npz(path)
    X = content["X"]
    return content | {"X": X.reshape(len(X), -1) if X.ndim > 2 else X}


def from_frame(
    frame: Frame,
    *,
    label: str | None = None,
    columns: Columns | None = None,
    kinds: ColumnKinds | None = None,
    group: str | None = None,
    name: str = "frame",
    **options: Any,
) -> Arrays:
    """Return a stream over a Polars, pandas or Arrow table; every column but ``label`` may be a feature.

    Args:
        frame: the rows.
        label: the name of the label column.
        columns: what the others are; left out, they are inferred from the first 20,000 rows.
        kinds: what some of them are, as `Columns.infer` takes it: ``{"note": "text", "id": "left out"}``.
        group: a column; `simulate` counts the coverage of each of its values. It stays a feature unless left out.
        name: how the stream is called in tables.
        options: as `Arrays` takes them.

    >>> import polars
    >>> frame = polars.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0], "kind": ["ham", "spam"]})
    >>> from_frame(frame, label="kind").labels
    ('ham', 'spam')
    """
    table = columns_of(frame)[0]
    arrays = _table_arrays(table, name, label=label, columns=columns, kinds=kinds, group=group)
    return Arrays(**arrays, name=name, **options)


def _table_arrays(
    table: dict[str, Any],
    owner: str,
    *,
    label: str | None = None,
    columns: Columns | None = None,
    kinds: ColumnKinds | None = None,
    group: str | None = None,
) -> dict[str, Any]:
    """Return arguments of `Arrays` from the columns of a table; ``kinds`` are for `Columns.infer`."""
    names = list(table)
    for parameter, column in {"label": label, "group": group}.items():
        if column is not None and column not in table:
            wanted = f"one of its columns {', '.join(names)}"
            raise InvalidInput.must(parameter, owner, wanted, column, choices=names)
    if label is None:
        label = next((name for name in LABEL_COLUMNS if name in table), None)
    if label is None:
        wanted = f"the name of the label column (none is called {', '.join(LABEL_COLUMNS)})"
        raise InvalidInput.must("label", owner, wanted, names)
    groups = None if group is None else cell_list(table[group])
    y = _labels(table.pop(label), label, owner)
    if columns is None:
        columns = Columns.infer(table, reserved=outcome_columns(table), kinds=kinds)
        if not len(columns):
            raise InvalidInput.must("columns", owner, "the label and at least one feature", names)
        cells = {name: cell_list(table[name]) for name in columns.names}
        columns.warnings += leak_warnings(columns.kinds, cells, y)
    columns = columns.for_labels(max(len(set(y)), 2))
    warnings: Warnings = {}
    rows = columns.encode_table(table, owner, warnings=warnings)
    columns.warnings += warnings.values()
    return {"X": rows, "y": y, "columns": columns, "groups": groups}


def _labels(cells: Sequence[Cell], label: str, owner: str) -> list[Label]:
    """Return the label of every row; a row without one is refused."""
    labels = parse_label_column(cell_list(cells))
    if None in labels:
        got = Unquoted(f"none in row {labels.index(None) + 1}")
        raise InvalidInput.must(f"column {label!r}", owner, "a label in every row", got)
    return labels


def _read_svmlight(path: Path) -> dict[str, Any]:
    require_extra("sklearn")
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OSError) as error:
        raise InvalidInput.must(
            "content", str(path), "svmlight lines: label index:value ...", error
        ) from error
    return {"X": X, "y": y}
