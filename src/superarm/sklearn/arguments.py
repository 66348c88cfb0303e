"""Arguments as scikit-learn's users have them: sets, answers and labels, in lists or in data frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from superarm._types import Array
from superarm.data.cells import is_missing
from superarm.data.tables import is_frame
from superarm.errors import InvalidInput, Unquoted, at_row

OWNER = "SetFeedbackClassifier"
PASS_SHOWN = "pass shown= (sklearn.set_config(enable_metadata_routing=True), set_score_request(shown=True))"


def shown_sets(shown: Any) -> list[list[Any]]:
    """Return the shown labels of every row; a data frame has a column for each place, or one of lists."""
    rows: Iterable[Any] = shown
    if is_frame(shown):
        columns = [shown[name].to_list() for name in shown.columns]
        of_lists = len(columns) == 1 and any(np.ndim(cell) for cell in columns[0])
        rows = columns[0] if of_lists else zip(*columns, strict=True)
    return [_labels(labels, number) for number, labels in enumerate(rows)]


def _labels(labels: Any, number: int) -> list[Any]:
    """Return the labels of a set without missing ones; none of a row that has no set."""
    if isinstance(labels, str) or not (isinstance(labels, Iterable) or is_missing(labels)):
        raise InvalidInput.must("shown", at_row(OWNER, number), "a list of labels", labels)
    return [label for label in labels if not is_missing(label)] if isinstance(labels, Iterable) else []


def answered_sets(
    classes: Array, sets: Sequence[Sequence[Any]], hit: Any, propensity: Any, n_rows: int
) -> tuple[list[int], list[Array], list[Any], list[Any]]:
    """Return the rows that have an answer, the indices of their labels, the answers, and the propensities if known."""
    hits = one_column(hit)
    propensities = [None] * n_rows if propensity is None else one_column(propensity)
    for name, values in {"shown": sets, "y": hits, "propensity": propensities}.items():
        if len(values) != n_rows:
            got = Unquoted(f"{len(values)} for {n_rows} rows")
            raise InvalidInput.must(name, OWNER, "one for each row of X", got)
    answered = [i for i, hit in enumerate(hits) if hit is not None]
    indices = []
    for i in answered:
        labels = sets[i]
        if not len(labels) or len(set(labels)) != len(labels):
            wanted = "distinct labels, at least one where there is an answer"
            raise InvalidInput.must("shown", at_row(OWNER, i), wanted, list(labels))
        indices.append(class_indices(classes, np.asarray(labels), "shown"))
    return answered, indices, [hits[i] for i in answered], [propensities[i] for i in answered]


def one_column(values: Any) -> list[Any]:
    """Return a value for every row, ``None`` where it is missing; a data frame must have one column."""
    if is_frame(values):
        if len(values.columns) != 1:
            raise InvalidInput.must("frame", OWNER, "one with a single column", list(values.columns))
        values = values[values.columns[0]]
    return [None if is_missing(value) else value for value in values]


def class_indices(classes: Array, y: Any, parameter: str) -> Array:
    """Return the indices of labels among the classes."""
    indices = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    known = classes[indices] == y
    if not np.all(known):
        unknown = np.asarray(y)[~known][0]
        raise InvalidInput.must(parameter, OWNER, "made of its classes", unknown)
    return np.asarray(indices)


def checked_labels(y: Any, X: Any) -> Array:
    """Return the labels of rows X as an array, checked by scikit-learn."""
    check_no_gaps(y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    check_consistent_length(X, y)
    return np.asarray(y)


def check_no_gaps(y: Any) -> None:
    """Refuse labels of which one is missing: beside words, NumPy makes a word of NaN."""
    cells: Any = [] if y is None else np.ravel(np.asarray(y, object))  # scikit-learn refuses None itself
    missing = next((i for i, cell in enumerate(cells) if is_missing(cell)), None)
    if missing is not None:
        got = Unquoted(f"none in row {missing + 1}")
        raise InvalidInput.must("y", OWNER, "a label in every row (leave out rows without one)", got)


def check_not_answers(classes: Array, y: Any, *, fitted_with_shown: bool) -> None:
    """Refuse answers y where a classifier with these classes is to be judged by labels; warn if y may be answers."""
    values = set(one_column(y)) - {None}
    bits = all(isinstance(value, bool | np.bool_) for value in values)
    if bits and values and classes.dtype != bool:
        raise InvalidInput(f"y are answers: {PASS_SHOWN}")
    if fitted_with_shown and values == {0, 1} < set(classes.tolist()):
        warnings.warn(f"y are 0 and 1, scored as labels; if they are answers, {PASS_SHOWN}", stacklevel=3)
