"""Rows and labels in memory, visited in a new random order on every pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.cells import to_python
from superarm.data.columns import Columns
from superarm.data.labels import Label, LabelVocabulary, check_ordered, to_label
from superarm.data.rows import as_rows
from superarm.data.tables import cell_list
from superarm.errors import InvalidInput, Unquoted
from superarm.groups import Groups
from superarm.streams.stream import Chunk


class Arrays:
    """A stream over a matrix X (dense, SciPy sparse, or a pair of both) and labels y.

    Args:
        X: one row per example.
        y: its label: a whole number, or a string.
        labels: the names of all labels; y then holds names, or their indices.
        shuffle: a new random order on every pass; False keeps the order of X.
        name: how it is called in tables.
        columns: what X was made by, if it was a table.
        groups: a value for each row; `simulate` counts the coverage of each.

    >>> stream = Arrays([[3.0, 4.0], [0.0, 2.0]], ["ham", "spam"])
    >>> stream.labels, stream.rows.dense.tolist()
    (('ham', 'spam'), [[3.0, 4.0], [0.0, 2.0]])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        labels: Sequence[Label] | None = None,
        shuffle: bool = True,
        name: str = "arrays",
        columns: Columns | None = None,
        groups: Iterable[Any] | None = None,
    ) -> None:
        rows = as_rows(X, None, "Arrays")
        self.n_features = rows.layout.n_features
        for values in (rows.dense, rows.values):
            if values is not None and not np.isfinite(values).all():
                raise InvalidInput.must("X", "Arrays", "finite", values[~np.isfinite(values)][0].item())
        self.rows = rows
        self.y, vocabulary = _encode_labels(y, labels)
        self.labels = vocabulary.names
        self.n_labels = vocabulary.count
        if len(self.y) != len(rows) or len(self.y) == 0:
            raise InvalidInput.must("y", "Arrays", f"{len(rows)} labels, at least one", len(self.y))
        self.shuffle = shuffle
        self.name = name
        self.columns = columns
        self.groups = None if groups is None else Groups.from_values(groups)
        if self.groups is not None and len(self.groups.indices) != len(self.y):
            wanted = f"{len(self.y)} values, one for each row"
            raise InvalidInput.must("groups", "Arrays", wanted, len(self.groups.indices))

    def __repr__(self) -> str:
        return (
            f"Arrays({self.name}: {len(self.y):,} rows of {self.n_features} features, {self.n_labels} labels)"
        )

    def chunks(self, seed: int) -> Iterator[Chunk]:
        """Yield the rows again and again, in an order that ``seed`` decides."""
        for epoch in itertools.count():
            order = np.arange(len(self.y))
            if self.shuffle:
                np.random.default_rng([seed, epoch]).shuffle(order)
            yield Chunk(self.rows, self.y, order)


def _encode_labels(y: Any, names: Sequence[Label] | None) -> tuple[Array, LabelVocabulary]:
    """Return the index of each row's label, and the labels; ``names`` are all of them, if they are known."""
    check_ordered(names, "Arrays")
    cells = cell_list(y)
    if any(isinstance(cell, list | tuple | set | dict | np.ndarray) for cell in cells):
        got = Unquoted(f"shape {np.shape(y)}")
        raise InvalidInput.must("y", "Arrays", "one label for each row", got)
    labels: list[Any] = [to_label(cell) for cell in cells]
    if None in labels:
        got = Unquoted(f"none in row {labels.index(None) + 1}")
        raise InvalidInput.must("y", "Arrays", "a label in every row", got)
    are_numbers = all(isinstance(label, int) for label in labels)
    if names is None:
        if not are_numbers:
            labels = [str(label) for label in labels]
        names = sorted(set(labels))
        has_few_gaps = are_numbers and names[:1] == [0] and names[-1] < max(2 * len(names), 2)
        if has_few_gaps:  # labels are their own indices
            return np.array(labels), LabelVocabulary(max(names[-1] + 1, 2))
    names = [to_python(name) for name in names]
    if len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput.must("labels", "Arrays", "distinct and at least two", names)
    vocabulary = LabelVocabulary(names, "Arrays")
    index_of = {label: vocabulary.index(label) for label in labels}
    if are_numbers and None in index_of.values():  # y has indices of the names
        index_of = {label: label if 0 <= label < len(names) else None for label in index_of}
    unknown = next((label for label, index in index_of.items() if index is None), None)
    if unknown is not None:
        raise InvalidInput.must("y", "Arrays", "made of the given labels", unknown)
    return np.array([index_of[label] for label in labels], np.int64), vocabulary
