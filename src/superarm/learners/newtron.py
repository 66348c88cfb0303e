"""Newtron, diagonal (Hazan & Kale 2011).

    p = softmax(alpha W x),   P = (1-gamma) p + gamma/k,   y~ ~ P
    hit:   g = (1 - p_y~) / P_y~ (1/k 1 - e_y~) x,   kappa = P_y~
    miss:  g = p_y~ / P_y~ (e_y~ - 1/k 1) x,         kappa = 1

W minimises sum <g, W> + 1/2 kappa beta <g, W - W_t>^2 + |W|^2 / 2D over |W| <= D, with the diagonal
of the quadratic term:  A = 1/D + sum kappa beta g^2,  b = sum (kappa beta <g, W_t> - 1) g,  V = b / A,
W = V scaled into the ball. E[g] = (p - e_y) x. Late feedback uses the current W for W_t and p.
"""

from __future__ import annotations

from typing import Unpack

from superarm.data.rows import Layout
from superarm.explore.boltzmann import Boltzmann
from superarm.explore.rule import Rule
from superarm.learners.families import BanditLearner, BanditParams
from superarm.native.core import Core
from superarm.native.second_order import NewtronCore
from superarm.parameters import check_number


class Newtron(BanditLearner):
    """Newtron with a diagonal matrix.

    Args:
        alpha: how sharp the softmax is.
        beta: the weight of the second-order term.
        D: the radius of the ball that W stays in.
    """

    name = "newtron"

    def __init__(
        self, *, alpha: float = 10.0, beta: float = 0.01, D: float = 1.0, **common: Unpack[BanditParams]
    ) -> None:
        super().__init__(**common)
        self.alpha = check_number("alpha", self.owner, alpha, 0.0)
        self.beta = check_number("beta", self.owner, beta, 0.0)
        self.D = check_number("D", self.owner, D, 0.0)

    def make_rule(self) -> Rule:
        return Boltzmann(gamma=self.gamma, alpha=self.alpha)

    def make_core(self, layout: Layout) -> Core:
        return NewtronCore(**self.core_args(layout), alpha=self.alpha, beta=self.beta, D=self.D)
