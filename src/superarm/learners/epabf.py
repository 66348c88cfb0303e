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
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels import Answer, Kernels, Round, Unit, add_outer, kernel, squared_norm, weights
from superarm.labels import Label
from superarm.learners.linear import DrawingLearner
from superarm.parameters import choice, number

VARIANTS = ("EPABF", "EPABF-I", "EPABF-II")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    scaling: Unit
    rule: Any
    C: float
    variant: int


@kernel
def multipliers(losses: Any, at: int, a: float, high: float, delta: float) -> None:
    """Replace losses / X by lambda; ``at`` is the position of y~, ``high`` the upper bound on lambda."""
    n = losses.shape[0]
    own = losses[at]
    low_theta, high_theta = -np.inf, np.inf
    theta = 0.0
    v = 0.0
    for _ in range(200):
        S, slope = 0.0, 0.0
        for i in range(n):
            if i != at:
                value = (losses[i] - theta) / (1.0 + delta)
                S += min(max(value, 0.0), high)
                if 0.0 < value < high:
                    slope -= 1.0 / (1.0 + delta)
        cross, diagonal = a * a - a, (a - 1.0) * (a - 1.0) + delta
        free = (own - cross * S) / diagonal if diagonal > 0.0 else (high if own > cross * S else 0.0)
        v = min(max(free, 0.0), high)
        gap = theta - a * a * S - cross * v
        slope_v = -cross / diagonal * slope if 0.0 < free < high else 0.0
        if abs(gap) <= 1e-13 * (1.0 + abs(theta)):
            break
        if gap > 0.0:
            high_theta = theta
        else:
            low_theta = theta
        new = theta - gap / (1.0 - a * a * slope - cross * slope_v)
        if not low_theta < new < high_theta:
            new = 0.5 * (low_theta + high_theta)
        if new in (theta, low_theta, high_theta):
            break
        theta = new
    for i in range(n):
        losses[i] = min(max((losses[i] - theta) / (1.0 + delta), 0.0), high)
    losses[at] = v


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    s, eligible, X = round.s, round.eligible, squared_norm(round.x)
    drawn = round.drawn[0]
    if eligible.shape[0] == 1 or X == 0.0:
        return True
    a = np.exp(-round.odds.ordered) if answer.hit else 0.0
    c, n = scratch.c, eligible.shape[0]
    at = 0
    for i in range(n):
        c[i] = max(1.0 - a * s[drawn] + s[eligible[i]], 0.0) / X
        if eligible[i] == drawn:
            at = i
    high = state.C if state.variant == 1 else np.inf
    delta = 1.0 / (2.0 * state.C * X) if state.variant == 2 else 0.0
    multipliers(c[:n], at, a, high, delta)
    total = 0.0
    for i in range(n):
        total += c[i]
        c[i] = -c[i]
    c[at] += a * total
    return add_outer(state.W, eligible, c, n, round.x)


class EPABF(DrawingLearner):
    """Exact passive-aggressive with bandit feedback.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the constant feature of every row: True is 0.1.
        gamma: the share of exploration, in (0, 1].
        variant: ``"EPABF"``, ``"EPABF-I"`` or ``"EPABF-II"``.
        C: the bound on each multiplier (-I), or the price of the squared slacks (-II).
    """

    name = "epabf"
    kernels = Kernels(learn)

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
        )
        self.gamma = number("gamma", self.of, gamma, 0.0, 1.0)
        self.variant = choice("variant", self.of, variant, VARIANTS)
        self.C = number("C", self.of, C, 0.0)

    def start(self, shape: tuple[int, int]) -> State:
        return State(weights(shape), self.unit, self.rule.start(), self.C, VARIANTS.index(self.variant))
