"""Interim, until the compiled core is merged: deciding at a cursor, on the learners of today."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from superarm.decision import Decision
from superarm.decisions import Decisions
from superarm.rows import Dense

if TYPE_CHECKING:
    from superarm.learners.base import Learner

__all__ = ["Cursor", "advanced", "begun_copy", "cursor_of", "decided_at", "stacked"]


class Cursor:
    """The next round, and the rule's numbers."""

    __slots__ = ("numbers", "round")

    def __init__(self, round_: int, numbers: list[list[float]]) -> None:
        self.round, self.numbers = round_, numbers

    def to_dict(self) -> dict[str, Any]:
        return {"round": self.round, "numbers": self.numbers}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Cursor:
        return cls(data["round"], [list(part) for part in data["numbers"]])


def _arrays(learner: Learner) -> list[Any]:
    rule = learner.rule.start() if learner.state is None else getattr(learner.state, "rule", ())
    return [part for part in (rule if isinstance(rule, tuple) else ()) if isinstance(part, np.ndarray)]


def cursor_of(learner: Learner) -> Cursor:
    return Cursor(learner.round, [part.tolist() for part in _arrays(learner)])


def decided_at(learner: Learner, x: Any, eligible: Any, set_size: int | None, at: Cursor) -> Decision:
    arrays, own = _arrays(learner), learner.round
    kept = [part.tolist() for part in arrays]
    known = None if learner.names is None else len(learner.names)
    try:
        for part, values in zip(arrays, at.numbers, strict=True):
            part[:] = values
        learner.round = at.round
        decision = learner.decide(x, eligible=eligible, set_size=set_size)
        after = [part.tolist() for part in arrays]
    finally:
        for part, values in zip(arrays, kept, strict=True):
            part[:] = values
        learner.round = own
        if learner.names is not None and known is not None:
            learner.names.forget(known)
    if arrays:
        moved = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(at.numbers, after, strict=True)]
        decision._rule = {**(decision.rule or {}), "moved": moved}
    at.numbers = after
    at.round += 1
    return decision


_BEGUN: WeakKeyDictionary[Learner, dict[Any, Learner]] = WeakKeyDictionary()


def begun_copy(learner: Learner, x: Any) -> Learner:
    """A copy that has begun with this row; one for all rows without names that are alike."""
    key = None if isinstance(x, dict) else (type(x), getattr(x, "width", None) or len(x))
    kept = _BEGUN.setdefault(learner, {})
    if key is None or key not in kept:
        made = copy.deepcopy(learner)
        _begin(made, x)
        if key is None:
            return made
        kept[key] = made
    return kept[key]


def _begin(learner: Learner, x: Any) -> None:
    round_, numbers = learner.round, [part.tolist() for part in _arrays(learner)]
    learner.decide(x)
    learner.round = round_
    for part, values in zip(_arrays(learner), numbers, strict=True):
        part[:] = values


def advanced(learner: Learner, decision: Decision) -> None:
    if learner.state is None:
        _begin(learner, decision.x)
    elif learner.names is not None and isinstance(decision.x, dict):
        learner._row(decision.x)  # new names get their places
    assert decision.round is not None
    learner.round = max(learner.round, decision.round + 1)
    moved = (decision.rule or {}).get("moved")
    if moved is not None:
        for part, values in zip(_arrays(learner), moved, strict=True):
            np.maximum(part + values, 0.0, out=part)


def stacked(learner: Learner, decisions: list[Decision]) -> Decisions | None:
    """Dense rows among all labels, with sets of one size, as columns; None for others."""
    first = decisions[0]
    if learner.sparse is not False or learner.names is not None or learner.growth or len(decisions) < 4:
        return None
    m, d = first.set_size, learner.n_features
    for one in decisions:
        x = one.x
        if type(x) is not np.ndarray or len(x) != d or one._eligible is not None or one.round is None:
            return None
        if one.set_size != m or not len(one._sets[2]) or one.learner != learner.id:
            return None
    place = {label: i for i, label in enumerate(learner.labels or range(learner.n_labels))}
    sets = [
        [[place[r] for r in part] for part in one._sets] if one._known is None else one._sets
        for one in decisions
    ]
    odds = [(one.log_ordered_propensity, one.log_propensity, one.belief) for one in decisions]
    return Decisions(
        Dense(np.array([one.x for one in decisions], np.float32)),
        np.array(sets, np.int64),
        None,
        np.array(odds, np.float64),
        None,
        None,
        np.array([one.round for one in decisions], np.int64),
        learner.id,
        learner.known,
    )
