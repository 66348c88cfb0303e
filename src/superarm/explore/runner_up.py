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

Labels with equal scores are ranked at random (native/leave_out.pyx). Before the first answer all labels are tied.
In a batch, sets that are still unanswered count as asked: with ``pending`` of them (at most 300; each
answer halves them) and ``answers`` so far, labels whose p differ by less than the factor
1 + pending / answers are tied. Where every answer comes at once, pending is 0.

With ``uniform`` = u, a share u of the sets is drawn uniformly. P(S) is exact in all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.errors import InvalidInput
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.leave_out import (
    LABEL_KEYS,
    drawn_intervals,
    leave_out_distribution,
    leave_out_record,
)
from superarm.explore.rule import Rule, RuleParams
from superarm.explore.scores import label_order_entry
from superarm.native.rule import RuleKernel
from superarm.native.runner_up import RunnerUpKernel
from superarm.parameters import check_share

EXPLORE_PRESETS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}


def check_explore(explore: Any, owner: str) -> float:
    """Return the number that ``explore`` is, or that its word stands for."""
    known = explore in EXPLORE_PRESETS if isinstance(explore, str) else isinstance(explore, int | float)
    if not known or isinstance(explore, bool):
        wanted = "'show', 'balanced', 'rank', a number in [0, 1] or a rule"
        raise InvalidInput.must("explore", owner, wanted, explore)
    return check_share("explore", owner, EXPLORE_PRESETS[explore] if isinstance(explore, str) else explore)


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
    label_keys = ("order", *LABEL_KEYS)

    def __init__(
        self,
        *,
        explore: str | float = "balanced",
        uniform: float = 0.0,
        forget: float = 0.0,
        **common: Unpack[RuleParams],
    ) -> None:
        super().__init__(**common)
        self.explore: str | float = explore
        self.explore_number = check_explore(explore, self.owner)
        self.uniform = check_share("uniform", self.owner, uniform)
        self.forget = check_share("forget", self.owner, forget, 0.5)

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return RunnerUpKernel(k, seed, self.explore_number, self.uniform, self.forget)

    def record(self, draw_log: Array, labels: LabelVocabulary) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name, "explore": self.explore_number, "uniform": self.uniform}
        if not len(draw_log):  # everything is shown
            return record
        cost, *written = draw_log.tolist()
        record |= {"cost": cost, **leave_out_record(written, labels)}
        if "next" not in record:  # m = 1: a sum for each label, in this order
            record |= label_order_entry(labels)
        return record

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.array([record["cost"]] if "cost" in record else [])

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        if "sums" not in record:
            return Mixture(eligible, m, [(top, 1.0)])
        if m > 1:
            return leave_out_distribution(record, top, eligible)
        labels = record.get("order", eligible)
        sets = [([labels[i] for i in drawn] or top, p) for drawn, p in drawn_intervals(record["sums"], 1)]
        return leave_out_distribution(record, top, eligible, sets)
