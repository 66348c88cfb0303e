"""The ONNX graph of a learner, run by onnxruntime: the same scores to 1e-5, also where a row is far out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput

pytest.importorskip("onnx", reason="onnx (extra onnx) is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime (extra dev) is not installed")

K, D = 5, 8


def rows(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """Columns of all kinds of units, and labels that are no linear function of them."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(n, d))
    y = (np.sin(2.0 * z) @ np.random.default_rng(9).normal(size=(d, K))).argmax(axis=1)
    units = np.random.default_rng(8)
    X = z * 10.0 ** units.uniform(-2, 3, d) + units.normal(size=d)
    return X.astype(np.float32), y


def run(learner: Any, X: Any, tmp_path: Path) -> tuple[Any, Any, Any]:
    path = tmp_path / "model.onnx"
    learner.to_onnx(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["label", "probabilities", "scores"]
    label, p, s = session.run(None, {"X": X})
    return label, p, s


def same(learner: Any, X: Any, tmp_path: Path) -> None:
    label, p, s = run(learner, X, tmp_path)
    np.testing.assert_allclose(s, learner.scores(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(p, learner.predict_proba(X), atol=1e-5)
    assert label.tolist() == learner.predict(X).tolist()


@pytest.mark.parametrize(
    ("d", "own"),
    [
        (D, {}),
        (D, {"curves": 0}),
        (D, {"scaling": "unit"}),
        (D, {"scaling": "unit", "curves": 0}),
        (D, {"intercept": False}),
        (D, {"none_label": 2}),
        (D, {"forget": 0.01}),
        (3, {"curves": 30}),  # an odd number of waves
        (600, {}),  # more columns than a block of the projections has
    ],
    ids=str,
)
def test_the_same_scores(d: int, own: dict[str, Any], tmp_path: Path) -> None:
    X, y = rows(1500, d)
    learner = sa.SetLogit(n_labels=K, n_features=d, set_size=2, **own)
    same(learner if learner.core else _begun(learner, X), X[:20], tmp_path)  # before it has learnt anything
    learner.run(X, y)
    odd = rows(200, d, seed=1)[0]
    odd[0] = 0.0
    odd[1] = X.mean(axis=0)
    odd[2, 0] = 1e6  # bent back
    odd[3:6] *= 40.0
    same(learner, odd, tmp_path)


def _begun(learner: Any, X: Any) -> Any:
    learner.decide(X[0])
    return learner


def test_names_of_labels_and_columns_and_the_learner_of_labels(tmp_path: Path) -> None:
    X, y = rows(800, D)
    labels = ["ant", "bee", "cat", "dog", "eel"]
    learner = sa.SetLogit(labels=labels, set_size=2)
    table = [{f"column {i}": value for i, value in enumerate(x)} for x in X.tolist()]
    learner.use_columns(sa.Columns.infer(table))
    learner.run(table, y)
    label, p, _ = run(learner, X[:50], tmp_path)
    assert label.tolist() == learner.predict(table[:50]).tolist()
    np.testing.assert_allclose(p, learner.predict_proba(table[:50]), atol=1e-5)
    told = sa.AveragedSoftmax(labels=labels, n_features=D, set_size=2)
    told.run(X, y)
    same(told, X[:50], tmp_path)


def test_an_export_between_a_decision_and_its_answer_changes_nothing(tmp_path: Path) -> None:
    X, y = rows(100, D)
    learners = [sa.SetLogit(n_labels=K, n_features=D, set_size=2) for _ in range(2)]
    for x, label in zip(X, y, strict=True):
        for i, learner in enumerate(learners):
            decision = learner.decide(x)
            if i:
                learner.to_onnx(tmp_path / "model.onnx")
            learner.update(decision, hit=bool(label in decision.labels))
    np.testing.assert_array_equal(learners[0].scores(X), learners[1].scores(X))


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    wanted = "rows of SetLogit must be plain numbers without missing values, to be exported to ONNX, got {}"
    learner = sa.SetLogit(n_labels=K, set_size=2)
    with pytest.raises(InvalidInput, match=wanted.format("no row yet")):
        learner.to_onnx(tmp_path / "model.onnx")
    learner.decide({"text": "a card that does not work", "age": None})
    with pytest.raises(InvalidInput, match=wanted.format("text, words, dates or missing values")):
        learner.to_onnx(tmp_path / "model.onnx")
    learner = sa.SetLogit(n_labels=K, n_features=50, set_size=2)
    learner.decide(([3, 7], [1.0, 2.0]))
    with pytest.raises(InvalidInput, match=wanted.format("sparse")):
        learner.to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
