"""Perceptron (Crammer & Singer 2003), full information.

if y^ != y:  W_y += x,  W_y^ -= x
"""

from __future__ import annotations

from typing import Any

from superarm.learners.base import LabelLearner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel


@kernel
def learn(
    state: Any,
    design: Any,
    x: Any,
    s: Any,
    eligible: Any,
    drawn: Any,
    top: Any,
    odds: Any,
    hit: bool,
    label: int,
) -> bool:
    if top[0] == label:
        return True
    touched, c = state.touched, state.c
    touched[0], c[0] = label, 1.0
    touched[1], c[1] = top[0], -1.0
    return add_outer(state.W, touched, c, 2, x, state.bias)


class Perceptron(LabelLearner):
    """The multiclass perceptron, which is told every label.

    >>> import superarm as sa
    >>> learner = sa.Perceptron(labels=["cat", "dog", "eel"], n_features=2)
    >>> learner.update(learner.decide([1.0, 0.0]), label="dog")
    >>> learner.rank([1.0, 0.0])
    ['dog', 'eel', 'cat']
    """

    name = "perceptron"
    loop = compile_loop(name, learn, sees_label=True)
