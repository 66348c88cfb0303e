"""MC-DBF: multiclass classification using dilute bandit feedback (Batra & Manwani 2021).

    S ~ Z(. | Y^, gamma),   f = 1[y in S],   W_r += x (e^_r - 1[r in Y^] / m)

e^ is an unbiased estimate of the indicator of y from the one bit f (theory/label_estimates.py): "ordered" is the
paper's, f 1[r in S] / (Z tau1) - tau2. With m = 1 this is Banditron.

With ``gate``, the step is an unbiased subgradient of the hinge loss L_avg with a margin M, which
the paper's own step is not (it drops the hinge):

    W += sum_r e^_r 1[M - s_r + mean_{Y^} s > 0] (e_r - 1_{Y^} / m) x

M sets the scale of W and so acts like a step size. By default it follows the noise of the estimates,
M = 1 + sqrt(sum of |e^|^2 over earlier rounds) / 5, and needs no tuning. rho, the minimum-variance
estimate's belief P(y in Y^), is learnt by least squares from E[f | j] = out + rho (j/m - out),
out = (m-j)/(k-m), over answers that came earlier, with a memory of about 1000. Both leave e^ unbiased, as long as
how late an answer comes does not depend on what it says; where it does (no answer counts as a no after a day), a
learnt rho that still moves makes a small bias, and a fixed ``rho`` makes none.

From a log: e^ needs only how the logged set was drawn (its own top set and gamma), so it stays
unbiased; the other part, 1_{Y^} / m, is taken at the learner's own current top set.
"""

from __future__ import annotations

from typing import Unpack

from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.learners.families import BanditLearner, BanditParams
from superarm.native.core import Core
from superarm.native.mcdbf import MCDBFCore
from superarm.parameters import check_bool, check_choice, check_number
from superarm.theory.label_estimates import ESTIMATE_NAMES, EstimateTable, estimate_table


class MCDBF(BanditLearner):
    """MC-DBF, the paper's algorithm for one bit about a set.

    Args:
        set_size: how many labels to show, 1 <= m < k; 1 by default.
        estimate: ``"ordered"`` (the paper), ``"set"`` or ``"minimum-variance"``.
        gate: update only where the hinge loss with ``margin`` is positive.
        margin: the margin M of the gate; ``None`` follows the noise of the estimates.
        rho: P(y in top set) for the minimum-variance estimate; ``None`` learns it from the stream.

    >>> import superarm as sa
    >>> learner = sa.MCDBF(n_labels=5, n_features=3, set_size=2, gamma=0.2, seed=1)
    >>> decision = learner.decide([1.0, 0.0, 0.5])
    >>> decision.labels, round(decision.propensity, 4)
    ([1, 0], 0.6914)
    >>> learner.update(decision, hit=True)
    """

    name = "mc-dbf"
    shows_one_label = False
    feedback = ("hit", "label")
    _hidden_from_tab = BanditLearner._hidden_from_tab | {"estimate_table"}

    def __init__(
        self,
        *,
        estimate: str = "ordered",
        gate: bool = False,
        margin: float | None = None,
        rho: float | None = None,
        **common: Unpack[BanditParams],
    ) -> None:
        super().__init__(**common)
        self.estimate = check_choice("estimate", self.owner, estimate, ESTIMATE_NAMES)
        self.gate = check_bool("gate", self.owner, gate)
        self.margin = None if margin is None else check_number("margin", self.owner, margin, 0.0)
        self.rho = None if rho is None else check_number("rho", self.owner, rho, 0.0, 1.0)

    def make_core(self, layout: Layout) -> Core:
        return MCDBFCore(
            **self.core_args(layout),
            gamma=self.gamma,
            estimate=self.estimate,
            gate=self.gate,
            margin=self.margin or 0.0,
            rho=0.9 if self.rho is None else self.rho,
            learn_rho=self.rho is None,
            estimate_table=self.estimate_table,
        )

    def estimate_table(self, n: int, m: int, gamma: float) -> EstimateTable:
        """Return e^ for sets of m out of n labels, drawn with this ``gamma``; a subclass may have one of its own."""
        return estimate_table(n, m, gamma, self.estimate)

    def learns_from(self, decision: Decision) -> bool:
        return decision.gamma is not None and len(decision.top) > 0
