"""A decision from its record: the model's version, the round, and the rule's numbers of that moment.

Every process begins with the rule's numbers as they were published (for runner-up: the rounds and the cost
of exploring so far, which make the budget, and how many sets wait for an answer), and moves its own copy
with each decision. The record keeps them as they were before it, and by how much it moved them. The learner
adds up what all processes have moved, and publishes the sums: so the budget is one, and no process knows
of more than a moment's decisions by the others too late.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from superarm.decision import Decision
from superarm.learners import Learner

__all__ = ["begin", "decide_at", "moment", "move", "put_moment"]

Numbers = list[list[float]]


def _arrays(rule: Any) -> list[Any]:
    return [part for part in (rule if isinstance(rule, tuple) else ()) if isinstance(part, np.ndarray)]


def begin(learner: Learner, x: Any) -> None:
    """A learner that has seen no row takes the kind of rows that this one is, and nothing else."""
    if learner.state is None:
        start, round_ = [part.tolist() for part in _arrays(learner.rule.start())], learner.round
        learner.decide(x)
        learner.round = round_
        put_moment(learner, start)


_BEGUN: WeakKeyDictionary[Learner, dict[Any, tuple[Learner, Numbers]]] = WeakKeyDictionary()


def _begun(learner: Learner, x: Any) -> Learner:
    """A copy that has begun with this row; one for all rows without names that are alike."""
    key = None if isinstance(x, dict) else (type(x), getattr(x, "width", None) or len(x))
    kept = _BEGUN.setdefault(learner, {})
    if key is None or key not in kept:
        made = copy.deepcopy(learner)
        begin(made, x)
        if key is None:
            return made
        kept[key] = made, moment(made)
    found, start = kept[key]
    put_moment(found, start)
    return found


def moment(learner: Learner) -> Numbers:
    """The rule's numbers, now."""
    return [part.tolist() for part in _arrays(learner.state.rule)]


def put_moment(learner: Learner, numbers: Numbers) -> None:
    for part, values in zip(_arrays(learner.state.rule), numbers, strict=True):
        part[:] = values


def move(learner: Learner, moved: Sequence[Sequence[float]]) -> None:
    """Add what a decision of some process has moved. (What is counted or summed is never below 0.)"""
    for part, values in zip(_arrays(learner.state.rule), moved, strict=True):
        np.maximum(part + values, 0.0, out=part)


def decide_at(
    learner: Learner,
    x: Any,
    eligible: Any,
    set_size: int | None,
    round_: int,
    numbers: Numbers | None = None,
) -> tuple[Decision, Numbers, Numbers]:
    """A decision of this round; the rule's numbers before it, and by how much it moved them.

    ``numbers`` are those of a record, to be put back first. A learner that has seen no row, and one that does
    not know all names of this row, is left as it is: only the process that learns fixes what stands where.
    """
    if learner.state is None:
        learner = _begun(learner, x)
    if numbers is not None:
        put_moment(learner, numbers)
    before = moment(learner)
    learner.round = round_
    known = None if learner.names is None else len(learner.names)
    decision = learner.decide(x, eligible=eligible, set_size=set_size)
    if learner.names is not None and known is not None:
        learner.names.forget(known)
    after = moment(learner)
    moved = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    return decision, before, moved
