"""The user's own data: tables (tables.py), .npz, svmlight/LIBSVM files, and Polars or pandas frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.tables import TABLES, read_table, sparse_matrix
from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.storage import UNREADABLE
from superarm.streams.arrays import Arrays

__all__ = ["SUFFIXES", "from_frame", "read_data"]

SUFFIXES = (".npz", *TABLES, ".svm", ".svmlight", ".libsvm")
LABEL_COLUMNS = ("label", "y", "class", "target")  # tried in this order if no column is named


def read_data(path: Path, label: str | None = None) -> dict[str, Any]:
    """X, y and label names (what `Arrays` takes) from a file; ``label`` names a table's label column."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput.must(
            "data", "superarm", f"a name or a file ending in {', '.join(SUFFIXES)}", str(path)
        )
    if suffix in TABLES:
        return _table(read_table(path), label, str(path))
    if label is not None:
        raise InvalidInput.must("label", str(path), "left out: only tables have columns", label)
    return _read_npz(path) if suffix == ".npz" else _read_svmlight(path)


def from_frame(frame: Any, *, label: str | None = None, name: str = "frame", **options: Any) -> Arrays:
    """A stream over a Polars or pandas frame; every column but ``label`` is a feature.

    Args:
        frame: the rows.
        label: the name of the label column.
        name: how the stream is called in tables.
        options: as `Arrays` takes them.

    >>> import polars
    >>> frame = polars.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0], "kind": ["ham", "spam"]})
    >>> from_frame(frame, label="kind").labels
    ('ham', 'spam')
    """
    return Arrays(**_table(frame, label, name), name=name, **options)


def _table(frame: Any, label: str | None, of: str) -> dict[str, Any]:
    columns = [str(c) for c in frame.columns]
    if label is None:
        found = [c for c in LABEL_COLUMNS if c in columns]
        if not found:
            wanted = f"the name of the label column (none is called {', '.join(LABEL_COLUMNS)})"
            raise InvalidInput.must("label", of, wanted, columns)
        label = found[0]
    elif label not in columns:
        wanted = f"one of its columns {', '.join(columns)}"
        raise InvalidInput.must("label", of, wanted, label, among=columns)
    features = [c for c in frame.columns if str(c) != label]
    if not features:
        raise InvalidInput.must("columns", of, "the label and at least one feature", columns)
    X = np.empty((len(frame), len(features)), np.float32)
    for i, column in enumerate(features):
        values = np.asarray(frame[column].to_numpy())
        if values.dtype.kind not in "biuf":
            raise InvalidInput.must(f"column {column!r}", of, "made of numbers", values[:1].tolist())
        X[:, i] = values
        if not np.isfinite(X[:, i]).all():
            row = int(np.flatnonzero(~np.isfinite(X[:, i]))[0])
            raise InvalidInput.must(
                f"column {column!r}", of, "finite and without gaps", f"none in row {row + 1}"
            )
    y = frame[label].to_numpy()
    gaps = [i for i, v in enumerate(y.tolist()) if v is None or v != v]
    if gaps:
        raise InvalidInput.must(f"column {label!r}", of, "a label in every row", f"none in row {gaps[0] + 1}")
    return {"X": X, "y": y if y.dtype.kind in "iuf" else y.astype(str)}


def _read_svmlight(path: Path) -> dict[str, Any]:
    need("sklearn")
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OSError) as error:
        raise InvalidInput.must(
            "content", str(path), "svmlight lines: label index:value ...", str(error)
        ) from error
    return {"X": X, "y": y}


def _read_npz(path: Path) -> dict[str, Any]:
    """X, y and label names from an .npz: X and y; or CSR parts; or images x_train and y_train."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            keys = set(file.files)
            names = file["classes"].tolist() if "classes" in keys else None
            if {"X", "y"} <= keys:
                return {"X": file["X"], "y": file["y"], "labels": names}
            if {"X_data", "X_indices", "X_indptr", "X_shape", "y"} <= keys:
                return {"X": sparse_matrix(file), "y": file["y"], "labels": names}
            if {"x_train", "y_train"} <= keys:
                images = file["x_train"]
                return {"X": images.reshape(len(images), -1), "y": file["y_train"], "labels": names}
    except UNREADABLE as error:
        raise InvalidInput.must("content", str(path), "an .npz with X and y", str(error)) from error
    wanted = "X and y, or X_data, X_indices, X_indptr, X_shape and y, or x_train and y_train"
    raise InvalidInput.must("keys", str(path), wanted, sorted(keys))
