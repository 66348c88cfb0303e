"""AveragedSoftmax: SetLogit's model and update (native/setlogit.pyx), with every label told.

W += step (e_y - p) x~,   predictions by the running average of W
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm.data.labels import Label
from superarm.explore.base import Rule
from superarm.learners.full_information import AnySetLearner
from superarm.learners.setlogit import LikelihoodLearner

__all__ = ["AveragedSoftmax"]


class AveragedSoftmax(LikelihoodLearner, AnySetLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: how many labels to show, 1 <= m < k; 1 by default. With `superarm.explore.Cover` the most that
            are shown, and all of them by default.
        seed: of the curves, and of the draws of ``explore``.
        intercept: the share of the constant feature, as a number in [0, 1); True chooses it.
        scaling: ``"standard"`` (or ``None``), each column by its own mean and spread, learnt online; ``"unit"``, rows
            of length 1.
        explore: the rule that chooses the sets, of `superarm.explore`; by default the best labels are shown.
        step: the step size of the dense part, its curves too; ``None`` chooses it: 3 with curves, 4 without.
            The sparse part has 0.67 sqrt(k), or for rows without a dense part what is given here.
        curves: how many curved features stand beside those of the dense part, an even number; 0 is the
            linear model, ``None`` is 1024 (8 KiB a label; several passes of `train`: up to 4096; above
            32,768 labels: none). The sparse part stays linear.
    """

    name = "softmax-averaged"

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
        explore: Rule | dict[str, Any] | None = None,
        step: float | None = None,
        curves: int | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            seed=seed,
            intercept=intercept,
            scaling=scaling,
            step=step,
            curves=curves,
        )
        self.choose_by(explore, set_size)
