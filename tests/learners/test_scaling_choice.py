"""``scaling``: any learner can have any, and a comparison gives all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.learners.registry import learners_by_name, make

ALL = list(learners_by_name())


def table(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Three labels by three columns whose units differ by 10^8, as tables have them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    X = random.normal(size=(n, 3)) + 4 * np.eye(3)[y]
    return (X * [1e-4, 1.0, 1e4]).astype(np.float32), y


def made(spec: str, **parameters: Any) -> Any:
    return make(spec, n_labels=3, n_features=3, **parameters)


@pytest.mark.parametrize("spec", ALL)
def test_standardised_rows_do_for_every_learner_what_units_undo(spec: str) -> None:
    X, y = table(6000)
    errors = {}
    for scaling in ("standard", "unit"):
        learner = made(spec, scaling=scaling)
        assert learner.effective_scaling == scaling
        learner.run(X[:3000], y[:3000])
        errors[scaling] = learner.run(X[3000:], y[3000:])[0] / 3000
    assert errors["standard"] < 0.15
    assert errors["standard"] < errors["unit"]


@pytest.mark.parametrize("spec", ALL)
def test_a_scaling_goes_with_the_model(spec: str, tmp_path: Any) -> None:
    X, y = table(400)
    learner = made(spec, scaling="standard")
    learner.run(X[:200], y[:200])
    learner.save(tmp_path / "model")
    again = sa.load(tmp_path / "model")
    assert again.scaling == "standard"
    assert learner.run(X[200:], y[200:]).tolist() == again.run(X[200:], y[200:]).tolist()
    np.testing.assert_array_equal(learner.scores(X[:5]), again.scores(X[:5]))


def test_own_scalings() -> None:
    """The paper's learners have rows of length 1, as their theory asks; named numbers are standardised."""
    own = {spec: made(spec).effective_scaling for spec in ALL}
    standard = {"set-logit", "softmax-averaged"}
    assert own == {spec: "standard" if spec in standard else "unit" for spec in ALL}
    learner = sa.MCDBF(n_labels=3)
    learner.decide({"age": 41.0, "city": "Rome"})
    assert learner.effective_scaling == "standard"


@pytest.mark.parametrize("scaling", [None, "unit", "standard"])
def test_one_row_at_a_time_in_batches_and_fused(scaling: str | None) -> None:
    X, y = table(300)
    single, many, fused = (made("softmax", scaling=scaling) for _ in range(3))
    for x, label in zip(X, y.tolist(), strict=True):
        single.update(single.decide(x), label=label)
        many.update_many(many.decide_many(x[None]), labels=[label])
    fused.run(X, y)
    for other in (many, fused):
        for name, array in single.core.state().items():
            np.testing.assert_array_equal(array, other.core.state()[name], err_msg=name)


class Rows(sa.PlainLearner):
    """It keeps the last row that it was asked about."""

    def begin(self) -> dict[str, Any]:
        return {"x": np.zeros(self.row_length)}

    def score(self, x: Any) -> Any:
        self.memory["x"][:] = x
        return np.zeros(self.n_labels)

    def learn(self, x: Any, shown: Any, hit: bool) -> None:
        pass


def test_a_learner_in_plain_python_gets_scaled_rows() -> None:
    X, y = table(100)
    for scaling, length in ((None, np.linalg.norm(X[0])), ("unit", 1.0), ("standard", 1.0)):
        learner = Rows(n_labels=3, n_features=3, scaling=scaling)
        assert learner.effective_scaling == (scaling or "none")
        learner.run(X, y)
        learner.decide(X[0])
        assert np.linalg.norm(learner.memory["x"]) == pytest.approx(
            length, rel=0.7 if length == 1.0 else 1e-6
        )
        if scaling == "unit":
            np.testing.assert_allclose(learner.memory["x"], X[0] / np.linalg.norm(X[0]), rtol=1e-5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="scaling of Softmax must be one of standard, unit, or None, got 'none'"
    ):
        sa.Softmax(n_labels=3, scaling="none")
    learner = sa.Softmax(n_labels=3, scaling="standard", intercept=1.0)
    with pytest.raises(
        InvalidInput, match="intercept of Softmax must be below 1 where columns are standardised"
    ):
        learner.decide([1.0, 2.0])
