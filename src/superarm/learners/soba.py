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
from math import inf
from typing import Any, ClassVar, Unpack

from superarm.data.rows import Layout
from superarm.errors import Unquoted
from superarm.learners.families import BanditLearner, BanditParams
from superarm.native.core import Core
from superarm.native.second_order import SOBADiagonalCore, SOBAFullCore
from superarm.parameters import check_choice, check_number

MATRICES = ("diagonal", "full")


class SOBA(BanditLearner):
    """Second-order Banditron.

    Args:
        matrix: ``"diagonal"``, or ``"full"`` for the (k d)^2 matrix.
        a: the initial value on the diagonal of A.
    """

    name = "soba-diag"
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "soba": {"matrix": "full"},
        "soba-diag": {"matrix": "diagonal"},
    }

    def __init__(self, *, matrix: str = "diagonal", a: float = 1.0, **common: Unpack[BanditParams]) -> None:
        super().__init__(**common)
        self.matrix = check_choice("matrix", self.owner, matrix, MATRICES)
        self.a = check_number("a", self.owner, a, 0.0)
        self.fixed_labels = self.matrix == "full"
        if self.n_features is not None:
            self._check_memory(self.n_features if isinstance(self.n_features, int) else sum(self.n_features))

    def make_core(self, layout: Layout) -> Core:
        self._check_memory(layout.n_dense + layout.n_sparse)
        cls = SOBADiagonalCore if self.matrix == "diagonal" else SOBAFullCore
        return cls(**self.core_args(layout), a=self.a)

    def _check_memory(self, n_features: int) -> None:
        size = self.n_labels * (n_features + 16)
        if self.matrix == "full" and size * size * 8 > _memory() / 2:
            memory = f"{size * size * 8 / 2**30:.0f} GB for {self.n_labels} labels x {n_features} features"
            raise self.invalid("matrix", "'diagonal' where 'full' does not fit in memory", Unquoted(memory))


def _memory() -> float:
    """Return the machine's memory in bytes; infinity where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf
