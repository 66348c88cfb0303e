"""Perceptron (Crammer & Singer 2003), full information.

if y^ != y:  W_y += x,  W_y^ -= x
"""

from __future__ import annotations

from typing import Any

from superarm.kernels import Answer, Kernels, Round, add_outer, kernel, reads_none
from superarm.learners.linear import LinearLabelLearner


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    if round.top[0] == answer.label:
        return True
    touched, c = scratch.touched, scratch.c
    touched[0], c[0] = answer.label, 1.0
    touched[1], c[1] = round.top[0], -1.0
    return add_outer(state.W, touched, c, 2, round.x)


class Perceptron(LinearLabelLearner):
    """The multiclass perceptron, which is told every label.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.

    >>> import superarm as sa
    >>> learner = sa.Perceptron(labels=["cat", "dog", "eel"], n_features=2)
    >>> learner.update(learner.decide([1.0, 0.0]), label="dog")
    >>> learner.rank([1.0, 0.0])
    ['dog', 'eel', 'cat']
    """

    name = "perceptron"
    kernels = Kernels(learn, reads_scores=reads_none, sees_label=True)
