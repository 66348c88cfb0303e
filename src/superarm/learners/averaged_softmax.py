"""AveragedSoftmax: SetLogit's model and update (native/setlogit.pyx), with every label told.

W += step (e_y - p) x~,   predictions by the running average of W
"""

from __future__ import annotations

from superarm.learners.families import LabelLearner
from superarm.learners.setlogit import LikelihoodLearner


class AveragedSoftmax(LikelihoodLearner, LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        seed: of the curves, and of the draws of ``explore``.
    """

    name = "softmax-averaged"
