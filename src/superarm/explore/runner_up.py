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

Labels with equal scores are ranked at random (ties.py). Before the first answer that is all of them.
In a batch, sets that are still unanswered count as asked: with ``pending`` of them (at most 300; each
answer halves them) and ``answers`` so far, labels whose p differ by less than the factor
1 + pending / answers are tied. Where every answer comes at once, pending is 0.

With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from superarm.errors import InvalidInput
from superarm.explore.base import Rule, own_order
from superarm.explore.draws import Draw, FewSets, TiedSets
from superarm.explore.ties import Ties, count_groups, find_ties, group_of, order_ties, way_to_choose
from superarm.explore.uniform import draw_uniform, log_uniform
from superarm.kernels.compiling import kernel
from superarm.kernels.loop import Odds
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import contains, softmax, top_positions
from superarm.labels import Label, Labels
from superarm.parameters import share

__all__ = ["WORDS", "RunnerUp"]

WORDS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}
MOST_PENDING = 300.0
EQUAL = 1e-5  # scores of labels with equal histories may differ by rounding

Array = np.ndarray[Any, Any]


class State(NamedTuple):
    explore: float
    uniform: float
    forget: float
    clock: Array  # t: rounds, and M: what exploring without a budget would have cost
    batch: Array  # pending, answers


class Scratch(NamedTuple):
    p: Array
    order: Array  # positions of the labels ranked 1 to m + 3
    sums: Array  # C, the running sums of pi
    ties: Ties


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
            b = p[i] * np.exp(sharp * np.log(p[i] / best)) if p[i] > 0.0 else 0.0
            cost += b * (best - p[i])
            sums[i + 1] = sums[i] + q * b
    else:
        rest, fill = max(1e-9, 1.0 - best), p[order[m]]
        for i in range(m - 1):
            own = p[order[i + 1]]
            b = min(1.0, 2.0 * own / rest) * np.exp(sharp * np.log(max(own, 1e-30) / best))
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
def probability_of_ranks(first: int, second: int, sums: Any, count: int, most: int) -> float:
    """The probability that exactly these are left out, in whatever order u finds them."""
    if second < 0:
        return probability_left_out(first, -1, sums, count, most)
    return probability_left_out(first, second, sums, count, most) + probability_left_out(
        second, first, sums, count, most
    )


@kernel
def set_probability(drawn: Any, order: Any, sums: Any, n: int, m: int, count: int) -> float:
    """The probability that the rule shows exactly these positions, in whatever order; without ties."""
    if m == 1:
        stays = max(0.0, 1.0 - sums[count]) if drawn[0] == order[0] else 0.0
        return float(sums[drawn[0] + 1] - sums[drawn[0]] + stays)
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
    return probability_of_ranks(first, second, sums, count, most)


@kernel
def tied_probability(
    drawn: Any, ties: Any, groups: int, s: Any, eligible: Any, sums: Any, count: int
) -> float:
    """The same where labels are tied, over all the orders they could have had."""
    n, m = eligible.shape[0], drawn.shape[0]
    if m == 1:
        in_place = sums[drawn[0] + 1] - sums[drawn[0]]
        on_top = group_of(ties, 1, s[eligible[drawn[0]]]) == 0
        return float(in_place + (max(0.0, 1.0 - sums[count]) / ties.size[0] if on_top else 0.0))
    if not count_groups(ties, groups, s, eligible, drawn):
        return 0.0
    way, most, total = way_to_choose(ties, groups), min(2, n - m), 0.0
    wanted, group = ties.wanted, ties.group
    for i in range(m):
        wanted[group[i]] -= 1  # what is left to explain, beyond ranks 1 to m
    for first in range(-1, m - 1):
        for second in range(-1, max(first, 0)):
            missing = (first >= 0) + (second >= 0)
            if missing > most:
                continue
            for sign in (1, -1):  # try it, and take it back
                if first >= 0:
                    wanted[group[first + 1]] += sign
                    wanted[group[m]] -= sign
                if second >= 0:
                    wanted[group[second + 1]] += sign
                    wanted[group[m + 1]] -= sign
                if sign == 1:
                    different = 0
                    for g in range(groups):
                        different += wanted[g] != 0
                    if different == 0:
                        total += probability_of_ranks(first, second, sums, count, most)
    return total * way


@kernel
def write_ties(
    ties: Any, groups: int, s: Any, eligible: Any, order: Any, ranks: int, numbers: Any, at: int
) -> None:
    """Write down the groups of ties, from ``numbers[at]`` on.

    How many groups (0: no ties), the group of each rank, +1 or -1, how many labels follow, and these:
    the labels behind the ranks that are tied with the last one (+1), or if they are fewer, the others.
    """
    numbers[at] = groups
    if groups == 0:
        return
    last, first = groups - 1, ranks
    for i in range(ranks - 1, -1, -1):
        numbers[at + 1 + i] = ties.group[i]
        if ties.group[i] == last:
            first = i
    behind = ties.size[last] - (ranks - first)
    rest = eligible.shape[0] - ranks - behind
    inside = behind <= rest
    numbers[at + 1 + ranks] = 1.0 if inside else -1.0
    numbers[at + 2 + ranks] = behind if inside else rest
    at += 3 + ranks
    for i in range(eligible.shape[0]):
        tied = ties.low[last] <= s[eligible[i]] <= ties.high[last]
        if tied == inside and not contains(order[:ranks], i):
            numbers[at] = eligible[i]
            at += 1


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
    pending, answers, near, odds = rule.batch[0], rule.batch[1], EQUAL, 0.0
    if answers > 0.0:
        near += np.log(1.0 + pending / answers)
    rule.batch[0] = min(MOST_PENDING, pending + 1.0)
    if n == m:
        top_positions(s, eligible, top)
        for i in range(m):
            drawn[i] = top[i]
    else:
        ranks, sums, ties = min(n, m + 2) if m > 1 else 1, scratch.sums, scratch.ties
        order = scratch.order[: min(n, ranks + 1)]
        top_positions(s, eligible, order)
        softmax(s, eligible, 1.0, scratch.p)
        groups = find_ties(ties, s, eligible, order, ranks, near)
        if groups > 0:
            order_ties(ties, s, eligible, order, ranks, scratch.p, moment, 2 + m)
        for i in range(m):
            top[i] = order[i]
        count = leave_out(rule, scratch, order, n, m)
        numbers[0] = eligible[order[m]] if m > 1 else -1.0
        numbers[1] = eligible[order[m + 1]] if m > 1 and m + 1 < n else -1.0
        numbers[2] = count
        for i in range(count):
            numbers[i + 3] = sums[i + 1]
        write_ties(ties, groups, s, eligible, order, ranks, numbers, count + 3)
        if rule.uniform > 0.0 and uniform(moment.seed, moment.round, 1) < rule.uniform:
            draw_uniform(n, moment, 2, drawn)
        else:
            first, second = left_out(uniform(moment.seed, moment.round, 0), sums, count, min(2, n - m))
            if m == 1:
                drawn[0] = order[0] if first < 0 else first
            else:
                filled = 0
                for i in range(ranks):
                    if filled < m and (i == 0 or (i - 1 != first and i - 1 != second)):
                        drawn[filled] = order[i]
                        filled += 1
        if groups > 0:
            chance = tied_probability(drawn, ties, groups, s, eligible, sums, count)
        else:
            chance = set_probability(drawn, order, sums, n, m, count)
        if rule.uniform > 0.0:
            chance = (1.0 - rule.uniform) * chance + rule.uniform * np.exp(log_uniform(n, m))
        odds = np.log(chance)
    for i in range(m):
        top[i] = eligible[top[i]]
        drawn[i] = eligible[drawn[i]]
    return Odds(odds, odds)


@kernel
def hear(rule: Any) -> None:
    """An answer has come."""
    rule.batch[0] = np.floor(rule.batch[0] * 0.5)
    rule.batch[1] += 1.0


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
    hear = hear
    names_labels = ("next", "order", "tied", "untied")

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
        return State(self.strength, self.uniform, self.forget, np.zeros(2), np.zeros(2))

    def scratch(self, k: int) -> Scratch:
        return Scratch(np.zeros(k), np.zeros(k + 1, np.int64), np.zeros(k + 1), Ties.of(k))

    def n_numbers(self, n: int, m: int) -> int:
        if n == m:
            return 0
        count, ranks = (n, 1) if m == 1 else (m - 1, min(n, m + 2))
        return 3 + count + 3 + ranks + n  # memory that is not written to is not used

    def kept(self, numbers: Array) -> Array:
        ranks, count = self._written(numbers)
        used = 4 + count
        if numbers[3 + count] > 0.0:
            used += ranks + 2 + int(numbers[5 + count + ranks])
        return numbers[:used].copy()

    @staticmethod
    def _written(numbers: Sequence[float] | Array) -> tuple[int, int]:
        """How many ranks and how many sums there are."""
        fill, count = int(numbers[0] >= 0.0) + int(numbers[1] >= 0.0), int(numbers[2])
        return (count + 1 + fill if fill else 1), count

    def record(self, numbers: Array, labels: Labels) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name, "explore": self.strength, "uniform": self.uniform}
        if len(numbers):  # else everything is shown
            written = numbers.tolist()
            fill = [int(number) for number in written[:2] if number >= 0.0]
            ranks, count = self._written(written)
            record["next"], record["sums"] = labels.public(fill), written[3 : 3 + count]
            ties = written[3 + count :]
            if ties[0] > 0.0:
                which, size = ties[1 + ranks : 3 + ranks]
                record["groups"] = [int(group) for group in ties[1 : 1 + ranks]]
                some = labels.public(ties[3 + ranks : 3 + ranks + int(size)])
                record["tied" if which > 0.0 else "untied"] = some
            if not fill:  # m = 1: a sum for each label, in this order
                record |= own_order(count, labels)
        return record

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        if "sums" not in record:
            return FewSets(eligible, m, [(top, 1.0)])
        ranked = [*top, *record["next"]]
        ways = [
            ([record.get("order", eligible)[i] for i in gone] or top, chance)
            if m == 1
            else ([r for i, r in enumerate(ranked) if i - 1 not in gone][:m], chance)
            for gone, chance in _left_out(record["sums"], min(2, len(eligible) - m) if m > 1 else 1)
        ]
        if "groups" not in record:
            return FewSets(eligible, m, ways, record["uniform"])
        return TiedSets(eligible, m, ways, _groups(record, ranked, eligible), record["uniform"])


def _left_out(sums: Sequence[float], most: int) -> list[tuple[list[int], float]]:
    """The intervals that are hit, for each stretch of u between which they stay the same."""
    edges = [0.0, *sums]
    cuts = sorted({0.0, 1.0, *(c - j for c in edges for j in range(most) if 0.0 < c - j < 1.0)})
    found = []
    for low, high in pairwise(cuts):
        u = (low + high) / 2
        gone = [i for j in range(most) for i in range(len(sums)) if edges[i] <= u + j < edges[i + 1]]
        found.append((gone, high - low))
    return found


def _groups(record: dict[str, Any], ranked: Sequence[Label], eligible: Sequence[Label]) -> list[list[Label]]:
    """The labels of each group of ties, in the order of the ranks."""
    groups: list[list[Label]] = [[] for _ in range(record["groups"][-1] + 1)]
    for label, group in zip(ranked, record["groups"], strict=True):
        groups[group].append(label)
    if "tied" in record:
        groups[-1] += record["tied"]
    else:
        others = {*ranked, *record["untied"]}
        groups[-1] += [label for label in eligible if label not in others]
    return groups
