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

from collections.abc import Sequence

from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.explore.base import Rule
from superarm.explore.dilute import Dilute
from superarm.learners.learner import Learner
from superarm.native.bandits import EPABFCore
from superarm.native.core import Core
from superarm.parameters import choice, number

VARIANTS = ("EPABF", "EPABF-I", "EPABF-II")


class EPABF(Learner):
    """Exact passive-aggressive with bandit feedback.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row, or a pair (dense, sparse); left out, the first row tells it (and
            may have names).
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        scaling: ``"unit"``, rows of length 1; ``"standard"``, each column by its own mean and spread, learnt online;
            ``None``: unit, but standard for rows with names.
        gamma: the share of exploration, in (0, 1].
        variant: ``"EPABF"``, ``"EPABF-I"`` or ``"EPABF-II"``.
        C: the bound on each multiplier (-I), or the price of the squared slacks (-II).
    """

    name = "epabf"
    single_label = True

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
        gamma: float = 0.1,
        variant: str = "EPABF-I",
        C: float = 0.1,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
            scaling=scaling,
        )
        self.gamma = number("gamma", self.owner, gamma, 0.0, 1.0)
        self.variant = choice("variant", self.owner, variant, VARIANTS)
        self.C = number("C", self.owner, C, 0.0)

    def make_rule(self) -> Rule:
        return Dilute(gamma=self.gamma)

    def make_core(self, layout: Layout) -> Core:
        return EPABFCore(**self.core_parts(layout), C=self.C, variant=VARIANTS.index(self.variant))
