"""AveragedSoftmax: SetLogit's model and update (native/setlogit.pyx), with every label told.

W += step (e_y - p) x~,   predictions by the running average of W
"""

from __future__ import annotations

from superarm.learners.learner import LabelLearner
from superarm.learners.setlogit import LikelihoodLearner

__all__ = ["AveragedSoftmax"]


class AveragedSoftmax(LikelihoodLearner, LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: of the curves; it draws no sets.
        intercept: the share of the constant feature, as a number in [0, 1); True chooses it.
        scaling: ``"standard"`` (or ``None``), each column by its own mean and spread, learnt online; ``"unit"``, rows
            of length 1.
        step: the step size of the dense part, its curves too; ``None`` chooses it: 3 with curves, 4 without.
            The sparse part has 0.67 sqrt(k), or for rows without a dense part what is given here.
        curves: how many curved features stand beside those of the dense part, an even number; 0 is the
            linear model, ``None`` is 1024 (8 KiB a label; several passes of `train`: up to 4096; above
            32,768 labels: none). The sparse part stays linear.
    """

    name = "softmax-averaged"
