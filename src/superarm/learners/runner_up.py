"""Sets that leave out a runner-up, within a budget: how SetLogit chooses what to show.

Labels are ranked by p = softmax of the average's scores, over the eligible labels. When two labels
compete, showing the first without the second says most, and costs only p of the second. Rank
r = 2..m is left out with probability

    pi_r = q b_r,   b_r = min(1, 2 p_r / (1 - p_1)) (p_r / p_1)^w,   w = 0.5 - 0.4 explore

One uniform u chooses: with C the running sums of pi, the labels in whose interval u or u + 1 falls
(at most min(2, k - m)); ranks m+1, m+2 fill up. The top label always stays. At m = 1 another label r
is shown in place of the top one with probability q p_r (p_r / p_1)^w.

    q = min(1, B / M),   B = (0.07 sqrt(m) + explore / (1 - explore)) sqrt(k t)

M sums what leaving out at q = 1 would have cost, sum_r b_r (p_r - p_{m+1}): exploring costs of the
order of sqrt(k t) misses whatever the data, and explore = 1 has no budget (q = 1).
With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.

The state has: explore, uniform, forget, clock (float64, 2: rounds, and M), and scratch p (float64, k),
order (int64, k), sums (float64, k + 1).
"""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np

from superarm.numerics import contains, kernel, softmax, top_positions, uniform

__all__ = ["choose", "left_out", "plan", "probability_left_out", "rule_probability"]


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
