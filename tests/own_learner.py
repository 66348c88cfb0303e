"""A learner as a user would write one, in a file of plain Python: what was shown goes up after a yes, and
down after a no. (A compiled one: tests/learners/test_own_compiled.py.)"""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm import PlainLearner
from superarm.explore import Dilute
from superarm.parameters import check_number


class UpAndDown(PlainLearner):
    name = "up-and-down"

    def __init__(self, *, gamma: float = 0.1, rate: float = 1.0, **common: Any) -> None:
        super().__init__(explore=Dilute(gamma=gamma), **{k: v for k, v in common.items() if k != "explore"})
        self.gamma = check_number("gamma", self.owner, gamma, 0.0, 1.0)
        self.rate = check_number("rate", self.owner, rate, 0.0)

    def begin(self) -> dict[str, Any]:
        return {"W": np.zeros((self.n_labels, self.row_length), np.float32)}

    def score(self, x: Any) -> Any:
        return self.memory["W"] @ x

    def learn(self, x: Any, shown: Any, hit: bool) -> None:
        self.memory["W"][shown] += (self.rate if hit else -self.rate) / len(shown) * x


class NoLearner:
    """Not a Learner: to be refused."""
