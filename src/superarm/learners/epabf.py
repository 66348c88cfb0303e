"""EPABF, -I, -II: exact passive-aggressive with bandit feedback (Arora & Manwani 2020).

y~ ~ Banditron's P, a = 1[y~ = y] / P(y~), l_r = [1 - a s_y~ + s_r]_+, X = |x|^2:

    min 1/2 |W' - W|^2   s.t.   a w'_y~.x - w'_r.x >= 1  for all r,
    W' = W + sum_r lambda_r (a e_y~ - e_r) x
    EPABF: lambda >= 0     -I: 0 <= lambda <= C (a box QP)     -II: 1/(2C) on the diagonal

With S = sum of lambda_r over r != y~, v = lambda_y~ and delta = 1/(2CX) for -II, else 0, the
optimality conditions leave one unknown, theta = a^2 S + (a^2 - a) v:

    lambda_r = clip((l_r / X - theta) / (1 + delta))                       r != y~
    v        = clip((l_y~ / X - (a^2 - a) S) / ((a-1)^2 + delta))

theta - a^2 S(theta) - (a^2 - a) v(S(theta)) is increasing and piecewise linear, so Newton's method
between bounds finds its zero in a few steps. (The authors' code leaves out the last term of the
condition for y~ and clips the unbounded solution; this solves the problem they state.)
"""

from __future__ import annotations

from math import inf
from typing import Unpack

from superarm.data.rows import Layout
from superarm.learners.families import BanditLearner, BanditParams
from superarm.native.core import Core
from superarm.native.first_order import EPABFCore
from superarm.parameters import check_choice, check_number

VARIANTS = ("EPABF", "EPABF-I", "EPABF-II")


class EPABF(BanditLearner):
    """Exact passive-aggressive with bandit feedback.

    Args:
        variant: ``"EPABF"``, ``"EPABF-I"`` or ``"EPABF-II"``.
        C: the bound on each multiplier (-I), or the price of the squared slacks (-II).
    """

    name = "epabf"

    def __init__(self, *, variant: str = "EPABF-I", C: float = 0.1, **common: Unpack[BanditParams]) -> None:
        super().__init__(**common)
        self.variant = check_choice("variant", self.owner, variant, VARIANTS)
        self.C = check_number("C", self.owner, C, 0.0)

    def make_core(self, layout: Layout) -> Core:
        return EPABFCore(
            **self.core_args(layout),
            max_lambda=self.C if self.variant == "EPABF-I" else inf,
            slack_price=2.0 * self.C if self.variant == "EPABF-II" else inf,
        )
