"""MC-DBF: multiclass classification using dilute bandit feedback (Batra & Manwani 2021).

    S ~ Z(. | Y^, gamma),   f = 1[y in S],   W_r += x (e^_r - 1[r in Y^] / m)

e^ is an unbiased estimate of the indicator of y from the one bit f (see sets.py): "ordered" is the
paper's, f 1[r in S] / (Z tau1) - tau2. With m = 1 this is Banditron.

With ``gate``, the step is an unbiased subgradient of the hinge loss L_avg with a margin M, which
the paper's own step is not (it drops the hinge):

    W += sum_r e^_r 1[M - s_r + mean_{Y^} s > 0] (e_r - 1_{Y^} / m) x

M sets the scale of W and so acts like a step size. By default it follows the noise of the estimates,
M = 1 + sqrt(sum of |e^|^2 over earlier rounds) / 5, and needs no tuning. rho, the minimum-variance
estimate's belief P(y in Y^), is learnt by least squares from E[f | j] = out + rho (j/m - out),
out = (m-j)/(k-m), over earlier rounds with a memory of about 1000. Both leave e^ unbiased.

From a log: e^ needs only how the logged set was drawn (its own top set and gamma), so it stays
unbiased; the other part, 1_{Y^} / m, is taken at the learner's own current top set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.decision import Decision
from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop, draw_set
from superarm.numerics import add_outer, centre, contains, kernel, top_positions, weights
from superarm.sets import RHO_GRID, Design, design, log_ordered_probability, rho_index

ESTIMATES = ("ordered", "set", "minimum-variance")
CENTRE_EVERY = 65536


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    ordered: bool
    gate: bool
    margin: float
    learn_rho: bool
    rho: np.ndarray[Any, Any]  # numerator and denominator of the least squares
    squares: np.ndarray[Any, Any]  # sum of |e^|^2
    updates: np.ndarray[Any, Any]
    touched: np.ndarray[Any, Any]  # scratch
    c: np.ndarray[Any, Any]  # scratch
    own: np.ndarray[Any, Any]  # scratch


@kernel
def choose(
    state: Any, design: Any, s: Any, eligible: Any, seed: int, round_: int, drawn: Any, top: Any, odds: Any
) -> None:
    draw_set(state, design, s, eligible, seed, round_, drawn, top, odds)
    odds[2] = rho_index(state.rho[0] / state.rho[1]) if design.estimates.shape[0] > 1 else 0


@kernel
def learn(
    state: Any,
    design: Any,
    x: Any,
    s: Any,
    eligible: Any,
    drawn: Any,
    top: Any,
    odds: Any,
    hit: bool,
    label: int,
) -> bool:
    m = top.shape[0]
    if label < 0 and design.n == m:  # everything was shown: the bit says nothing
        return True
    shared = 0  # |S n Y^|
    for i in range(m):
        shared += contains(drawn, top[i])
    # e^ on S n Y^, S - Y^, Y^ - S, and the rest
    both, only_drawn, only_top, rest = 0.0, 0.0, 0.0, 0.0
    # of somebody else's set, e^ follows their top set, the rest the learner's own
    foreign = odds[2] < 0.0
    if label < 0:
        place = int(-1.0 - odds[2] if foreign else odds[2])
        e = design.estimates[min(max(place, 0), design.estimates.shape[0] - 1), shared, int(hit)]
        both, only_drawn, only_top, rest = e[0], e[1], e[2], e[3]
        if state.ordered and hit:
            weight = np.exp(-odds[0] - design.log_tau1)
            both += weight
            only_drawn += weight
    touched, c = state.touched, state.c
    if not state.gate and not foreign and design.n == c.shape[0]:
        # a vector added to every row changes no ranking: "rest" is subtracted everywhere
        for i in range(m):
            touched[i] = top[i]
            c[i] = (both if shared == m or contains(drawn, top[i]) else only_top) - rest - 1.0 / m
        n = m
        if shared < m and only_drawn != rest:
            for i in range(m):
                if not contains(top, drawn[i]):
                    touched[n] = drawn[i]
                    c[n] = only_drawn - rest
                    n += 1
        if label >= 0:
            touched[n] = label
            c[n] = 1.0
            n += 1
    else:
        n, own = eligible.shape[0], state.own[:m]
        if foreign:
            top_positions(s[0], eligible, own)
        mean_top = 0.0
        for i in range(m):
            own[i] = eligible[own[i]] if foreign else top[i]
            mean_top += s[0, own[i]] / m
        for i in range(n):
            touched[i] = eligible[i]
            c[i] = rest
        for i in range(m):
            c[_find(eligible, top[i])] = both if contains(drawn, top[i]) else only_top
            if not contains(top, drawn[i]):
                c[_find(eligible, drawn[i])] = only_drawn
        if label >= 0:
            c[_find(eligible, label)] = 1.0
        total = 1.0
        if state.gate:
            margin = state.margin if state.margin > 0.0 else 1.0 + np.sqrt(state.squares[0]) / 5.0
            total, squares = 0.0, 0.0
            for i in range(n):
                squares += c[i] * c[i]
                if margin - s[0, touched[i]] + mean_top > 0.0:
                    total += c[i]
                else:
                    c[i] = 0.0
            state.squares[0] += squares
        for i in range(m):
            c[_find(eligible, own[i])] -= total / m
    if not add_outer(state.W, touched, c, n, x, state.bias):
        return False
    state.updates[0] += 1
    if rest != 0.0 and state.updates[0] % CENTRE_EVERY == 0:
        centre(state.W, x)
    if state.learn_rho and label < 0 and design.n > m:
        outside = (m - shared) / (design.n - m)
        slope = shared / m - outside
        state.rho[0] = 0.999 * state.rho[0] + slope * (int(hit) - outside)
        state.rho[1] = 0.999 * state.rho[1] + slope * slope
    return True


@kernel
def _find(values: Any, value: int) -> int:
    """The place of ``value`` in increasing ``values``."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


class MCDBF(Learner):
    """MC-DBF, the paper's algorithm for one bit about a set.

    Args:
        gamma: the share of exploration, in (0, 1].
        estimate: ``"ordered"`` (the paper), ``"set"`` or ``"minimum-variance"``.
        gate: update only where the hinge loss with ``margin`` is positive.
        margin: the margin M of the gate; ``None`` follows the noise of the estimates.
        rho: P(y in top set) for the minimum-variance estimate; ``None`` learns it from the stream.

    >>> import superarm as sa
    >>> learner = sa.MCDBF(n_labels=5, n_features=3, set_size=2, gamma=0.2, seed=1)
    >>> decision = learner.decide([1.0, 0.0, 0.5])
    >>> decision.labels, round(decision.propensity, 4)
    ([0, 1], 0.6914)
    >>> learner.update(decision, hit=True)
    """

    name = "mc-dbf"
    loop = compile_loop(name, learn, choose=choose)
    feedback = ("hit", "label")
    _own_only = "its own, or given with top= and gamma="

    def __init__(
        self,
        *,
        gamma: float = 0.1,
        estimate: str = "ordered",
        gate: bool = False,
        margin: float | None = None,
        rho: float | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)
        self.estimate = self._choice("estimate", estimate, ESTIMATES)
        self.gate = bool(gate)
        self.margin = None if margin is None else self._number("margin", margin, 0.0)
        self.rho = None if rho is None else self._number("rho", rho, 0.0, 1.0)
        self._logged: dict[tuple[int, int, float], Design] = {}  # how sets in logs were drawn

    def _new_design(self, n: int, m: int) -> Design:
        return design(n, m, self.gamma, self.estimate)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_logged": {}}

    def _learns_from(self, decision: Decision) -> bool:
        return decision.gamma is not None

    def _given_plan(self, decision: Decision, sets: Any, among: Any) -> tuple[Design, Any]:
        n, m, gamma = len(among), sets.shape[1], decision.gamma
        assert gamma is not None  # _learns_from
        key = (n, m, gamma)
        if key not in self._logged:
            if len(self._logged) >= 1024:  # a gamma that decays is another number on every row
                self._logged.clear()
            self._logged[key] = design(n, m, gamma, self.estimate)
        plan, odds = self._logged[key], decision.odds.copy()
        if self.estimate == "ordered" and m < n:
            odds[0] = log_ordered_probability(n, m, gamma, np.isin(sets[1], sets[2]).tolist())
        odds[2] = -1.0 - (rho_index(self.state.rho[0] / self.state.rho[1]) if len(plan.estimates) > 1 else 0)
        return plan, odds

    def _rho(self) -> float | None:
        if self.estimate != "minimum-variance":
            return None
        return float(RHO_GRID[rho_index(self.state.rho[0] / self.state.rho[1])])

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            ordered=self.estimate == "ordered",
            gate=self.gate,
            margin=self.margin or 0.0,
            learn_rho=self.rho is None,
            rho=np.array([0.9 if self.rho is None else self.rho, 1.0]) * 20.0,
            squares=np.zeros(1),
            updates=np.zeros(1, np.int64),
            touched=np.zeros(self.n_labels, np.int64),
            c=np.zeros(self.n_labels, np.float64),
            own=np.zeros(self.n_labels, np.int64),
        )
