"""Rows with a dense part, a sparse part, or both: one way in, and the same numbers out."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.data.rows import (
    Layout,
    Rows,
    as_row,
    as_rows,
    conform_row,
    densify,
    row_from_json,
    row_to_json,
    stack,
)
from superarm.errors import InvalidInput

X = np.arange(6, dtype=np.float32).reshape(2, 3)
S = csr_matrix(np.array([[0.0, 5.0, 0.0, 7.0], [1.0, 0.0, 0.0, 0.0]], np.float32))


def matrix(rows: Rows) -> np.ndarray:
    """Rows as one dense matrix: the sparse part after the dense one."""
    sparse = (
        csr_matrix((rows.values, rows.indices, rows.starts), (len(rows), rows.width)) if rows.width else None
    )
    parts = [part for part in (rows.dense, None if sparse is None else sparse.toarray()) if part is not None]
    return np.hstack(parts)


def test_a_row_of_two_parts() -> None:
    row = sa.Row(dense=[1, 2], sparse=([0, 3], [5, 6]), width=4)
    assert row.layout == Layout(2, 4)
    assert (row.layout.kind, row.layout.n_features) == ("mixed", (2, 4))
    assert row == sa.Row([1, 2], csr_matrix(([5.0, 6.0], [0, 3], [0, 2]), (1, 4)))
    assert row != sa.Row([1, 2], ([0, 3], [5, 7]), 4)
    assert densify(row, 6).tolist() == [1, 2, 5, 0, 0, 6]
    assert repr(row) == "Row(dense=[1.0, 2.0], sparse=([0, 3], [5.0, 6.0]), width=4)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"sparse": 3}, "sparse of Row must be a pair"),
        ({"sparse": ([3, 1], [1.0, 2.0])}, "strictly increasing"),
        ({"sparse": ([1], [1.0, 2.0])}, "of one length"),
        ({"sparse": ([5], [1.0]), "width": 4}, r"indices in \[0, 4\)"),
        ({"sparse": ([2**31 + 5], [1.0])}, r"indices in \[0, 2147483648\), got 2147483653"),
        ({"sparse": ([2**31], [1.0]), "width": 2**40}, r"indices in \[0, 2147483648\), got 2147483648"),
        ({"sparse": ([2**70], [1.0])}, "a pair of index and value vectors"),
        ({"dense": "abc"}, "x of Row must be numbers"),
        ({"dense": np.ones((2, 2))}, "a row of numbers"),
    ],
)
def test_wrong_parts_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sa.Row(**parts)


def test_a_matrix_with_indices_beyond_int32_is_refused() -> None:
    wide = csr_matrix(([1.0], [2**31 + 5], [0, 1]), (1, 2**32))
    for given in (wide, (np.ones((1, 2)), wide)):
        with pytest.raises(InvalidInput, match=r"X of this must be sparse with indices in \[0, 2147483648\)"):
            as_rows(given, None, "this")


@pytest.mark.parametrize("given", [X, S, (X, S)], ids=["dense", "sparse", "mixed"])
def test_matrices_rows_and_back(given: Any) -> None:
    rows = as_rows(given, None, "this")
    assert len(rows) == 2
    again = stack([rows.row(i) for i in range(2)], rows.layout)
    stored = pickle.loads(pickle.dumps(rows))
    for other in (again, rows.copy(), rows.take([0, 1]), stored, copy.deepcopy(rows)):
        assert other.layout == rows.layout
        assert np.array_equal(matrix(other), matrix(rows))
    assert np.array_equal(matrix(rows.take([1])), matrix(rows)[1:])
    for i in range(2):
        row = rows.row(i)
        back = row_from_json(json.loads(json.dumps(row_to_json(row))))
        assert densify(back, 7).tolist() == densify(row, 7).tolist() if isinstance(row, sa.Row) else True
        assert np.array_equal(densify(row, rows.d + rows.width), matrix(rows)[i])


def test_either_part_of_a_mixed_row_may_be_empty() -> None:
    layout = Layout(3, 4)
    only_dense = conform_row(as_row([1, 2, 3], (3, 4), "this"), layout, "this")
    only_sparse = conform_row(as_row(([2], [1.0]), (3, 4), "this"), layout, "this")
    assert densify(only_dense, 7).tolist() == [1, 2, 3, 0, 0, 0, 0]
    assert densify(only_sparse, 7).tolist() == [0, 0, 0, 0, 0, 1, 0]
    learner = sa.Perceptron(n_labels=3, n_features=(3, 4))
    for x in ([1, 2, 3], ([2], [1.0]), sa.Row([1, 2, 3]), sa.Row(None, ([1], [2.0])), S[0]):
        learner.update(learner.decide(x), label=1)
    assert learner.inputs.layout == layout


def test_a_learner_keeps_to_its_layout() -> None:
    mixed = sa.Perceptron(n_labels=3)
    mixed.decide(sa.Row([1, 2], ([0], [1.0]), 4))
    assert mixed.n_features == (2, 4)
    for wrong in (np.ones(3), ([4], [1.0]), sa.Row([1], ([0], [1.0])), sa.Row([1, 2], ([9], [1.0]))):
        with pytest.raises(InvalidInput, match="x of Perceptron must be"):
            mixed.decide(wrong)
    for wrong_rows in (np.ones((1, 2)), S, (X, S)):
        with pytest.raises(InvalidInput, match="X of Perceptron must be"):
            mixed.scores(wrong_rows)
    dense = sa.Perceptron(n_labels=3, n_features=3)
    dense.decide([1, 2, 3])
    with pytest.raises(InvalidInput, match="x of Perceptron must be 3 numbers of one kind"):
        dense.decide(sa.Row([1, 2], ([0], [1.0])))
    with pytest.raises(InvalidInput, match="X of Perceptron must be dense, as its first row was"):
        dense.scores(csr_matrix(np.ones((1, 3))))
    assert dense.decide(([1], [2.0])).x.tolist() == [0, 2, 0]
    with pytest.raises(InvalidInput, match="n_features of Perceptron must be a whole number"):
        sa.Perceptron(n_labels=3, n_features=(3, 0))


def test_a_pair_of_matrices_has_as_many_rows() -> None:
    with pytest.raises(InvalidInput, match="a pair of matrices with as many rows, got 1 and 2 rows"):
        as_rows((X[:1], S), None, "this")
    wanted = "a pair of a dense matrix with 3 columns and a sparse one with 5"
    for given, shape in (((X, S), "(2, 3) and (2, 4)"), (X, "(2, 3)"), (S, "(2, 4)")):
        with pytest.raises(InvalidInput, match=re.escape(f"{wanted}, got shape {shape}")):
            as_rows(given, (3, 5), "this")
    with pytest.raises(InvalidInput, match=r"a matrix with 3 columns, got shape \(2, 3\) and \(2, 4\)"):
        as_rows((X, S), 3, "this")


def test_compiled_code_takes_only_what_it_can_read() -> None:
    with pytest.raises(TypeError, match="float32 matrix"):
        Rows(np.ones((2, 2)))


def test_rows_without_a_width_are_as_wide_as_the_widest():
    learner = sa.SetLogit(n_labels=3, seed=0)
    decisions = learner.decide_many([sa.Row(sparse=([1], [1.0])), sa.Row(sparse=([5], [1.0]))])
    assert (len(decisions), learner.n_features) == (2, 6)
    assert len(learner.decide_many([sa.Row(sparse=([0], [1.0]))])) == 1  # of the learner's width from then on


@pytest.mark.parametrize("X", [["card lost", "no"], {"text": "card"}, iter([{"a": 1}]), None, []])
def test_what_rows_may_be_is_said(X):
    learner = sa.SetLogit(n_labels=3)
    for method in (learner.decide_many, learner.predict):
        with pytest.raises(
            InvalidInput, match=r"X of SetLogit must be .*, or a data frame or a list of dicts, got"
        ):
            method(X)
    with pytest.raises(
        InvalidInput, match="x of SetLogit must be a row of numbers, or a dict with names, got None"
    ):
        learner.decide(None)
    learner.decide([1.0, 2.0])
    with pytest.raises(InvalidInput, match="dense or SciPy sparse, got 'a'"):
        learner.predict("a")
