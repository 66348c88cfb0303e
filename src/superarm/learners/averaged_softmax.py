"""AveragedSoftmax: SetLogit's model and update (native/setlogit.pyx), with every label told.

W += step (e_y - p) x~,   predictions by the running average of W
"""

from __future__ import annotations

from typing import Unpack

from superarm.learners.families import CoverageParams, Explore
from superarm.learners.setlogit import LikelihoodLearner


class AveragedSoftmax(LikelihoodLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        seed: the seed of the curves, and of the draws of ``explore``.
        coverage: show as few labels as needed so that the right one is among them so often, 0.95 say
            (docs/coverage.md). ``learner.coverage`` tells what was kept.
        explore: by default the best labels are shown; else as `SetLogit` has it: a word, a number, or a rule.
    """

    name = "softmax-averaged"
    feedback = ("label",)

    def __init__(
        self,
        *,
        explore: Explore = None,
        step: float | None = None,
        curves: int | None = None,
        **common: Unpack[CoverageParams],
    ) -> None:
        super().__init__(explore=explore, step=step, curves=curves, **common)
