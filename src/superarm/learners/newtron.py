"""Newtron, diagonal (Hazan & Kale 2011).

    p = softmax(alpha W x),   P = (1-gamma) p + gamma/k,   y~ ~ P
    hit:   g = (1 - p_y~) / P_y~ (1/k 1 - e_y~) x,   kappa = P_y~
    miss:  g = p_y~ / P_y~ (e_y~ - 1/k 1) x,         kappa = 1

W minimises sum <g, W> + 1/2 kappa beta <g, W - W_t>^2 + |W|^2 / 2D over |W| <= D, with the diagonal
of the quadratic term:  A = 1/D + sum kappa beta g^2,  b = sum (kappa beta <g, W_t> - 1) g,  V = b / A,
W = V scaled into the ball. E[g] = (p - e_y) x. Late feedback uses the current W for W_t and p.
"""

from __future__ import annotations

from collections.abc import Sequence

from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.explore.base import Rule
from superarm.explore.boltzmann import Boltzmann
from superarm.learners.learner import Learner
from superarm.native.core import Core
from superarm.native.second_order import NewtronCore
from superarm.parameters import number


class Newtron(Learner):
    """Newtron with a diagonal matrix.

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
        alpha: how sharp the softmax is.
        beta: the weight of the second-order term.
        D: the radius of the ball that W stays in.
    """

    name = "newtron"
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
        alpha: float = 10.0,
        beta: float = 0.01,
        D: float = 1.0,
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
        self.alpha = number("alpha", self.owner, alpha, 0.0)
        self.beta = number("beta", self.owner, beta, 0.0)
        self.D = number("D", self.owner, D, 0.0)

    def make_rule(self) -> Rule:
        return Boltzmann(gamma=self.gamma, alpha=self.alpha)

    def make_core(self, layout: Layout) -> Core:
        return NewtronCore(**self.core_parts(layout), alpha=self.alpha, beta=self.beta, D=self.D)
