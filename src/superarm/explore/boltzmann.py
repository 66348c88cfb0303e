"""Boltzmann: one label, drawn from a softmax that is mixed with uniform (Newtron's draw).

p = softmax(alpha s),   P = (1-gamma) p + gamma/n,   y~ ~ P
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.explore.base import Rule, own_order
from superarm.explore.draws import Draw, FewSets
from superarm.kernels.compiling import kernel
from superarm.kernels.loop import Odds
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import softmax, top_positions
from superarm.labels import Label, Labels
from superarm.parameters import number

__all__ = ["Boltzmann"]


class State(NamedTuple):
    gamma: float
    alpha: float


class Scratch(NamedTuple):
    p: np.ndarray[Any, Any]


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
    n, p = eligible.shape[0], scratch.p
    top_positions(s, eligible, top)
    softmax(s, eligible, rule.alpha, p)
    for i in range(n):
        p[i] = (1.0 - rule.gamma) * p[i] + rule.gamma / n
        numbers[i] = p[i]
    point = uniform(moment.seed, moment.round, 0)
    chosen = n - 1
    for i in range(n):
        point -= p[i]
        if point < 0.0:
            chosen = i
            break
    top[0], drawn[0] = eligible[top[0]], eligible[chosen]
    odds = np.log(p[chosen])
    return Odds(odds, odds)


class Boltzmann(Rule):
    """One label, by the softmax of the scores.

    Args:
        gamma: the share of exploration, in (0, 1].
        alpha: how sharp the softmax is.
        set_size: 1.
        seed: every draw is a pure function of (seed, round, position).
        labels: the names of the labels, if they have names.
    """

    name = "boltzmann"
    choose = choose
    single_label = True
    names_labels = ("order",)

    def __init__(
        self,
        *,
        gamma: float = 0.1,
        alpha: float = 10.0,
        set_size: int = 1,
        seed: int = 0,
        labels: Sequence[Label] | None = None,
    ) -> None:
        super().__init__(set_size=set_size, seed=seed, labels=labels)
        self.gamma = number("gamma", type(self).__name__, gamma, 0.0, 1.0)
        self.alpha = number("alpha", type(self).__name__, alpha, 0.0)

    def start(self) -> State:
        return State(self.gamma, self.alpha)

    def scratch(self, k: int) -> Scratch:
        return Scratch(np.zeros(k))

    def n_numbers(self, n: int, m: int) -> int:
        return n

    def record(self, numbers: np.ndarray[Any, Any], labels: Labels) -> dict[str, Any]:
        return {**self.to_dict(), "chances": numbers.tolist(), **own_order(len(numbers), labels)}

    @classmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        order = record.get("order", eligible)
        return FewSets(eligible, m, [([r], p) for r, p in zip(order, record["chances"], strict=True)])
