"""Banditron (Kakade, Shalev-Shwartz & Tewari 2008): one label shown, one bit.

P = (1-gamma) e_y^ + gamma/k,   y~ ~ P,   W += (1[y~ = y] / P(y~) e_y~ - e_y^) x
"""

from __future__ import annotations

from collections.abc import Sequence

from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.explore.base import Rule
from superarm.explore.dilute import Dilute
from superarm.learners.learner import Learner
from superarm.native.bandits import BanditronCore
from superarm.native.core import Core
from superarm.parameters import number


class Banditron(Learner):
    """Banditron: the perceptron of bandit feedback.

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
    """

    name = "banditron"
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

    def make_rule(self) -> Rule:
        return Dilute(gamma=self.gamma)

    def make_core(self, layout: Layout) -> Core:
        return BanditronCore(**self.core_parts(layout))
