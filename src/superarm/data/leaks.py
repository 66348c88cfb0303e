"""Columns that may say the answer: their words are the names of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from superarm.data.cells import is_missing
from superarm.data.column import WORDS
from superarm.data.columns import Columns
from superarm.data.inference import ENOUGH_ROWS, MAJORITY
from superarm.data.labels import Label

MIN_NAMES = 2  # of labels in a column, which may be one by chance


def leak_warnings(columns: Columns, cells: Mapping[str, Iterable[Any]], labels: Iterable[Label]) -> list[str]:
    """Return a sentence for each feature whose words are nearly all names of labels.

    Args:
        columns: the features.
        cells: cells of each column, by its name.
        labels: the labels that are known.
    """
    names, warnings = {str(label) for label in labels}, []
    for column in columns.columns.values():
        if column.kind != WORDS:
            continue
        words = [str(cell).strip() for cell in cells.get(column.name, ()) if not is_missing(cell)]
        label_names = [word for word in words if word in names]
        if (
            len(words) >= ENOUGH_ROWS
            and len(label_names) >= MAJORITY * len(words)
            and len(set(label_names)) >= MIN_NAMES
        ):
            warnings.append(
                f"column {column.name} holds names of labels: does it say the answer? --leave-out {column.name}"
            )
    return warnings
