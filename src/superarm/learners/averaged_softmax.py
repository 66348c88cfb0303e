"""AveragedSoftmax: SetLogit's model and update (setlogit.py), with every label told.

W += step (e_y - p) x~,   predictions by the running average of W
"""

from __future__ import annotations

from superarm.kernels import Kernels, standardise
from superarm.learners.base import LabelLearner
from superarm.learners.setlogit import LikelihoodLearner, ask, learn, score

__all__ = ["AveragedSoftmax"]


class AveragedSoftmax(LikelihoodLearner, LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: of the curves; it draws no sets.
        intercept: the share of the constant feature, as a number in [0, 1); True chooses it.
        step: the step size, of the curved part too; ``None`` chooses it: 3 with curves, 4 without,
            0.67 sqrt(k) for sparse rows.
        curves: how many curved features stand beside those of a dense row, an even number; 0 is the
            linear model, ``None`` is 1024 (8 KiB a label; several passes of `train`: up to 4096; above
            32,768 labels: none). Sparse rows stay linear.
    """

    name = "softmax-averaged"
    kernels = Kernels(learn, score=score, scale=standardise, ask=ask, sees_label=True)
