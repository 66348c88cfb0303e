"""Ties: labels with equal scores are ranked at random, and sets keep their exact probability.

Ranks fall into groups: a label belongs to the group of the best one whose score is within ``near`` of
its own. Tied labels share their probability p evenly, and are put onto the ranks of their group in a
random order, from (seed, round); a group that goes on behind the last rank lends random ones of its
labels. Then a rule chooses ranks. The labels S are shown with probability

    sum over sets of ranks R of P(R) prod_g 1 / C(size_g, |S n g|)

where R must have as many ranks of every group g as S has labels of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import kernel
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import contains

__all__ = ["Ties", "count_groups", "find_ties", "group_of", "order_ties", "way_to_choose"]

Array = np.ndarray[Any, Any]


class Ties(NamedTuple):
    """Scratch space: the groups of tied labels."""

    group: Array  # of each rank
    size: Array  # of each group, in labels
    low: Array  # of each group: the least and the largest score
    high: Array
    wanted: Array  # labels or ranks of each group, while sets are compared
    found: Array

    @classmethod
    def of(cls, k: int) -> Ties:
        group, size, wanted, found = np.zeros((4, k + 1), np.int64)
        low, high = np.zeros((2, k + 1), np.float32)
        return cls(group.copy(), size.copy(), low.copy(), high.copy(), wanted.copy(), found.copy())


@kernel
def find_ties(ties: Ties, s: Any, eligible: Any, order: Any, ranks: int, near: float) -> int:
    """Group the first ``ranks`` places of ``order`` (which has one more, if there is one): how many groups.

    As many groups as ranks, and none of them larger, means that there are no ties: then it returns 0.
    """
    groups, gap = 0, np.float32(near)
    for i in range(ranks):
        value = s[eligible[order[i]]]
        if i == 0 or value < ties.low[groups - 1]:
            ties.low[groups], ties.high[groups], ties.size[groups] = value - gap, value, 0
            groups += 1
        ties.group[i] = groups - 1
        ties.size[groups - 1] += 1
    last = groups - 1
    if order.shape[0] > ranks and s[eligible[order[ranks]]] >= ties.low[last]:
        ties.size[last] = 0
        for i in range(eligible.shape[0]):
            ties.size[last] += ties.low[last] <= s[eligible[i]] <= ties.high[last]
    elif groups == ranks:
        return 0
    return groups


@kernel
def order_ties(
    ties: Ties, s: Any, eligible: Any, order: Any, ranks: int, p: Any, moment: Any, draw: int
) -> None:
    """Put tied labels into a random order, and share their p, with the uniforms from number ``draw`` on."""
    start = 0
    while start < ranks:
        g, stop = ties.group[start], start + 1
        while stop < ranks and ties.group[stop] == g:
            stop += 1
        size, held = ties.size[g], stop - start
        if size > 1:
            total = 0.0
            if size > held:  # Floyd's way to some of its labels, by their numbers within the group
                for i in range(held):
                    at = int(uniform(moment.seed, moment.round, draw) * (size - held + i + 1))
                    draw += 1
                    order[start + i] = at if not contains(order[start : start + i], at) else size - held + i
                at = 0
                for position in range(eligible.shape[0]):
                    if ties.low[g] <= s[eligible[position]] <= ties.high[g]:
                        for i in range(start, stop):
                            if order[i] == at:
                                ties.found[i] = position
                        at += 1
                        total += p[position]
                for i in range(start, stop):
                    order[i] = ties.found[i]
                for position in range(eligible.shape[0]):
                    if ties.low[g] <= s[eligible[position]] <= ties.high[g]:
                        p[position] = total / size
            else:
                for i in range(start, stop):
                    total += p[order[i]]
                for i in range(start, stop):
                    p[order[i]] = total / size
            for i in range(held - 1, 0, -1):  # Fisher and Yates
                at = int(uniform(moment.seed, moment.round, draw) * (i + 1))
                draw += 1
                order[start + i], order[start + at] = order[start + at], order[start + i]
        start = stop


@kernel
def group_of(ties: Ties, groups: int, value: float) -> int:
    """The group that a score belongs to; -1 if it is behind all ranks."""
    for g in range(groups):
        if ties.low[g] <= value <= ties.high[g]:
            return g
    return -1


@kernel
def count_groups(ties: Ties, groups: int, s: Any, eligible: Any, drawn: Any) -> bool:
    """Count in ``wanted`` how many of these positions each group has; False if one is behind all ranks."""
    for g in range(groups):
        ties.wanted[g] = 0
    for i in range(drawn.shape[0]):
        g = group_of(ties, groups, s[eligible[drawn[i]]])
        if g < 0:
            return False
        ties.wanted[g] += 1
    return True


@kernel
def way_to_choose(ties: Ties, groups: int) -> float:
    """prod_g 1 / C(size_g, wanted_g): the probability of these labels, given how many of each group."""
    chance = 1.0
    for g in range(groups):
        for i in range(ties.wanted[g]):
            chance *= (ties.wanted[g] - i) / (ties.size[g] - i)
    return chance
