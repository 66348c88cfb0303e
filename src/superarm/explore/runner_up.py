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

Labels with equal scores are ranked at random (native/ties.pxd). Before the first answer that is all of them.
In a batch, sets that are still unanswered count as asked: with ``pending`` of them (at most 300; each
answer halves them) and ``answers`` so far, labels whose p differ by less than the factor
1 + pending / answers are tied. Where every answer comes at once, pending is 0.

With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, Labels
from superarm.errors import InvalidInput
from superarm.explore.distributions import FewSets, SetDistribution, TiedSets
from superarm.explore.rule import Rule, RuleParams, label_order
from superarm.native.rule import Rule as NativeRule
from superarm.native.runner_up import RunnerUpRule
from superarm.parameters import check_share

WORDS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}


def check_explore(explore: Any, owner: str) -> float:
    """The number behind a word, or the number itself."""
    known = explore in WORDS if isinstance(explore, str) else isinstance(explore, int | float)
    if not known or isinstance(explore, bool):
        wanted = "'show', 'balanced', 'rank', a number in [0, 1] or a rule"
        raise InvalidInput.must("explore", owner, wanted, explore)
    return check_share("explore", owner, WORDS[explore] if isinstance(explore, str) else explore)


class RunnerUp(Rule):
    """Leave out a runner-up now and then, within a budget.

    Args:
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; or a number from 0 (show) to 1 (rank).
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
        forget: the least weight of a new round in the budget; 0 never forgets.

    >>> rule = RunnerUp(set_size=2, labels=["ant", "bee", "cat", "dog"])
    >>> decision = rule.decide(probabilities=[0.5, 0.3, 0.15, 0.05])
    >>> decision.top, round(decision.propensity, 3)
    (['ant', 'bee'], 0.858)
    """

    name = "runner-up"
    names_labels = ("next", "order", "tied", "untied")

    def __init__(
        self,
        *,
        explore: str | float = "balanced",
        uniform: float = 0.0,
        forget: float = 0.0,
        **common: Unpack[RuleParams],
    ) -> None:
        super().__init__(**common)
        owner = type(self).__name__
        self.explore: str | float = explore
        self.strength = check_explore(explore, owner)
        self.uniform = check_share("uniform", owner, uniform)
        self.forget = check_share("forget", owner, forget, 0.5)

    def make_native(self, k: int, seed: int) -> NativeRule:
        return RunnerUpRule(k, seed, self.strength, self.uniform, self.forget)

    def record(self, draw_log: Array, labels: Labels) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name, "explore": self.strength, "uniform": self.uniform}
        if not len(draw_log):  # everything is shown
            return record
        cost, second, third, size, *written = draw_log.tolist()
        fill, count = [int(label) for label in (second, third) if label >= 0.0], int(size)
        record["cost"], record["next"], record["sums"] = cost, labels.decode(fill), written[:count]
        ties = written[count:]
        if ties[0] > 0.0:
            ranks = count + 1 + len(fill) if fill else 1
            record["groups"] = [int(group) for group in ties[1 : 1 + ranks]]
            record["tied" if ties[1 + ranks] > 0.0 else "untied"] = labels.decode(ties[3 + ranks :])
        if not fill:  # m = 1: a sum for each label, in this order
            record |= label_order(count, labels)
        return record

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.array([record["cost"]] if "cost" in record else [])

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        if "sums" not in record:
            return FewSets(eligible, m, [(top, 1.0)])
        ranked = [*top, *record["next"]]
        ways = [
            ([record.get("order", eligible)[i] for i in gone] or top, chance)
            if m == 1
            else ([r for i, r in enumerate(ranked) if i - 1 not in gone][:m], chance)
            for gone, chance in left_out(record["sums"], min(2, len(eligible) - m) if m > 1 else 1)
        ]
        if "groups" not in record:
            return FewSets(eligible, m, ways, record["uniform"])
        return TiedSets(eligible, m, ways, _groups(record, ranked, eligible), record["uniform"])


def left_out(sums: Sequence[float], most: int) -> list[tuple[list[int], float]]:
    """The intervals that are hit, for each stretch of u between which they stay the same."""
    edges = [0.0, *sums]
    cuts = sorted({0.0, 1.0, *(c - j for c in edges for j in range(most) if 0.0 < c - j < 1.0)})
    ways = []
    for low, high in pairwise(cuts):
        u = (low + high) / 2
        gone = [i for j in range(most) for i in range(len(sums)) if edges[i] <= u + j < edges[i + 1]]
        ways.append((gone, high - low))
    return ways


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
