"""Perceptron (Crammer & Singer 2003), full information.

if y^ != y:  W_y += x,  W_y^ -= x
"""

from __future__ import annotations

from superarm.data.rows import Layout
from superarm.learners.full_information import AnySetLearner
from superarm.native.core import Core
from superarm.native.full_information import PerceptronCore


class Perceptron(AnySetLearner):
    """The multiclass perceptron, which is told every label.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: how many labels to show, 1 <= m < k; 1 by default. With `superarm.explore.Cover` the most that
            are shown, and all of them by default.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        scaling: ``"unit"``, rows of length 1; ``"standard"``, each column by its own mean and spread, learnt online;
            ``None``: unit, but standard for rows with names.
        explore: the rule that chooses the sets, of `superarm.explore`; by default the best labels are shown.

    >>> import superarm as sa
    >>> learner = sa.Perceptron(labels=["cat", "dog", "eel"], n_features=2)
    >>> learner.update(learner.decide([1.0, 0.0]), label="dog")
    >>> learner.rank([1.0, 0.0])
    ['dog', 'eel', 'cat']
    """

    name = "perceptron"

    def make_core(self, layout: Layout) -> Core:
        return PerceptronCore(**self.core_parts(layout))
