"""From the message of a request for a decision to a request of the service, or an error that names the field.

Features (or, of a service for a model of your own, ``{"scores": {"login": -0.2, …}}``) come in three forms:

    [0.5, 1, …]                                   numbers
    {"indices": [3, 17], "values": [1.0, 0.5]}    a sparse row
    {"age": 41, "colour": "red", "member": true}  names (superarm/data/columns.py)

The first row of a journal decides whether its rows have names.
"""

from __future__ import annotations

import numpy as np

from superarm._types import JsonObject
from superarm.data.rows import AnyRow, Row
from superarm.errors import Description
from superarm.learners import Learner, Scores
from superarm.service.errors import InvalidRequest
from superarm.service.messages import DecisionRequestBody
from superarm.service.requests import DecisionRequest

MAX_SET_SIZE = 256  # labels of a set, if the service's own sets are not larger: the draw takes its time
MAX_NAMES = 5_000  # named features of a row
SPARSE_KEYS = {"dense", "indices", "values"}  # of a sparse row; dense where rows have both parts


def to_decision_request(request: DecisionRequestBody, learner: Learner) -> DecisionRequest:
    """Return a request for a decision, checked as far as the learner of the service does not check it itself."""
    x = _row_or_scores(request, learner)
    eligible, size = request.eligible, request.set_size
    if eligible is not None:
        _check_eligible(eligible, learner, request.scores)
    if size is not None:
        max_size = min(learner.n_labels, max(MAX_SET_SIZE, learner.set_size))
        if size > max_size:
            raise InvalidRequest.must("set_size", "decision", f"at most {max_size}", size)
    labels = None if eligible is None else tuple(eligible)
    return DecisionRequest(x, request.id, labels, size, request.context, request.coverage)


def _row_or_scores(request: DecisionRequestBody, learner: Learner) -> AnyRow | JsonObject:
    """Return the row, or the scores, whichever this service takes."""
    features, scores = request.features, request.scores
    if features is not None and scores is None:
        if isinstance(learner, Scores):
            raise InvalidRequest.must("features", "decision", "left out: this service takes scores", features)
        return _row(features, learner)
    if scores is None or features is not None:
        raise InvalidRequest.must(
            "features", "request", "given, or scores in its place, and not both", features
        )
    if not isinstance(learner, Scores):
        wanted = "left out: this service takes features (superarm serve --learner scores takes scores)"
        raise InvalidRequest.must("scores", "decision", wanted, scores)
    return scores


def _row(features: list[float] | JsonObject, learner: Learner) -> AnyRow | JsonObject:
    width, columns = learner.n_features, learner.columns
    if isinstance(features, dict) and not _is_sparse(features, learner):
        if len(features) > MAX_NAMES:
            raise InvalidRequest.must("features", "decision", f"at most {MAX_NAMES} names", len(features))
        return features
    if columns is not None and not columns.is_numeric_only:
        raise InvalidRequest.must(
            "features", "decision", "names, as in the first row", Description("numbers")
        )
    if isinstance(features, dict) or isinstance(width, tuple):
        return _sparse_row(features, width)
    if len(features) != (width or len(features) or 1):
        wanted = f"of length {width or 'one or more'}"
        raise InvalidRequest.must("features", "decision", wanted, Description(f"length {len(features)}"))
    return np.array(features, np.float32)


def _is_sparse(features: JsonObject, learner: Learner) -> bool:
    """Return whether an object is a sparse row; a row with names may have columns of vectors called so."""
    if not features.keys() <= SPARSE_KEYS:
        return False
    are_lists = all(type(features.get(name)) is list for name in ("indices", "values"))
    columns = learner.columns
    names = () if columns is None else (*columns.columns, *columns.left_out)
    return are_lists and features.keys().isdisjoint(names)


def _sparse_row(features: list[float] | JsonObject, width: int | tuple[int, int] | None) -> Row:
    """Return a row of indices and values, with a dense part where the service's rows have both."""
    if width is None:
        wanted = "numbers or names: sparse rows need superarm serve --features"
        raise InvalidRequest.must("features", "decision", wanted, Description("indices and values"))
    n_dense, n_sparse = width if isinstance(width, tuple) else (0, width)
    names = ("dense", "indices", "values") if n_dense else ("indices", "values")
    lists = features if isinstance(features, dict) else {}
    are_lists = lists.keys() == set(names) and all(type(part) is list for part in lists.values())
    if not are_lists or len(lists["indices"]) != len(lists["values"]):
        wanted = f"lists {' and '.join(names)}, the last two of one length, and no more"
        raise InvalidRequest.must("features", "decision", wanted, features)
    dense, indices, values = lists.get("dense", []), lists["indices"], lists["values"]
    if len(dense) != n_dense:
        got = Description(f"length {len(dense)}")
        raise InvalidRequest.must("features.dense", "decision", f"of length {n_dense}", got)
    numbers = np.array(indices, np.float64)
    is_invalid = (numbers < 0) | (numbers >= n_sparse) | (numbers != np.floor(numbers))
    if is_invalid.any():
        i = int(is_invalid.argmax())
        wanted, got = f"a whole number in [0, {n_sparse})", Description(f"{indices[i]:g}")
        raise InvalidRequest.must(f"features.indices[{i}]", "decision", wanted, got)
    order = np.argsort(numbers, kind="stable")
    index = numbers[order].astype(np.int32)
    repeated = index[1:][np.diff(index) == 0]
    if repeated.size:
        raise InvalidRequest.must("features.indices", "decision", "distinct", int(repeated[0]))
    return Row.from_parts(np.array(dense, np.float32), index, np.array(values, np.float32)[order], n_sparse)


def _check_eligible(eligible: list[str], learner: Learner, scores: dict[str, float] | None) -> None:
    for i, label in enumerate(eligible):
        if learner.vocabulary.index(label) is None:
            raise InvalidRequest.must(f"eligible[{i}]", "decision", "a known label", label)
        if scores is not None and label not in scores:
            raise InvalidRequest.must("eligible", "decision", "labels that have a score", label)
