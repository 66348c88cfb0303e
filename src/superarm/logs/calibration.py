"""How often sets hit of which a model expects that they do: its expectations, calibrated by the answers so far.

    q' = sigmoid(a + b logit(q))

A model that learns from few rows, or from other ones, is too sure or not sure enough. a and b are fitted by maximum
likelihood (Platt scaling) to the answers of earlier rows, from a = 0 and b = 1, which count like a few answers; so a
row's own answer does not change what is expected of it.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.theory.platt import fit_platt, logit, sigmoid

EDGE = 9.0  # logits beyond count as this: no model knows 1 in 10,000
BINS = 73  # of logits: four a unit
BLOCK = 64  # rows between two fits
PRIOR = 4.0  # answers that a and b as they were count like
STEPS = 8  # of Newton's method


class ExpectationCalibrator:
    """Learns as rows come, in their order; the same rows in other batches give the same numbers."""

    def __init__(self) -> None:
        self.a, self.b = 0.0, 1.0
        self.rows = 0
        self._seen = np.zeros((2, BINS))  # rows and hits, by the logit that was expected

    def calibrate(self, q_policy: Array, q_logged: Array, hit: Array) -> tuple[Array, Array]:
        """Return both expectations calibrated, row after row; the answers to logged sets calibrate the later ones."""
        policy, logged = np.empty(len(hit)), np.empty(len(hit))
        start = 0
        while start < len(hit):
            part = slice(start, start + BLOCK - self.rows % BLOCK)
            policy[part], logged[part] = self._apply(q_policy[part]), self._apply(q_logged[part])
            self._learn(q_logged[part], hit[part])
            start = part.stop
        return policy, logged

    def _apply(self, q: Array) -> Array:
        return np.where(q >= 1.0, 1.0, sigmoid(self.a + self.b * _logit(q)))  # 1: all labels are shown

    def _learn(self, q: Array, hit: Array) -> None:
        bins = np.rint((_logit(q) + EDGE) / (2 * EDGE) * (BINS - 1)).astype(np.int64)
        np.add.at(self._seen[0], bins, 1.0)
        np.add.at(self._seen[1], bins, hit)
        self.rows += len(hit)
        if self.rows % BLOCK:
            return
        (n, hits), x = self._seen, np.linspace(-EDGE, EDGE, BINS)
        (self.a, self.b), _ = fit_platt(x, n, hits, (0.0, 1.0), (PRIOR, PRIOR), STEPS)


def _logit(q: Array) -> Array:
    return np.clip(logit(q), -EDGE, EDGE)
