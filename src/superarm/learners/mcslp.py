"""MC-SLP (Batra & Manwani 2021): what MC-DBF estimates, with every label told.

    W_r += x (1[r = y] - 1[r in Y^] / m)

The paper calls this a gradient step on L_avg = [M - s_y + mean_{Y^} s]_+ with M = 1, but drops the
hinge: it updates on every round. ``gate`` puts the hinge back.
"""

from __future__ import annotations

from collections.abc import Sequence

from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.learners.full_information import LabelLearner
from superarm.native.core import Core
from superarm.native.full_information import MCSLPCore
from superarm.parameters import number


class MCSLP(LabelLearner):
    """MC-SLP, the full-information twin of MC-DBF.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        scaling: ``"unit"``, rows of length 1; ``"standard"``, each column by its own mean and spread, learnt online;
            ``None``: unit, but standard for rows with names.
        gate: update only where the hinge loss with ``margin`` is positive (the paper: always).
        margin: the margin M of the gate.
    """

    name = "mc-slp"

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | tuple[int, int] | None = None,
        set_size: int | None = None,
        seed: int = 0,
        intercept: bool | float = True,
        scaling: str | None = None,
        gate: bool = False,
        margin: float = 1.0,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
            scaling=scaling,
        )
        self.gate = bool(gate)
        self.margin = number("margin", self.owner, margin, 0.0)

    def make_core(self, layout: Layout) -> Core:
        return MCSLPCore(**self.core_parts(layout), gate=self.gate, margin=self.margin)
