"""The model of a labelling: it learns from each item whose label was found.

An item teaches once with its label (again if that changes), and with it N_REPLAYS items of before, drawn at random: the
model learns as from several passes, without waiting for one. Each item also teaches one of two smaller models: what
the other one says of it does not come from its own answers.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.decisions import Decision
from superarm.learners import SetLogit
from superarm.losses import softmax
from superarm.native.randomness import uniform_number

N_REPLAYS, FEWEST_TO_REPLAY = 2, 50
NO_LABEL = -1


class LabelModel:
    """A learner of all items, and two of a half of them each.

    Args:
        features: of the items.
        n_labels: how many labels there are.
        labels: of each item, the number of its label as of now: one that was taken back teaches no more.
        seed: for halves and replays.

    Attributes:
        half_of: the half (0 or 1) that each item teaches.
        n_half_lessons: how many lessons each half has had.
        n_lessons: how many the learner of all items has had.
    """

    def __init__(self, features: Rows, n_labels: int, labels: Array, seed: int) -> None:
        n = len(features)
        self.features, self._labels, self._seed = features, labels, seed
        self.learner, *self._halves = (
            SetLogit(n_labels=n_labels, n_features=features.layout.n_features, seed=seed) for _ in range(3)
        )
        self.half_of = np.random.default_rng((seed, 4)).integers(0, 2, n)
        self.n_lessons, self.n_half_lessons = 0, [0, 0]
        self._taught: list[int] = []
        self._taught_as = np.full(n, NO_LABEL, np.int32)

    def add_label(self) -> None:
        """One more than before."""
        for learner in (self.learner, *self._halves):
            learner.add_labels(1)

    def probabilities(self, items: Array) -> Array:
        """Of each label, for some items."""
        return softmax(self.learner.scores(self.features.take(items)))

    def half_probabilities(self, half: int, items: Array) -> Array:
        """The same, of the learner of a half."""
        return softmax(self._halves[half].scores(self.features.take(items)))

    def untaught_probabilities(self, item: int) -> Array:
        """The same, of a learner that has not learnt from the item."""
        items = np.array([item])
        if self._taught_as[item] == NO_LABEL:
            return self.probabilities(items)
        return self.half_probabilities(1 - int(self.half_of[item]), items)

    def teach(self, item: int, label: int) -> None:
        """Learn from an item, and from some of before; nothing if it was learnt with this label already."""
        if self._taught_as[item] == label:
            return
        if self._taught_as[item] == NO_LABEL:
            self._taught.append(item)
        self._taught_as[item] = label
        self._update(item)
        for draw in range(N_REPLAYS if len(self._taught) > FEWEST_TO_REPLAY else 0):
            number = uniform_number(self._seed, self.n_lessons, draw)
            self._update(self._taught[int(number * len(self._taught))])

    def _update(self, item: int) -> None:
        label, half = int(self._taught_as[item]), int(self.half_of[item])
        if self._labels[item] == label:  # else it was taken back
            for learner in (self.learner, self._halves[half]):
                learner.update(Decision.given(self.features.row(item), [label]), label=label)
            self.n_lessons += 1
            self.n_half_lessons[half] += 1
