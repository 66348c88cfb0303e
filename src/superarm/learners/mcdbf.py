"""MC-DBF: multiclass classification using dilute bandit feedback (Batra & Manwani 2021).

    S ~ Z(. | Y^, gamma),   f = 1[y in S],   W_r += x (e^_r - 1[r in Y^] / m)

e^ is an unbiased estimate of the indicator of y from the one bit f (see estimates.py): "ordered" is the
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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.decision import Decision
from superarm.errors import InvalidInput
from superarm.estimates import ESTIMATES, RHO_GRID, Estimates, estimates, rho_index
from superarm.explore.base import Rule, rule_from
from superarm.explore.dilute import Dilute, log_ordered_probability
from superarm.kernels import (
    Answer,
    Kernels,
    Round,
    Tables,
    Unit,
    add_outer,
    centre,
    contains,
    kernel,
    position,
    top_positions,
    weights,
)
from superarm.kernels.held import Held
from superarm.labels import Label
from superarm.learners.base import Learner, Nothing
from superarm.parameters import choice, number

CENTRE_EVERY = 65536

Array = np.ndarray[Any, Any]


class State(NamedTuple):
    W: Array
    scaling: Unit
    rule: Any
    ordered: bool
    gate: bool
    margin: float
    learn_rho: bool
    rho: Array  # numerator and denominator of the least squares
    squares: Array  # sum of |e^|^2
    updates: Array


class Scratch(NamedTuple):
    scaling: Nothing
    rule: Any
    touched: Array
    c: Array
    own: Array  # the learner's own top set, where somebody else chose the set


class Estimate(NamedTuple):
    """e^ on S n Y^, S - Y^, Y^ - S, and the rest."""

    both: float
    only_drawn: float
    only_top: float
    rest: float


@kernel
def believe(state: Any, tables: Any) -> float:
    """rho, on the grid: from earlier rounds, never this one."""
    return RHO_GRID[rho_index(state.rho[0] / state.rho[1])] if tables.own.values.shape[0] > 1 else 0.0


@kernel
def estimate(state: Any, round: Round, answer: Answer, common: int) -> Estimate:
    """What the answer says, where ``common`` labels of the top set were shown."""
    if answer.label >= 0:  # the label itself is added later
        return Estimate(0.0, 0.0, 0.0, 0.0)
    table = round.tables.own.values
    e = table[rho_index(round.belief) if table.shape[0] > 1 else 0, common, int(answer.hit)]
    weight = 0.0
    if state.ordered and answer.hit:
        weight = np.exp(-round.odds.ordered - round.tables.own.log_tau1)
    return Estimate(e[0] + weight, e[1] + weight, e[2], e[3])


@kernel
def plain_step(scratch: Any, round: Round, answer: Answer, e: Estimate, common: int) -> int:
    """The step e^ - 1_{Y^} / m, less ``rest`` everywhere: a vector added to every row of W changes no
    ranking. So only the labels of Y^ and S move; how many."""
    touched, c, top, drawn = scratch.touched, scratch.c, round.top, round.drawn
    m: int = round.top.shape[0]
    for i in range(m):
        touched[i] = top[i]
        c[i] = (e.both if common == m or contains(drawn, top[i]) else e.only_top) - e.rest - 1.0 / m
    n = m
    if common < m and e.only_drawn != e.rest:
        for i in range(m):
            if not contains(top, drawn[i]):
                touched[n] = drawn[i]
                c[n] = e.only_drawn - e.rest
                n += 1
    if answer.label >= 0:
        touched[n] = answer.label
        c[n] = 1.0
        n += 1
    return n


@kernel
def full_step(state: Any, scratch: Any, round: Round, answer: Answer, e: Estimate) -> int:
    """The step on every eligible label: with the gate, among a part of the labels, or where the set is
    somebody else's (e^ then follows their top set, the rest of the step the learner's own)."""
    touched, c, s, eligible = scratch.touched, scratch.c, round.s, round.eligible
    top, drawn, m = round.top, round.drawn, round.top.shape[0]
    n: int = round.eligible.shape[0]
    own = scratch.own[:m]
    if round.given:
        top_positions(s, eligible, own)
    mean_top = 0.0
    for i in range(m):
        own[i] = eligible[own[i]] if round.given else top[i]
        mean_top += s[own[i]] / m
    for i in range(n):
        touched[i] = eligible[i]
        c[i] = e.rest
    for i in range(m):
        c[position(eligible, top[i])] = e.both if contains(drawn, top[i]) else e.only_top
        if not contains(top, drawn[i]):
            c[position(eligible, drawn[i])] = e.only_drawn
    if answer.label >= 0:
        c[position(eligible, answer.label)] = 1.0
    total = 1.0
    if state.gate:
        margin = state.margin if state.margin > 0.0 else 1.0 + np.sqrt(state.squares[0]) / 5.0
        total, squares = 0.0, 0.0
        for i in range(n):
            squares += c[i] * c[i]
            if margin - s[touched[i]] + mean_top > 0.0:
                total += c[i]
            else:
                c[i] = 0.0
        state.squares[0] += squares
    for i in range(m):
        c[position(eligible, own[i])] -= total / m
    return n


@kernel
def reads_scores(state: Any, round: Round) -> bool:
    """Not the plain step: with every label eligible it follows from the sets alone."""
    return bool(state.gate or round.given or round.eligible.shape[0] < round.s.shape[0])


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    n, m = round.eligible.shape[0], round.top.shape[0]
    if answer.label < 0 and n == m:  # everything was shown: the bit says nothing
        return True
    common = 0  # |S n Y^|
    for i in range(m):
        common += contains(round.drawn, round.top[i])
    e = estimate(state, round, answer, common)
    if reads_scores(state, round):
        moved = full_step(state, scratch, round, answer, e)
    else:
        moved = plain_step(scratch, round, answer, e, common)
    if not add_outer(state.W, scratch.touched, scratch.c, moved, round.x):
        return False
    state.updates[0] += 1
    if e.rest != 0.0 and state.updates[0] % CENTRE_EVERY == 0:
        centre(state.W, round.x)
    if state.learn_rho and answer.label < 0 and n > m:
        outside = (m - common) / (n - m)
        slope = common / m - outside
        state.rho[0] = 0.999 * state.rho[0] + slope * (int(answer.hit) - outside)
        state.rho[1] = 0.999 * state.rho[1] + slope * slope
    return True


class MCDBF(Learner):
    """MC-DBF, the paper's algorithm for one bit about a set.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gamma: the share of exploration, in (0, 1].
        estimate: ``"ordered"`` (the paper), ``"set"`` or ``"minimum-variance"``.
        gate: update only where the hinge loss with ``margin`` is positive.
        margin: the margin M of the gate; ``None`` follows the noise of the estimates.
        rho: P(y in top set) for the minimum-variance estimate; ``None`` learns it from the stream.
        explore: its estimates need the paper's draw: ``None``, or `superarm.explore.Dilute`.

    >>> import superarm as sa
    >>> learner = sa.MCDBF(n_labels=5, n_features=3, set_size=2, gamma=0.2, seed=1)
    >>> decision = learner.decide([1.0, 0.0, 0.5])
    >>> decision.labels, round(decision.propensity, 4)
    ([1, 0], 0.6914)
    >>> learner.update(decision, hit=True)
    """

    name = "mc-dbf"
    kernels = Kernels(learn, believe=believe, reads_scores=reads_scores)
    feedback = ("hit", "label")
    own_only = "its own, or given with top= and gamma="

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        gamma: float = 0.1,
        estimate: str = "ordered",
        gate: bool = False,
        margin: float | None = None,
        rho: float | None = None,
        explore: Rule | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.explore = rule_from(explore, self.of) if isinstance(explore, dict) else explore
        if self.explore is not None and not isinstance(self.explore, Dilute):
            wanted = "left out or Dilute: its estimates divide by the paper's probabilities"
            raise InvalidInput.must("explore", self.of, wanted, explore)
        self.gamma = number("gamma", self.of, gamma if self.explore is None else self.explore.gamma, 0.0, 1.0)
        self.estimate = choice("estimate", self.of, estimate, ESTIMATES)
        self.gate = bool(gate)
        self.margin = None if margin is None else number("margin", self.of, margin, 0.0)
        self.rho = None if rho is None else number("rho", self.of, rho, 0.0, 1.0)
        self._logged: dict[tuple[int, int, float], Held] = {}  # how sets in logs were drawn

    @property
    def rule(self) -> Dilute:
        return Dilute(gamma=self.gamma)

    def tables(self, n: int, m: int) -> Tables:
        return self._tables_of(n, m, self.gamma)

    def _tables_of(self, n: int, m: int, gamma: float) -> Tables:
        own: Estimates = estimates(n, m, gamma, self.estimate)
        return Tables(Dilute(gamma=gamma).table(n, m), own)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_logged": {}}

    def learns_from(self, decision: Decision) -> bool:
        return decision.gamma is not None and len(decision.top) > 0

    def given_odds(self, decision: Decision, sets: Array, among: Array) -> tuple[Held, float, float]:
        n, m, gamma = len(among), sets.shape[1], decision.gamma
        assert gamma is not None  # learns_from
        key = (n, m, gamma)
        if key not in self._logged:
            if len(self._logged) >= 1024:  # a gamma that decays is another number on every row
                self._logged.clear()
            self._logged[key] = Held(self._tables_of(n, min(n, m), gamma))
        tables, ordered = self._logged[key], decision.log_ordered_propensity
        if self.estimate == "ordered" and m < n:
            ordered = log_ordered_probability(n, m, gamma, np.isin(sets[1], sets[2]).tolist())
        return tables, ordered, float(self.state.rho[0] / self.state.rho[1])

    def start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            scaling=self.unit,
            rule=self.rule.start(),
            ordered=self.estimate == "ordered",
            gate=self.gate,
            margin=self.margin or 0.0,
            learn_rho=self.rho is None,
            rho=np.array([0.9 if self.rho is None else self.rho, 1.0]) * 20.0,
            squares=np.zeros(1),
            updates=np.zeros(1, np.int64),
        )

    def scratch(self) -> Scratch:
        k = self.n_labels
        touched, own = np.zeros((2, k), np.int64)
        return Scratch(Nothing(), self.rule.scratch(k), touched.copy(), np.zeros(k), own.copy())
