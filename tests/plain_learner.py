"""A learner in plain Python, as a user would write one: logistic steps on the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm import PlainLearner


class PlainSteps(PlainLearner):
    def __init__(self, *, step: float = 0.3, **common: Any) -> None:
        super().__init__(**common)
        self.step = step

    def begin(self) -> dict[str, Any]:
        return {"W": np.zeros((self.n_labels, self.row_length + 1)), "answers": 0}

    def score(self, x: Any) -> Any:
        return self.memory["W"] @ np.append(x, 1.0)

    def learn(self, x: Any, shown: Any, hit: bool) -> None:
        s = self.score(x)
        p = np.exp(s - s.max())
        p /= p.sum()
        inside = np.isin(np.arange(self.n_labels), shown)
        post = np.where(inside == hit, p, 1e-12)
        self.memory["W"] += self.step * np.outer(post / post.sum() - p, np.append(x, 1.0))
        self.memory["answers"] += 1
