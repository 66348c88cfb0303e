"""Rules on anybody's scores: one row, or a matrix at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import Boltzmann, Dilute, Greedy, RunnerUp, Uniform

LABELS = ["ant", "bee", "cat", "dog", "eel", "fox"]
RULES: list[Any] = [
    (RunnerUp, {"set_size": 3}),
    (RunnerUp, {"set_size": 1, "uniform": 0.1}),
    (Dilute, {"set_size": 2, "gamma": 0.3}),
    (Greedy, {"set_size": 2}),
    (Uniform, {"set_size": 2}),
    (Boltzmann, {"set_size": 1}),
]


@pytest.mark.parametrize(("cls", "params"), RULES)
@pytest.mark.parametrize("eligible", [None, ["ant", "cat", "dog", "fox"]])
def test_a_matrix_is_its_rows(cls: Any, params: dict[str, Any], eligible: Any) -> None:
    scores = np.random.default_rng(0).normal(size=(200, 6))
    many, single = (cls(labels=LABELS, seed=2, **params) for _ in range(2))
    many.id = single.id
    for part in (scores[:150], scores[150:]):
        decisions = many.decide(scores=part, eligible=eligible)
        assert len(decisions) == len(part)
        for decision, s in zip(decisions, part, strict=True):
            assert decision.to_dict() == single.decide(scores=s, eligible=eligible).to_dict()


def test_probabilities_and_rows() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(6), size=50)
    x = np.arange(100.0).reshape(50, 2)
    decisions = RunnerUp(set_size=2, labels=LABELS).decide(probabilities=p, x=x)
    assert decisions[7].x.tolist() == [14.0, 15.0]
    assert decisions.top[:, 0].tolist() == [LABELS[i] for i in p.argmax(axis=1)]
    draw = sa.explore.draw_of(decisions[3])
    assert draw is not None
    assert draw.probability(decisions[3].labels) == pytest.approx(decisions.propensity[3])


def test_what_it_refuses() -> None:
    rule = RunnerUp(set_size=2, labels=LABELS)
    with pytest.raises(InvalidInput, match="6 numbers, one a label"):
        rule.decide(scores=np.zeros((3, 5)))
    with pytest.raises(InvalidInput, match="finite"):
        rule.decide(scores=np.full((3, 6), np.nan))
    with pytest.raises(InvalidInput, match="not all 0"):
        rule.decide(probabilities=np.array([[0.5, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]))
    with pytest.raises(InvalidInput, match="x of RunnerUp must be 3 rows"):
        rule.decide(scores=np.zeros((3, 6)), x=np.zeros((2, 4)))
