"""MC-SLP (Batra & Manwani 2021): what MC-DBF estimates, with every label told.

    W_r += x (1[r = y] - 1[r in Y^] / m)

The paper calls this a gradient step on L_avg = [M - s_y + mean_{Y^} s]_+ with M = 1, but drops the
hinge: it updates on every round. ``gate`` puts the hinge back.
"""

from __future__ import annotations

from typing import Unpack

from superarm.data.rows import Layout
from superarm.explore.greedy import Greedy
from superarm.explore.rule import Rule
from superarm.learners.families import CommonParams
from superarm.learners.learner import Learner
from superarm.native.core import Core
from superarm.native.first_order import MCSLPCore
from superarm.parameters import check_bool, check_number


class MCSLP(Learner):
    """MC-SLP, the full-information twin of MC-DBF.

    Args:
        gate: update only where the hinge loss with ``margin`` is positive (the paper: always).
        margin: the margin M of the gate.
    """

    name = "mc-slp"
    feedback = ("label",)

    def __init__(self, *, gate: bool = False, margin: float = 1.0, **common: Unpack[CommonParams]) -> None:
        super().__init__(**common)
        self.gate = check_bool("gate", self.owner, gate)
        self.margin = check_number("margin", self.owner, margin, 0.0)

    def make_rule(self) -> Rule:
        return Greedy()

    def make_core(self, layout: Layout) -> Core:
        return MCSLPCore(**self.core_args(layout), gate=self.gate, margin=self.margin)
