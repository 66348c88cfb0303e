"""What a learner that has decided at a cursor before its first row does when scores overflow."""

from __future__ import annotations

import numpy as np
import pytest

import superarm as sa
from superarm.errors import WeightsOverflow


@pytest.mark.parametrize("name", ["Softmax", "MCSLP", "Perceptron"])
def test_an_overflow_is_told_beside_a_provisional_core(name: str) -> None:
    """It used to be an AttributeError, and a journal with it could not be verified."""
    learner = getattr(sa, name)(labels=["a", "b", "c"], seed=1)
    learner.decide([1.0, 2.0], cursor=learner.cursor())
    assert learner.provisional_core is not None
    row = np.full(2, 3e38, np.float32)

    def learn_often() -> None:
        for _ in range(20):
            learner.update(learner.decide(row), label="b")

    with pytest.raises(WeightsOverflow):
        learn_often()
