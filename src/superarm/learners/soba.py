"""SOBA: second-order Banditron (Beygelzimer, Orabona & Zhang 2017).

y~ ~ Banditron's P. Only when y~ = y, with the best other label y' = argmax_{i != y} s_i:

    g = (e_y' - e_y) x / P(y),   z = sqrt(P(y)) g
    mu = (<W,z>^2 + 2 <W,g>) / (1 + z'A^-1 z)
    if mu + (the mu of earlier updates) >= 0:   A += z z',   theta -= g,   W = A^-1 theta

A starts as a I. "diagonal" keeps A's diagonal (what the authors run at scale); "full" keeps A^-1 by
the formula of Sherman and Morrison: with u = A^-1 z and q = 1 + z'u,

    A^-1 -= u u' / q,   W -= u (<W,z> + 1 / sqrt(P)) / q
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf
from typing import Any

from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.explore.base import Rule
from superarm.explore.dilute import Dilute
from superarm.learners.learner import Learner
from superarm.native.core import Core
from superarm.native.second_order import SOBADiagonalCore, SOBAFullCore
from superarm.parameters import choice, number

MATRICES = ("diagonal", "full")


class SOBA(Learner):
    """Second-order Banditron.

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
        matrix: ``"diagonal"``, or ``"full"`` for the (k d)^2 matrix.
        a: the initial value on the diagonal of A.
    """

    name = "soba-diag"
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
        matrix: str = "diagonal",
        a: float = 1.0,
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
        self.matrix = choice("matrix", self.owner, matrix, MATRICES)
        self.a = number("a", self.owner, a, 0.0)
        self.moves_ineligible = self.couples_labels = self.matrix == "full"  # by A^-1
        if self.n_features is not None:
            self._check_memory(self.n_features if isinstance(self.n_features, int) else sum(self.n_features))

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        return {"soba": {"matrix": "full"}, "soba-diag": {"matrix": "diagonal"}}

    def make_rule(self) -> Rule:
        return Dilute(gamma=self.gamma)

    def make_core(self, layout: Layout) -> Core:
        self._check_memory(layout.d + layout.width)
        cls = SOBADiagonalCore if self.matrix == "diagonal" else SOBAFullCore
        return cls(**self.core_parts(layout), a=self.a)

    def _check_memory(self, n_features: int) -> None:
        size = self.n_labels * (n_features + 16)
        if self.matrix == "full" and size * size * 8 > _memory() / 2:
            gigabytes = f"{size * size * 8 / 2**30:.0f} GB for n_labels x n_features = {size}"
            raise self.invalid("matrix", "'diagonal' where 'full' does not fit in memory", gigabytes)


def _memory() -> float:
    """The machine's memory in bytes; infinity where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf
