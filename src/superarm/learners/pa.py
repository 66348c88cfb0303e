"""PA, PA-I, PA-II: exact multiclass passive-aggressive, full information (Matsushima et al. 2010).

    min 1/2 |W' - W|^2   s.t.   w'_y.x - w'_r.x >= 1 - xi  for all r != y
    PA: xi = 0     PA-I: + C xi     PA-II: + C xi^2

W'_y = W_y + Lambda x, W'_r = W_r - lambda_r x, Lambda = sum lambda. The support (lambda_r > 0) is a
prefix of the labels sorted by their loss l_r = 1 - s_y + s_r. With n of them, L = sum of their
losses and X = |x|^2:

    PA     Lambda = L / ((n+1) X)                  lambda_r = l_r / X - Lambda
    PA-I   the same if that Lambda <= C, else Lambda = C and
           lambda_r = (l_r - xi) / X - C,  xi = (L - (n+1) C X) / n
    PA-II  Lambda = L / ((n+1) X + n / 2C)         lambda_r = l_r / X - Lambda (1 + 1 / (2 C X))
"""

from __future__ import annotations

from math import inf
from typing import Unpack

from superarm.data.rows import Layout
from superarm.learners.families import AnyRuleParams, LabelLearner
from superarm.native.core import Core
from superarm.native.first_order import PACore
from superarm.parameters import check_choice, check_number

VARIANTS = ("PA", "PA-I", "PA-II")


class PA(LabelLearner):
    """Exact multiclass passive-aggressive.

    Args:
        variant: ``"PA"``, ``"PA-I"`` (one shared slack, linear) or ``"PA-II"`` (squared).
        C: the price of the slack.
    """

    name = "pa"

    def __init__(self, *, variant: str = "PA-I", C: float = 1.0, **common: Unpack[AnyRuleParams]) -> None:
        super().__init__(**common)
        self.variant = check_choice("variant", self.owner, variant, VARIANTS)
        self.C = check_number("C", self.owner, C, 0.0)

    def make_core(self, layout: Layout) -> Core:
        return PACore(
            **self.core_args(layout),
            max_lambda=self.C if self.variant == "PA-I" else inf,
            slack_price=2.0 * self.C if self.variant == "PA-II" else inf,
        )
