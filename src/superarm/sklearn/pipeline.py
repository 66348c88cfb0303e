"""SetPipeline: scikit-learn's pipeline for a SetFeedbackClassifier at its end."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from superarm._types import Array
from superarm.decisions.decisions import Decisions
from superarm.errors import InvalidInput


class SetPipeline(Pipeline):  # type: ignore[misc]
    """scikit-learn's Pipeline, with a SetFeedbackClassifier at its end and all that it can do.

    Its parameters (steps, transform_input, memory, verbose) are those of Pipeline.

    >>> from sklearn.preprocessing import StandardScaler
    >>> from superarm.sklearn import SetFeedbackClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    >>> steps = [("scale", StandardScaler()), ("sets", SetFeedbackClassifier(set_size=2, random_state=0))]
    >>> model = SetPipeline(steps).fit(X, ["a", "b", "c", "d"])
    >>> decisions = model.decide(X)
    >>> model.update(decisions, [True, False, True, None]).predict_set(X).shape
    (4, 2)
    """

    def decide(self, X: Any, **options: Any) -> Decisions:
        """Choose a set for every row of X; ``options`` are those of `SetFeedbackClassifier.decide`."""
        decisions: Decisions = self[-1].decide(self._transformed(X), **options)
        return decisions

    def update(self, decisions: Decisions, hits: Any) -> SetPipeline:
        """Learn from the answers, ``hits``, to the ``decisions`` of `decide`."""
        self[-1].update(decisions, hits)
        return self

    def predict_set(self, X: Any, set_size: int | None = None, **options: Any) -> Array | list[Array]:
        """Return the ``set_size`` best labels for every row of X, best first.

        ``options`` and the default are those of `SetFeedbackClassifier.predict_set`.
        """
        sets: Array | list[Array] = self[-1].predict_set(self._transformed(X), set_size, **options)
        return sets

    def partial_fit(self, X: Any, y: Any, **options: Any) -> SetPipeline:
        """Continue to learn from X and y; the steps before the classifier must be fitted.

        ``options`` are those of `SetFeedbackClassifier.partial_fit`.
        """
        self[-1].partial_fit(self._transformed(X), y, **options)
        return self

    def _transformed(self, X: Any) -> Any:
        if len(self.steps) < 2:
            return X
        try:
            return self[:-1].transform(X)
        except NotFittedError as error:
            wanted = "fitted before partial_fit (pipeline[:-1].fit(X))"
            raise InvalidInput.must("steps", "SetPipeline", wanted, error) from error
