"""The model of a labelling: it learns from each item whose label was found, by 2-fold cross-fitting.

An item is learnt once with its label (again if that changes), and with it N_REPLAYS earlier items, drawn at random: so
the model learns as from several passes, without waiting for one. Each item is also in one of two folds, from which a
smaller model each learns: what the model of the other fold predicts for the item does not come from its own answers.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.decisions import Decision
from superarm.label.answers import NO_LABEL
from superarm.learners import SetLogit
from superarm.losses import softmax
from superarm.native.randomness import uniform_number

FOLDS = 4  # the stream of random numbers, beside the seed
N_REPLAYS, MIN_ITEMS_TO_REPLAY = 2, 50


class CrossFittedModel:
    """A learner of all items, and one of each fold.

    Args:
        features: of the items.
        n_labels: how many labels there are.
        seed: for folds and replays.

    Attributes:
        fold_of: the fold (0 or 1) of each item.
        n_fold_updates: how many updates the learner of each fold has had.
    """

    def __init__(self, features: Rows, n_labels: int, seed: int) -> None:
        n = len(features)
        self.features, self._seed = features, seed
        self.learner, *self._fold_learners = (
            SetLogit(n_labels=n_labels, n_features=features.layout.n_features, seed=seed) for _ in range(3)
        )
        self.fold_of = np.random.default_rng((seed, FOLDS)).integers(0, 2, n)
        self.n_fold_updates = [0, 0]
        self._learnt_items: list[int] = []
        self._learnt_label = np.full(n, NO_LABEL, np.int32)

    @property
    def n_updates(self) -> int:
        """How many updates the learner of all items has had."""
        return sum(self.n_fold_updates)

    def add_label(self) -> None:
        """Add one label."""
        for learner in (self.learner, *self._fold_learners):
            learner.add_labels(1)

    def probabilities(self, items: Array) -> Array:
        """Return the probability of each label, for some items."""
        return softmax(self.learner.scores(self.features.take(items)))

    def fold_probabilities(self, fold: int, items: Array) -> Array:
        """Return the probability of each label for some items, by the learner of one fold."""
        return softmax(self._fold_learners[fold].scores(self.features.take(items)))

    def out_of_fold_probabilities(self, item: int) -> Array:
        """Return the probability of each label for an item, by a learner that has not learnt from it."""
        items = np.array([item])
        if self._learnt_label[item] == NO_LABEL:
            return self.probabilities(items)
        return self.fold_probabilities(1 - int(self.fold_of[item]), items)

    def learn(self, item: int, labels: Array) -> None:
        """Learn the label of an item, and those of some earlier items; nothing if it was learnt already.

        ``labels`` are those of all items, as of now: one that was taken back is not learnt again.
        """
        label = labels[item]
        if self._learnt_label[item] == label:
            return
        if self._learnt_label[item] == NO_LABEL:
            self._learnt_items.append(item)
        self._learnt_label[item] = label
        self._update(item, labels)
        n_items = len(self._learnt_items)
        for draw in range(N_REPLAYS if n_items > MIN_ITEMS_TO_REPLAY else 0):
            number = uniform_number(self._seed, self.n_updates, draw)
            self._update(self._learnt_items[int(number * n_items)], labels)

    def _update(self, item: int, labels: Array) -> None:
        label, fold = int(self._learnt_label[item]), int(self.fold_of[item])
        if labels[item] == label:  # else it was taken back
            for learner in (self.learner, self._fold_learners[fold]):
                learner.update(Decision.given(self.features.row(item), [label]), label=label)
            self.n_fold_updates[fold] += 1
