"""RunnerUp: leave out a runner-up, within a budget. How SetLogit chooses what to show.

Labels are ranked by p = softmax of the scores, over the eligible labels. When two labels compete,
showing the first without the second says most, and costs only p of the second. Rank r = 2..m is left
out with probability

    pi_r = q b_r,   b_r = min(1, 2 p_r / (1 - p_1)) (p_r / p_1)^w,   w = 0.5 - 0.4 explore

One uniform u chooses: with C the running sums of pi, the labels in whose interval u or u + 1 falls
(at most min(2, n - m)); ranks m+1, m+2 fill up. The top label always stays. At m = 1 another label r
is shown in place of the top one with probability q p_r (p_r / p_1)^w.

    q = min(1, B / M),   B = (0.07 sqrt(m) + explore / (1 - explore)) sqrt(n t)

M sums what leaving out at q = 1 would have cost, sum_r b_r (p_r - p_{m+1}): exploring costs of the
order of sqrt(n t) misses whatever the data, and explore = 1 has no budget (q = 1).
With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from superarm.errors import InvalidInput
from superarm.explore.base import Rule
from superarm.explore.draws import Draw, FewSets
from superarm.explore.uniform import draw_uniform, log_uniform
from superarm.kernels.compiling import kernel
from superarm.kernels.loop import Odds
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import contains, softmax, top_positions
from superarm.labels import Label, Labels
from superarm.parameters import share

__all__ = ["WORDS", "RunnerUp"]

WORDS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}

Array = np.ndarray[Any, Any]


class State(NamedTuple):
    explore: float
    uniform: float
    forget: float
    clock: Array  # t: rounds, and M: what exploring without a budget would have cost


class Scratch(NamedTuple):
    p: Array
    order: Array  # positions of the labels ranked 1 to m + 2
    sums: Array  # C, the running sums of pi


@kernel
def leave_out(rule: Any, scratch: Any, order: Any, n: int, m: int) -> int:
    """Fill ``sums`` with the running sums of pi, move the clock, and return how many there are.

    Sum i belongs to rank i + 2; at m = 1, to position i, shown in place of the top one.
    """
    p, sums, clock = scratch.p, scratch.sums, rule.clock
    sharp = 0.5 - 0.4 * rule.explore
    clock[0] *= 1.0 - rule.forget
    clock[1] *= 1.0 - rule.forget
    q = 1.0
    if rule.explore < 1.0 and clock[1] > 0.0:
        budget = 0.07 * np.sqrt(m) + rule.explore / (1.0 - rule.explore)
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
    rule: Any,
    scratch: Any,
    table: Any,
    s: Any,
    eligible: Any,
    moment: Any,
    drawn: Any,
    top: Any,
    numbers: Any,
) -> Odds:
    n, m = eligible.shape[0], top.shape[0]
    odds = 0.0
    if n == m:
        top_positions(s, eligible, top)
        for i in range(m):
            drawn[i] = top[i]
    else:
        order, sums = scratch.order[: min(n, m + 2)], scratch.sums
        top_positions(s, eligible, order)
        softmax(s, eligible, 1.0, scratch.p)
        for i in range(m):
            top[i] = order[i]
        count = leave_out(rule, scratch, order, n, m)
        numbers[0] = eligible[order[m]] if m > 1 else -1.0
        numbers[1] = eligible[order[m + 1]] if m > 1 and m + 1 < n else -1.0
        for i in range(count):
            numbers[i + 2] = sums[i + 1]
        if rule.uniform > 0.0 and uniform(moment.seed, moment.round, 1) < rule.uniform:
            draw_uniform(n, moment, 2, drawn)
        else:
            first, second = left_out(uniform(moment.seed, moment.round, 0), sums, count, min(2, n - m))
            if m == 1:
                drawn[0] = order[0] if first < 0 else first
            else:
                filled = 0
                for i in range(order.shape[0]):
                    if filled < m and (i == 0 or (i - 1 != first and i - 1 != second)):
                        drawn[filled] = order[i]
                        filled += 1
        chance = rule_probability(drawn, order, sums, n, m, count)
        if rule.uniform > 0.0:
            chance = (1.0 - rule.uniform) * chance + rule.uniform * np.exp(log_uniform(n, m))
        odds = np.log(chance)
    for i in range(m):
        top[i] = eligible[top[i]]
        drawn[i] = eligible[drawn[i]]
    return Odds(odds, odds)


def strength(explore: Any, of: str) -> float:
    """The number behind a word, or the number itself."""
    if isinstance(explore, bool) or not isinstance(explore, str | int | float) or explore == "":
        raise InvalidInput.must("explore", of, "a word, a number in [0, 1] or a rule", explore)
    if isinstance(explore, str) and explore not in WORDS:
        wanted = "'show', 'balanced', 'rank', a number in [0, 1] or a rule"
        raise InvalidInput.must("explore", of, wanted, explore)
    return share("explore", of, WORDS[explore] if isinstance(explore, str) else explore)


class RunnerUp(Rule):
    """Leave out a runner-up now and then, within a budget.

    Args:
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; or a number from 0 (show) to 1 (rank).
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
        forget: the least weight of a new round in the budget; 0 never forgets.
        set_size: how many labels to show.
        seed: every draw is a pure function of (seed, round, position).
        labels: the names of the labels, if they have names.

    >>> rule = RunnerUp(set_size=2, labels=["ant", "bee", "cat", "dog"])
    >>> decision = rule.decide(probabilities=[0.5, 0.3, 0.15, 0.05])
    >>> decision.top, round(decision.propensity, 3)
    (['ant', 'bee'], 0.858)
    """

    name = "runner-up"
    choose = choose

    def __init__(
        self,
        *,
        explore: str | float = "balanced",
        uniform: float = 0.0,
        forget: float = 0.0,
        set_size: int = 1,
        seed: int = 0,
        labels: Sequence[Label] | None = None,
    ) -> None:
        super().__init__(set_size=set_size, seed=seed, labels=labels)
        of = type(self).__name__
        self.explore: str | float = explore
        self.strength = strength(explore, of)
        self.uniform = share("uniform", of, uniform)
        self.forget = share("forget", of, forget, 0.5)

    def start(self) -> State:
        return State(self.strength, self.uniform, self.forget, np.zeros(2))

    def scratch(self, k: int) -> Scratch:
        return Scratch(np.zeros(k), np.zeros(k, np.int64), np.zeros(k + 1))

    def n_numbers(self, n: int, m: int) -> int:
        if n == m:
            return 0
        return 2 + (n if m == 1 else m - 1)

    def record(self, numbers: Array, labels: Labels) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name, "explore": self.strength, "uniform": self.uniform}
        if len(numbers):  # else everything is shown
            fill = [int(number) for number in numbers[:2] if number >= 0.0]
            record |= {"next": labels.public(fill), "sums": numbers[2:].tolist()}
        return record

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        if "sums" not in record:
            return FewSets(eligible, m, [(top, 1.0)])
        sums, most = [0.0, *record["sums"]], min(2, len(eligible) - m) if m > 1 else 1
        # between these points, u leaves out the same labels
        edges = sorted({0.0, 1.0, *(c - j for c in sums for j in range(most) if 0.0 < c - j < 1.0)})
        sets = []
        for low, high in pairwise(edges):
            u = (low + high) / 2
            gone = [i for j in range(most) for i in range(len(sums) - 1) if sums[i] <= u + j < sums[i + 1]]
            if m == 1:
                shown = [eligible[i] for i in gone] or [top[0]]
            else:
                stay = [r for i, r in enumerate(top) if i - 1 not in gone]
                shown = [*stay, *record["next"]][:m]
            sets.append((shown, high - low))
        return FewSets(eligible, m, sets, record["uniform"])
