"""SetScorer: a classifier judged by sets that were shown, and whether the right label was among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from superarm._types import Array
from superarm.errors import InvalidInput
from superarm.losses import set_nll
from superarm.sklearn.arguments import answered_sets, shown_sets

MEASURES = ("log_loss", "hit_rate")


def shown_mask(sets: Sequence[Array], n_labels: int) -> Array:
    """Return for each set of label indices and each label whether it was shown."""
    mask = np.zeros((len(sets), n_labels), bool)
    for row, labels in zip(mask, sets, strict=True):
        row[labels] = True
    return mask


def log_losses(logits: Array, sets: Sequence[Array], hits: Sequence[bool]) -> Array:
    """Return the log loss of each answer about a set of label indices."""
    mask = shown_mask(sets, logits.shape[1])
    return np.asarray(set_nll(logits.astype(np.float64), mask, hits, reduction="none"))


def log_loss(model: Any, X: Any, hit: Any, sets: list[list[Any]], sample_weight: Any = None) -> float:
    """Return the mean log loss of the answers; rows without one do not count."""
    logits = np.log(np.maximum(model.predict_proba(X), 1e-300))
    answered, indices, hits, _ = answered_sets(model.classes_, sets, hit, None, len(logits))
    weights = None if sample_weight is None else np.asarray(sample_weight)[answered]
    return float(np.average(log_losses(logits[answered], indices, hits), weights=weights))


class SetScorer(BaseEstimator):  # type: ignore[misc]
    """Judge a classifier by sets that were shown, and whether the right label was among them.

    For ``scoring=`` of `cross_val_score`, `GridSearchCV` and the like, with scikit-learn's metadata routing on: it
    asks for ``shown``, and for ``propensity`` where that is given.

    Args:
        measure: ``"log_loss"``, of the answers to the sets that were shown, negative, as scikit-learn has it; or
            ``"hit_rate"``, what the classifier's own best labels would have got, estimated from those answers as
            `superarm evaluate` does (docs/evaluation.md); NaN where that is impossible.
        set_size: of ``"hit_rate"``: how many labels it would show; as many as most sets have by default.
        uniform: of ``"hit_rate"``: the sets were drawn uniformly at random. Else it needs ``propensity``.
    """

    __metadata_request__score = {"shown": True, "propensity": True}  # noqa: RUF012 (scikit-learn reads it)

    def __init__(
        self, measure: str = "log_loss", *, set_size: int | None = None, uniform: bool = False
    ) -> None:
        self.measure, self.set_size, self.uniform = measure, set_size, uniform

    def score(
        self, estimator: Any, X: Any, y: Any, *, shown: Iterable[Iterable[Any]], propensity: Any = None
    ) -> float:
        """Return the score of a fitted classifier, or of a pipeline with one at its end; more is better.

        Args:
            estimator: the classifier or pipeline.
            X: rows.
            y: whether the right label was among the shown ones.
            shown: the labels that were shown.
            propensity: the probability of each set.
        """
        if self.measure not in MEASURES:
            raise InvalidInput.must("measure", "SetScorer", f"one of {', '.join(MEASURES)}", self.measure)
        sets = shown_sets(shown)
        if self.measure == "log_loss":
            return -log_loss(estimator, X, y, sets)
        return self._hit_rate(estimator, X, y, sets, propensity)

    __call__ = score

    def _hit_rate(self, model: Any, X: Any, hit: Any, sets: list[list[Any]], propensity: Any) -> float:
        from superarm.logs import Log, Policy, evaluate, summarize

        if propensity is None and not self.uniform:
            raise InvalidInput.must("propensity", "SetScorer", "given, or uniform=True", None)
        p = model.predict_proba(X)
        answered, *columns = answered_sets(model.classes_, sets, hit, propensity, len(p))
        rows = [
            {"x": [0.0], "labels": indices.tolist(), "hit": hit, "propensity": propensity, "p": row.tolist()}
            for row, indices, hit, propensity in zip(p[answered], *columns, strict=True)
        ]
        log = Log(rows, uniform=self.uniform)
        summary = summarize(log, labels=len(model.classes_))
        policy = Policy(type(model).__name__, probabilities="p", set_size=self.set_size or summary.set_size)
        best = evaluate(log, [policy], summary, holdout=None).results[0].best
        return float("nan") if best is None else best.value
