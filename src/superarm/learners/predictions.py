"""What a learner would say: scores, ranks and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label
from superarm.data.rows import stack
from superarm.explore.cover import Cover
from superarm.learners import feedback
from superarm.learners.algorithm import Algorithm


class Predictions(Algorithm):
    """What every learner says about rows, with nothing shown and nothing learnt."""

    def scores(self, X: Any) -> Array:
        """The scores of all labels for every row of X, by which labels are ranked."""
        rows = self.inputs.rows(X, grow=False)
        out = np.zeros((len(rows), self.n_labels), np.float32)
        self.ensure_core().scores(rows, out)
        fine = np.isfinite(out).all(axis=1)
        if not fine.all():
            raise feedback.score_error(self, rows.row(int(np.flatnonzero(~fine)[0])))
        return out

    def rank(self, x: Any) -> list[Label]:
        """All labels that can be shown for one row, best first."""
        row = self.inputs.row(x, grow=False)
        return self.label_set.decode(self._best(stack([row], self.inputs.layout))[0])

    def predict(self, X: Any) -> Array:
        """The best label for every row of X."""
        can_show = self.inputs.can_show
        return self.label_set.array(can_show[self.scores(X)[:, can_show].argmax(axis=1)])

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> Array | list[Array]:
        """The best ``set_size`` labels for every row of X, best first.

        Args:
            X: a matrix, or a data frame.
            set_size: how many; with a coverage, the most.
            coverage: as many as this coverage needs, by its threshold as it is: a list of arrays. The default
                of a learner with a promise is its own, unless a size is asked for.
        """
        size = self.set_size if set_size is None else self.inputs.size(set_size)
        if coverage is None and (set_size is not None or not isinstance(self.rule, Cover)):
            return self.label_set.array(self._best(X)[:, :size])
        rule = self._coverage_rule(coverage)
        s = self.scores(X)
        native = self.core.rule
        edge = rule.coverage_at_level(native, rule.level(native, coverage, self.owner)).edge
        can_show = self.inputs.can_show
        p = probabilities(s[:, can_show])
        order = np.argsort(-p, axis=1, kind="stable")
        sizes = (p >= edge).sum(axis=1).clip(1, size)
        return [self.label_set.array(can_show[row[:n]]) for row, n in zip(order, sizes, strict=True)]

    def _best(self, X: Any) -> Array:
        """The numbers of the labels that can be shown, best first, for every row of X."""
        can_show = self.inputs.can_show
        return can_show[np.argsort(-self.scores(X)[:, can_show], axis=1, kind="stable")]


def probabilities(s: Array) -> Array:
    """The softmax of each row of scores."""
    p = np.exp(s.astype(np.float64) - s.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
