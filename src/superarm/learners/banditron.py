"""Banditron (Kakade, Shalev-Shwartz & Tewari 2008): one label shown, one bit.

P = (1-gamma) e_y^ + gamma/k,   y~ ~ P,   W += (1[y~ = y] / P(y~) e_y~ - e_y^) x
"""

from __future__ import annotations

from superarm.data.rows import Layout
from superarm.learners.families import BanditLearner
from superarm.native.core import Core
from superarm.native.first_order import BanditronCore


class Banditron(BanditLearner):
    """Banditron: the perceptron of bandit feedback."""

    name = "banditron"

    def make_core(self, layout: Layout) -> Core:
        return BanditronCore(**self.core_args(layout))
