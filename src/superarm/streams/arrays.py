"""Rows and labels in memory, visited in a new random order on every pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.cells import to_python
from superarm.data.columns import Columns
from superarm.data.labels import Label, LabelVocabulary, to_label
from superarm.data.rows import as_rows
from superarm.data.tables import cell_list
from superarm.errors import Description, InvalidInput
from superarm.groups import Groups
from superarm.streams.stream import Chunk


class Arrays:
    """A stream over a matrix X (dense, SciPy sparse, or a pair of both) and labels y.

    Args:
        X: one row per example.
        y: its label: a whole number, or a string.
        labels: the names of all labels; y then holds names, or numbers 0..k-1 of them.
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
        self.y, named_labels = _numbered(y, labels)
        self.labels, self.n_labels = named_labels.names, named_labels.count
        if len(self.y) != len(rows) or len(self.y) == 0:
            raise InvalidInput.must("y", "Arrays", f"{len(rows)} labels, at least one", len(self.y))
        self.shuffle, self.name, self.columns = shuffle, name, columns
        self.groups = None if groups is None else Groups.from_values(groups, "Arrays")
        if self.groups is not None and len(self.groups.numbers) != len(self.y):
            wanted = f"{len(self.y)} values, one for each row"
            raise InvalidInput.must("groups", "Arrays", wanted, len(self.groups.numbers))

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


def _numbered(y: Any, labels: Sequence[Label] | None) -> tuple[Array, LabelVocabulary]:
    """Return the label number of each row, and the labels behind the numbers."""
    cells = cell_list(y)
    label_of = _labels_by_cell(cells, np.shape(y))
    are_numbers = all(isinstance(label, int) for label in label_of.values())
    if labels is None:
        if not are_numbers:
            label_of = {cell: str(label) for cell, label in label_of.items()}
        labels = sorted(set(label_of.values()))
        if are_numbers and labels and labels[0] == 0 and labels[-1] < max(2 * len(labels), 2):
            return np.array([label_of[cell] for cell in cells]), LabelVocabulary(max(labels[-1] + 1, 2))
    names = [to_python(name) for name in labels]
    if len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput.must("labels", "Arrays", "distinct and at least two", names)
    named_labels = LabelVocabulary(names, "Arrays")
    number_of = {cell: named_labels.index(label) for cell, label in label_of.items()}
    if None in number_of.values() and are_numbers:  # y has numbers of labels
        number_of = {cell: label if 0 <= label < len(names) else None for cell, label in label_of.items()}
    unknown = next((label_of[cell] for cell, number in number_of.items() if number is None), None)
    if unknown is not None:
        raise InvalidInput.must("y", "Arrays", "made of the given labels", unknown)
    return np.array([number_of[cell] for cell in cells], np.int64), named_labels


def _labels_by_cell(cells: list[Any], shape: tuple[int, ...]) -> dict[Any, Label]:
    """Return the label of each different cell of y; lists and missing labels are refused."""
    if any(isinstance(cell, list | tuple | set | dict | np.ndarray) for cell in cells):
        raise InvalidInput.must("y", "Arrays", "one label for each row", Description(f"shape {shape}"))
    label_of = {cell: to_label(cell) for cell in cells}
    missing = next((i for i, cell in enumerate(cells) if label_of[cell] is None), None)
    if missing is not None:
        got = Description(f"none in row {missing + 1}")
        raise InvalidInput.must("y", "Arrays", "a label in every row", got)
    return label_of
