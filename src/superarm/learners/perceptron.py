"""Perceptron (Crammer & Singer 2003), full information.

if y^ != y:  W_y += x,  W_y^ -= x
"""

from __future__ import annotations

from superarm.data.rows import Layout
from superarm.learners.families import LabelLearner
from superarm.native.core import Core
from superarm.native.first_order import PerceptronCore


class Perceptron(LabelLearner):
    """The multiclass perceptron, which is told every label.

    >>> import superarm as sa
    >>> learner = sa.Perceptron(labels=["cat", "dog", "eel"], n_features=2)
    >>> learner.update(learner.decide([1.0, 0.0]), label="dog")
    >>> learner.rank([1.0, 0.0])
    ['dog', 'eel', 'cat']
    """

    name = "perceptron"

    def make_core(self, layout: Layout) -> Core:
        return PerceptronCore(**self.core_args(layout))
