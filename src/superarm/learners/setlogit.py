"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (scaling.py).

**The update.** W += step (post - p) x~ with a constant step; predictions use the running average A
(averaging.py). A constant step escapes local optima, the average removes its noise. With the scores
s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'        where the gradient is taken
    post  softmax at  0.4 s + 0.6 s' (sparse: as p), times the likelihood of the bit, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  told: post = e_y

On a miss, the labels that were not shown give 2 % of their part of post to each other in proportion
to 1 / (credit + 0.01/k), credit being the running average of post: a label without credit is revived.

**The sets: leave out a runner-up, within a budget.** Labels ranked by softmax(s'), called p here. When
two labels compete, showing the first without the second says most, and costs only p of the second.
Rank r = 2..m is left out with probability

    pi_r = q b_r,   b_r = min(1, 2 p_r / (1 - p_1)) (p_r / p_1)^w,   w = 0.5 - 0.4 explore

one uniform u chooses: with C the running sums of pi, the labels in whose interval u or u + 1 falls
(at most min(2, k - m)); ranks m+1, m+2 fill up. The top label always stays. At m = 1 another label r
is shown in place of the top one with probability q p_r (p_r / p_1)^w.

    q = min(1, B / M),   B = (0.07 sqrt(m) + explore / (1 - explore)) sqrt(k t)

M sums what leaving out at q = 1 would have cost, sum_r b_r (p_r - p_{m+1}): exploring costs of the
order of sqrt(k t) misses whatever the data, and explore = 1 has no budget (q = 1).
With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.
"""

from __future__ import annotations

from math import lgamma
from typing import Any, NamedTuple

import numpy as np

from superarm.averaging import averaged_scores, averaged_step, averaging_rate, last_scores
from superarm.learners.base import LabelLearner, Learner, probabilities
from superarm.learners.loop import compile_loop
from superarm.numerics import contains, kernel, safe_to_add, softmax, top_positions, uniform, weights
from superarm.scaling import absorb, prepare, prepared

WORDS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}
MIX_GRADIENT, MIX_DENSE, MIX_SPARSE = 0.5, 0.6, 0.5  # the average's share; of post: dense, sparse
REVIVE = 0.02
STEP_DENSE, STEP_SPARSE = 4.0, 12.0
BIAS_DENSE, BIAS_SPARSE = 0.1**0.5, 0.02**0.5


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    A: np.ndarray[Any, Any]
    omega: np.ndarray[Any, Any]
    bias: float
    step: float
    share: float  # of the average, in post
    forget: float
    false_yes: float
    false_no: float
    explore: float
    uniform: float
    credit: np.ndarray[Any, Any]
    clock: np.ndarray[Any, Any]  # rounds, and what exploring without a budget would have cost
    # scaling.py
    mean: np.ndarray[Any, Any]
    var: np.ndarray[Any, Any]
    inverse: np.ndarray[Any, Any]
    df: np.ndarray[Any, Any]
    seen: np.ndarray[Any, Any]
    z: np.ndarray[Any, Any]  # scratch
    # scratch
    labels: np.ndarray[Any, Any]
    mixed: np.ndarray[Any, Any]
    p: np.ndarray[Any, Any]
    c: np.ndarray[Any, Any]
    order: np.ndarray[Any, Any]
    sums: np.ndarray[Any, Any]


@kernel
def score(state: Any, x: Any, s: Any) -> None:
    averaged_scores(state.W, state.A, state.omega, prepare(state, x), state.bias, s[0], s[1])


@kernel
def mix(s: Any, share: float, out: Any) -> None:
    a, b = np.float32(share), np.float32(1.0 - share)
    for r in range(s.shape[1]):
        out[r] = a * s[0, r] + b * s[1, r]


# ---------------------------------------------------------------- the sets


@kernel
def plan(state: Any, p: Any, order: Any, n: int, m: int) -> int:
    """Fill ``sums`` with the running sums of pi, move the clock, and return how many there are.

    Sum i belongs to rank i + 2; at m = 1, to position i, shown in place of the top one.
    """
    sums, clock = state.sums, state.clock
    sharp = 0.5 - 0.4 * state.explore
    clock[0] *= 1.0 - state.forget
    clock[1] *= 1.0 - state.forget
    q = 1.0
    if state.explore < 1.0 and clock[1] > 0.0:
        budget = 0.07 * np.sqrt(m) + state.explore / (1.0 - state.explore)
        q = min(1.0, budget * np.sqrt(n * clock[0]) / clock[1])
    best, cost = p[order[0]], 0.0
    sums[0] = 0.0
    if m == 1:
        for i in range(n):
            b = 0.0
            if i != order[0]:
                b = p[i] * np.exp(sharp * np.log(p[i] / best)) if p[i] > 0.0 else 0.0
                cost += b * (best - p[i])
            sums[i + 1] = sums[i] + q * b
    else:
        rest, fill = max(1e-9, 1.0 - best), p[order[m]]
        for i in range(m - 1):
            own = p[order[i + 1]]
            b = min(1.0, 2.0 * own / rest)
            if sharp > 0.0:
                b *= np.exp(sharp * np.log(max(own, 1e-30) / best))
            cost += b * (own - fill)
            sums[i + 1] = sums[i] + q * b
    clock[0] += 1.0
    clock[1] += cost
    return n if m == 1 else m - 1


@kernel
def left_out(u: float, sums: Any, count: int, most: int) -> tuple[int, int]:
    """The intervals in which u and u + 1 fall; -1 for none."""
    first, second = -1, -1
    for i in range(count):
        if sums[i] <= u < sums[i + 1]:
            first = i
        if most > 1 and sums[i] <= u + 1.0 < sums[i + 1]:
            second = i
    return first, second


@kernel
def probability_left_out(first: int, second: int, sums: Any, count: int, most: int) -> float:
    """The probability, over u in [0, 1), that exactly these intervals are hit."""
    total = sums[count]
    twice = max(0.0, total - 1.0) if most > 1 else 0.0  # below this u, two are left out
    if first < 0:
        return float(max(0.0, 1.0 - total))
    if second < 0:
        return float(max(0.0, min(1.0, sums[first + 1]) - max(twice, sums[first])))
    high = min(min(sums[first + 1], sums[second + 1] - 1.0), twice)
    return float(max(0.0, high - max(sums[first], sums[second] - 1.0)))


@kernel
def rule_probability(drawn: Any, order: Any, sums: Any, n: int, m: int, count: int) -> float:
    """The probability that the rule shows exactly these positions, in whatever order."""
    if m == 1:
        first = -1 if drawn[0] == order[0] else drawn[0]
        return probability_left_out(first, -1, sums, count, 1)
    if not contains(drawn, order[0]):
        return 0.0
    most = min(2, n - m)
    first, second, missing = -1, -1, 0
    for i in range(1, m):
        if not contains(drawn, order[i]):
            second = first
            first = i - 1
            missing += 1
    if missing > most:
        return 0.0
    for i in range(missing):
        if not contains(drawn, order[m + i]):
            return 0.0
    if missing == 2:  # u hits the earlier interval or the later one first
        return probability_left_out(second, first, sums, count, most) + probability_left_out(
            first, second, sums, count, most
        )
    return probability_left_out(first, -1, sums, count, most)


@kernel
def choose(
    state: Any, design: Any, s: Any, eligible: Any, seed: int, round_: int, drawn: Any, top: Any, odds: Any
) -> None:
    n, m = eligible.shape[0], top.shape[0]
    odds[0], odds[1] = 0.0, 0.0
    if n == m:
        top_positions(s[0], eligible, top)
        for i in range(m):
            drawn[i] = top[i]
    else:
        order = state.order[: min(n, m + 2)]
        top_positions(s[0], eligible, order)
        softmax(s[0], eligible, 1.0, state.p)
        for i in range(m):
            top[i] = order[i]
        count = plan(state, state.p, order, n, m)
        if state.uniform > 0.0 and uniform(seed, round_, 1) < state.uniform:
            for i in range(m):  # Floyd's way to m out of n
                at = int(uniform(seed, round_, 2 + i) * (n - m + i + 1))
                drawn[i] = at if not contains(drawn[:i], at) else n - m + i
        else:
            first, second = left_out(uniform(seed, round_, 0), state.sums, count, min(2, n - m))
            if m == 1:
                drawn[0] = order[0] if first < 0 else first
            else:
                filled = 0
                for i in range(order.shape[0]):
                    if filled < m and (i == 0 or (i - 1 != first and i - 1 != second)):
                        drawn[filled] = order[i]
                        filled += 1
        chance = rule_probability(drawn, order, state.sums, n, m, count)
        if state.uniform > 0.0:
            log_sets = lgamma(n + 1.0) - lgamma(m + 1.0) - lgamma(n - m + 1.0)
            chance = (1.0 - state.uniform) * chance + state.uniform * np.exp(-log_sets)
        odds[0] = np.log(chance)
        odds[1] = odds[0]
    for i in range(m):
        top[i] = eligible[top[i]]
        drawn[i] = eligible[drawn[i]]


# ---------------------------------------------------------------- the update


@kernel
def posterior(state: Any, drawn: Any, hit: bool) -> None:
    """Turn p, in place, into post: the chance of each label given the bit."""
    p, k = state.p, state.p.shape[0]
    inside = 1.0 - state.false_no if hit else state.false_no
    outside = state.false_yes if hit else 1.0 - state.false_yes
    shown = 0.0
    for i in range(drawn.shape[0]):
        shown += p[drawn[i]]
    total = shown * inside + max(1.0 - shown, 0.0) * outside
    if total < 1e-20:  # the bit had probability 0: nothing can be learnt from it
        return
    for i in range(drawn.shape[0]):
        p[drawn[i]] *= -inside / total  # marked by a minus
    revived = 0.0 if hit else REVIVE
    given, spread, floor = 0.0, 0.0, 0.01 / k
    for r in range(k):
        if np.signbit(p[r]):
            p[r] = -p[r]
        else:
            p[r] *= outside / total
            if revived > 0.0:
                given += revived * p[r]
                p[r] *= 1.0 - revived
                # until the total is known, what r receives waits in c
                state.c[r] = 1.0 / (state.credit[r] + floor)
                spread += state.c[r]
                continue
        state.c[r] = 0.0
    if given > 0.0:
        for r in range(k):
            p[r] += given * state.c[r] / spread


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
    p, c, k = state.p, state.c, state.c.shape[0]
    if not safe_to_add(c, 0, x):
        return False
    last_scores(state.W, prepared(state, x), state.bias, s[1])
    if label >= 0:
        for r in range(k):
            p[r] = 0.0
        p[label] = 1.0
    else:
        mix(s, state.share, state.mixed)
        softmax(state.mixed, state.labels, 1.0, p)
        posterior(state, drawn, hit)
    mix(s, MIX_GRADIENT, state.mixed)
    softmax(state.mixed, state.labels, 1.0, c)
    rate = averaging_rate(state.omega[1], state.forget)
    for r in range(k):
        state.credit[r] += rate * (p[r] - state.credit[r])
        c[r] = state.step * (p[r] - c[r])
    averaged_step(state.W, state.A, state.omega, c, prepared(state, x), state.bias, state.forget)
    absorb(state, x)
    return True


def start(learner: Any, shape: tuple[int, int], **settings: float) -> State:
    """The state of a learner with this update."""
    k, d, sparse = learner.n_labels, learner.n_features, learner.sparse
    bias = (BIAS_SPARSE if sparse else BIAS_DENSE) if learner.intercept is True else float(learner.intercept)
    dense_size = 1 if sparse else d
    return State(
        W=weights(shape),
        A=weights(shape),
        omega=np.array([1.0, 0.0]),
        bias=bias,
        share=MIX_SPARSE if sparse else MIX_DENSE,
        step=learner.step or (STEP_SPARSE if sparse else STEP_DENSE),
        forget=settings.get("forget", 0.0),
        false_yes=settings.get("false_yes", 0.0),
        false_no=settings.get("false_no", 0.0),
        explore=settings.get("explore", 0.0),
        uniform=settings.get("uniform", 0.0),
        credit=np.full(k, 1.0 / k),
        clock=np.zeros(2),
        mean=np.zeros(dense_size, np.float32),
        var=np.zeros(dense_size, np.float32),
        inverse=np.zeros(dense_size, np.float32),
        df=np.zeros(d if sparse else 1, np.float32),
        seen=np.zeros(3),
        z=np.zeros(d, np.float32),
        labels=np.arange(k),
        mixed=np.zeros(k, np.float32),
        p=np.zeros(k),
        c=np.zeros(k),
        order=np.zeros(k, np.int64),
        sums=np.zeros(k + 1),
    )


class SetLogit(Learner):
    """Maximum likelihood from bits about sets: the learner to start with. Nothing needs tuning.

    Args:
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; or a number from 0 (show) to 1 (rank).
        forget: the least weight of a new round, for streams that drift (0.001 remembers about 1000
            rounds); 0 never forgets.
        false_no: the chance of a "no" although the right label was shown (nobody looked).
        false_yes: the chance of a "yes" although it was not.
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
        step: the step size; ``None`` is 4 for dense rows and 12 for sparse ones.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> decision.labels, round(decision.propensity, 2)
    (['ant', 'bee'], 0.33)
    >>> learner.update(decision, hit=False)
    """

    name = "set-logit"
    loop = compile_loop(name, learn, score=score, choose=choose)
    feedback = ("hit", "label")
    learns_from_given = True
    moves_ineligible = True  # its softmax runs over all labels: the right one need not be eligible
    layout_matters = True
    n_scores = 2

    def __init__(
        self,
        *,
        explore: str | float = "balanced",
        forget: float = 0.0,
        false_no: float = 0.0,
        false_yes: float = 0.0,
        uniform: float = 0.0,
        step: float | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.explore = explore
        if isinstance(explore, str) and explore not in WORDS:
            raise self._invalid("explore", "'show', 'balanced', 'rank' or a number in [0, 1]", explore)
        number = WORDS[explore] if isinstance(explore, str) else explore
        self._explore = self._share("explore", number, 1.0)
        self.forget = self._share("forget", forget, 0.5)
        self.false_no = self._share("false_no", false_no, 0.99)
        self.false_yes = self._share("false_yes", false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self._invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)
        self.uniform = self._share("uniform", uniform, 1.0)
        self.step = None if step is None else self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return start(
            self,
            shape,
            explore=self._explore,
            forget=self.forget,
            false_yes=self.false_yes,
            false_no=self.false_no,
            uniform=self.uniform,
        )

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))


class AveragedSoftmax(LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        step: the step size; ``None`` is 4 for dense rows and 12 for sparse ones.
    """

    name = "softmax-averaged"
    loop = compile_loop(name, learn, score=score, sees_label=True)
    moves_ineligible = True
    layout_matters = True
    n_scores = 2

    def __init__(self, *, step: float | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.step = None if step is None else self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return start(self, shape)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))
