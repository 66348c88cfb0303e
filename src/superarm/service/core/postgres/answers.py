"""Decisions that may be answered, and answers that are learnt in one call.

Most answers have nothing about them but themselves: a dense row, all labels eligible, in time. Those are
learnt together (`Learner.update_many`), which gives the bits of one by one, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from superarm.decision import Decisions
from superarm.errors import SuperarmError
from superarm.learners import Learner
from superarm.learners.answered import Answered
from superarm.rows import Dense
from superarm.service.core.postgres.tables import Row

__all__ = ["Known", "Usual", "counted", "learn_together"]

SETS, ODDS = ("labels", "drawn", "top"), ("log_ordered_propensity", "log_propensity", "belief")


class Known:
    """A decision that may be answered."""

    __slots__ = ("answered", "body", "expired", "time", "x")

    def __init__(self, time: float, body: dict[str, Any], x: bytes | None) -> None:
        self.time, self.body, self.x = time, body, x
        self.expired: dict[str, Any] | None = None  # what the timeout came to: hit, learnt
        self.answered = False

    def is_plain(self, learner: Learner) -> bool:
        """Whether it is about a dense row, as the learner's own are, and all labels."""
        body = self.body
        dense = learner.sparse is False and learner.names is None and body["width"] is None
        if not dense or self.x is None or len(self.x) != 4 * learner.n_features:
            return False
        return body["eligible"] is None and bool(body["top"])


class Usual(NamedTuple):
    """An answer that may be learnt together with others."""

    row: Row
    known: Known
    told: dict[str, Any]
    named: bool  # it teaches the label, not the bit
    m: int  # labels that were shown

    def like(self, other: Usual) -> bool:
        return self.named == other.named and self.m == other.m


class Unkept(Answered):
    """Which rounds are answered is the database's to know: each id is answered once."""

    __slots__ = ("learnt",)

    def __init__(self) -> None:
        super().__init__()
        self.learnt = 0  # how many there were

    def __contains__(self, round_: int) -> bool:
        return False

    def first_of(self, rounds: Any) -> None:
        return None

    def add(self, round_: int) -> None:
        self.learnt += 1

    def add_many(self, rounds: Any) -> None:
        self.learnt += len(rounds)


def counted(learner: Learner) -> Unkept:
    """Let a learner count answers, and not keep which they were."""
    if not isinstance(learner.answered, Unkept):
        learner.answered = Unkept()
    return learner.answered


def learn_together(learner: Learner, places: Mapping[str, int], run: Sequence[Usual]) -> int:
    """Learn from such answers that are alike, up to one that is refused; how many."""
    if not run:
        return 0
    bodies = [one.known.body for one in run]
    rows = np.frombuffer(bytearray().join(one.known.x or b"" for one in run), "<f4")
    sets = [places[label] for body in bodies for key in SETS for label in body[key]]
    odds = [nan if body[key] is None else body[key] for body in bodies for key in ODDS]
    decisions = Decisions(
        Dense(rows.reshape(len(run), -1)),
        np.array(sets).reshape(len(run), 3, -1),
        None,
        np.array(odds, np.float64).reshape(len(run), 3),
        None,
        None,
        np.array([body["round"] for body in bodies]),
        learner.id,
        learner.known,
    )
    count = counted(learner)
    before = count.learnt
    try:
        if run[0].named:
            learner.update_many(decisions, labels=[one.told["label"] for one in run])
        else:
            learner.update_many(decisions, np.array([one.told["hit"] for one in run]))
    except SuperarmError:  # at one of them: all before it are learnt
        pass
    return count.learnt - before
