"""Arguments as scikit-learn's users have them: sets, answers and labels, in lists or in data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.cells import is_missing
from superarm.data.tables import is_frame
from superarm.errors import InvalidInput


def shown_sets(shown: Any) -> list[list[Any]]:
    """Return the shown labels of every row; a data frame has a column for each place, or one of lists."""
    if is_frame(shown):
        columns = [shown[name].to_list() for name in shown.columns]
        if len(columns) == 1 and any(np.ndim(cell) for cell in columns[0]):
            return [list(labels) for labels in columns[0]]
        return [[label for label in row if not is_missing(label)] for row in zip(*columns, strict=True)]
    shown = list(shown)
    if any(isinstance(labels, str) for labels in shown):
        text = next(labels for labels in shown if isinstance(labels, str))
        raise InvalidInput.must("shown", "SetFeedbackClassifier", "a list of labels for each row", text)
    return [list(labels) for labels in shown]


def one_column(values: Any) -> list[Any]:
    """Return a value for every row, ``None`` where it is missing; a data frame must have one column."""
    if is_frame(values):
        if len(values.columns) != 1:
            raise InvalidInput.must(
                "frame", "SetFeedbackClassifier", "one with a single column", list(values.columns)
            )
        values = values[values.columns[0]]
    return [None if is_missing(value) else value for value in values]


def class_codes(classes: Array, y: Any, parameter: str) -> Array:
    """Return the numbers of labels among the classes."""
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    known = classes[codes] == y
    if not np.all(known):
        unknown = np.asarray(y)[~known][0]
        raise InvalidInput.must(parameter, "SetFeedbackClassifier", "made of its classes", unknown)
    return np.asarray(codes)
