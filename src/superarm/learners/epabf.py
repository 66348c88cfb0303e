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

from typing import Any, NamedTuple

import numpy as np

from superarm.learners.base import Learner
from superarm.learners.loop import compile_loop
from superarm.numerics import add_outer, kernel, squared_norm, weights

VARIANTS = ("EPABF", "EPABF-I", "EPABF-II")


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    bias: float
    C: float
    variant: int
    c: np.ndarray[Any, Any]  # scratch


@kernel
def multipliers(losses: Any, at: int, a: float, high: float, delta: float) -> None:
    """Replace losses / X by lambda; ``at`` is the place of y~, ``high`` the upper bound on lambda."""
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
    X = squared_norm(x, state.bias)
    if design.n == 1 or X == 0.0:
        return True
    a = np.exp(-odds[0]) if hit else 0.0
    c, n = state.c, eligible.shape[0]
    at = 0
    for i in range(n):
        c[i] = max(1.0 - a * s[0, drawn[0]] + s[0, eligible[i]], 0.0) / X
        if eligible[i] == drawn[0]:
            at = i
    high = state.C if state.variant == 1 else np.inf
    delta = 1.0 / (2.0 * state.C * X) if state.variant == 2 else 0.0
    multipliers(c[:n], at, a, high, delta)
    total = 0.0
    for i in range(n):
        total += c[i]
        c[i] = -c[i]
    c[at] += a * total
    return add_outer(state.W, eligible, c, n, x, state.bias)


class EPABF(Learner):
    """Exact passive-aggressive with bandit feedback.

    Args:
        gamma: the share of exploration, in (0, 1].
        variant: ``"EPABF"``, ``"EPABF-I"`` or ``"EPABF-II"``.
        C: the bound on each multiplier (-I), or the price of the squared slacks (-II).
    """

    name = "epabf"
    loop = compile_loop(name, learn)
    single_label = True

    def __init__(
        self, *, gamma: float = 0.1, variant: str = "EPABF-I", C: float = 0.1, **common: Any
    ) -> None:
        super().__init__(**common)
        self.gamma: float = self._number("gamma", gamma, 0.0, 1.0)
        self.variant = self._choice("variant", variant, VARIANTS)
        self.C = self._number("C", C, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return State(
            W=weights(shape),
            bias=self.bias,
            C=self.C,
            variant=VARIANTS.index(self.variant),
            c=np.zeros(self.n_labels),
        )
