"""Trials of the model, and the priors of beliefs: what it said of items that it had not learnt from.

The first question about an item is a trial: its answers tell whether the label that the model predicted was right. What
the model said then is also the prior of the beliefs. When the model of the other fold, which has not learnt from the
item, but more from others, says something else later, that becomes the prior: so wrong clicks of the beginning are
found, without a question.

A model may be too sure of itself. Tempered priors are as sure as it may be, by the curve of errors in recent trials
(error_curve.py): p to the power of its slope, and a share of its floor that goes to all labels alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from superarm._types import Array
from superarm.label.cross_fitted_model import CrossFittedModel
from superarm.label.error_curve import ErrorCurve, recency_weights
from superarm.label.label_set import LabelSet
from superarm.theory.platt import logit

MAX_TRIALS = 8_000  # that the curve is fitted to
MIN_SLOPE, MAX_SLOPE = 0.3, 1.0


@dataclass(slots=True)
class Trial:
    """What the model predicted of an item at its first question.

    Attributes:
        predicted: the best label.
        logit_doubt: the model's doubt in it.
        is_audit: whether the item was drawn at random from those that would have been accepted unasked.
        prior: the probability of each label, by a model that has not learnt from the item; None where it is not needed
            any more.
        n_updates: how many updates the model behind the prior had had.
    """

    predicted: int
    logit_doubt: float
    is_audit: bool
    prior: Array | None
    n_updates: int


class ModelTrials:
    """The trials of a labelling.

    Args:
        model: that is tried.
        label_set: the labels of now.
        n_items: how many items there are.

    Attributes:
        error: of each item with a trial, the probability that the predicted label was wrong.
    """

    def __init__(self, model: CrossFittedModel, label_set: LabelSet, n_items: int) -> None:
        self._model, self._label_set = model, label_set
        self._trials: dict[int, Trial] = {}  # by item, in their order
        self._slope, self._floor = 1.0, 0.0  # of the curve of errors
        self.error = np.zeros(n_items)

    def begin(self, item: int, *, is_audit: bool) -> None:
        """Keep what the model says of an item that is asked about for the first time."""
        if item not in self._trials:
            p = self._label_set.current_probabilities(self._model.probabilities(np.array([item])))[0]
            doubt = float(logit(1.0 - p.max()))
            self._trials[item] = Trial(int(p.argmax()), doubt, is_audit, p, self._model.n_updates)

    def is_audit(self, item: int) -> bool:
        """Return whether the first question about an item was an audit."""
        return item in self._trials and self._trials[item].is_audit

    def recent(self, done: Array) -> tuple[Array, Array]:
        """Return the items of recent trials whose label was found, and the logits of the model's doubts."""
        trials = [(item, trial.logit_doubt) for item, trial in self._trials.items() if done[item]]
        items, logits = zip(*trials[-MAX_TRIALS:], strict=True) if trials else ((), ())
        return np.array(items, np.intp), np.array(logits, float)

    def set_error(self, item: int, belief: Array) -> None:
        """Set how probable it is that the model was wrong about an item, by the belief in each label."""
        if item in self._trials:
            predicted = self._label_set.merged_into[self._trials[item].predicted]
            self.error[item] = 1.0 - belief[predicted]

    # ------------------------------------------------------------ priors

    def prior(self, item: int) -> Array:
        """Return the probability of each label of an item, by a model that has not learnt from it."""
        trial = self._trials.get(item)
        if trial is not None and trial.prior is not None:
            return trial.prior
        p = self._model.out_of_fold_probabilities(item)
        prior: Array = self._label_set.current_probabilities(p)[0]
        return prior

    def tempered(self, prior: Array) -> Array:
        """Return a prior that is as sure as it may be, for the labels of now."""
        p = self._label_set.current_probabilities(prior[None])[0] ** self._slope
        tempered: Array = (1.0 - self._floor) * p / p.sum() + self._floor * (p > 0.0) / np.count_nonzero(p)
        return tempered

    def keep_prior(self, item: int, prior: Array | None) -> None:
        """Keep the prior of an item, or none where it is not needed any more."""
        if item in self._trials:
            self._trials[item].prior = prior

    def enable_label(self, label: int) -> None:
        """Give a label that was disabled some probability in priors that were made meanwhile, without it."""
        for trial in self._trials.values():
            if trial.prior is not None and label < len(trial.prior) and not trial.prior[label]:
                trial.prior[label] = 1.0 / len(self._label_set.names)

    def refit(self, done: Array) -> list[int]:
        """Estimate how sure the model may be, bring priors up to date, and return the items that have one."""
        items, logits = self.recent(done)
        curve = ErrorCurve(logits, self.error[items], recency_weights(len(items)))
        self._slope, self._floor = float(np.clip(curve.slope, MIN_SLOPE, MAX_SLOPE)), curve.floor
        doubtful = [item for item, trial in self._trials.items() if trial.prior is not None and done[item]]
        self._refresh_priors(np.array(doubtful, np.intp))
        return doubtful

    def _refresh_priors(self, items: Array) -> None:
        """Take what the model of the other fold says of items, where it has learnt more than that of the prior."""
        model, trials = self._model, self._trials
        for fold, n_updates in enumerate(model.n_fold_updates):
            is_older = [trials[item].n_updates < n_updates for item in items.tolist()]
            stale = items[(model.fold_of[items] != fold) & np.array(is_older, bool)]
            if len(stale):
                for item, p in zip(stale.tolist(), model.fold_probabilities(fold, stale), strict=True):
                    trials[item].prior, trials[item].n_updates = p, n_updates
