"""Decisions of a learner's own that were stored, and answers to them: made its own again in the order they came.

The same bits as `Learner.advance` and `Learner.update` one by one, in one compiled loop.
"""

from __future__ import annotations

from math import nan
from typing import Any, Protocol

import numpy as np

from superarm.data.rows import stack
from superarm.decisions.decisions import Among, DrawnSets, joined
from superarm.errors import FeedbackError, SuperarmError
from superarm.learners.feedback import failed
from superarm.learners.learner import Learner

__all__ = ["Follower", "Stored"]

Array = np.ndarray[Any, Any]


class Facts(Protocol):
    """What is kept of a decision: the names are those of `Decision.to_dict`."""

    labels: list[str]
    drawn: list[str]
    top: list[str]
    eligible: list[str] | None
    belief: float
    log_propensity: float | None
    log_ordered_propensity: float | None
    round: int
    k: int  # how many labels there were


class Stored(Protocol):
    """A decision that was stored."""

    @property
    def body(self) -> Any:
        """Its `Facts`."""

    def row(self) -> Any:
        """What it was made for."""

    def draw_log(self, learner: Learner) -> Array:
        """What its rule wrote down, or at least the part that moves the rule."""


class Follower:
    """Gathers decisions and answers of one learner until `go`."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.number = {label: number for number, label in enumerate(learner.known.all())}
        self._round = 0
        self._logs: list[Array] = []
        self._before: list[int] = []  # how many decisions came before each answer
        self._answered: list[Stored] = []
        self._rows: list[Any] = []
        self._hits: list[bool] = []
        self._told: list[int] = []

    def made(self, decision: Stored) -> None:
        """It made this decision."""
        learner = self.learner
        if learner.core is None or learner.columns is not None:
            learner.inputs.row(decision.row())
        self._round = max(self._round, decision.body.round + 1)
        self._logs.append(decision.draw_log(learner))

    def answered(self, decision: Stored, hit: bool, label: str | None) -> None:
        """The world answered: the bit, and the right label where the learner is to hear it."""
        row = decision.row()
        self._rows.append(self.learner.inputs.row(row) if type(row) is dict else row)
        self._before.append(len(self._logs))
        self._answered.append(decision)
        self._hits.append(hit)
        self._told.append(-1 if label is None else self.number[label])

    def go(self) -> dict[int, str]:
        """Make all of it its own; why some answers, by their number, could not be learnt."""
        learner, count = self.learner, len(self._answered)
        if not self._logs and not count:
            return {}
        core = learner.have_core()
        core.round = max(core.round, self._round)
        log, log_ends = joined(self._logs, np.float64)
        refused: dict[int, str] = {}
        start = counted = 0
        if count:
            rounds = np.array([one.body.round for one in self._answered], np.int64)
            before, bits = np.array(self._before, np.intp), np.array(self._hits, np.uint8)
            told, layout = np.array(self._told, np.intp), learner.inputs.layout
            assert layout is not None
            rows, columns, among = stack(self._rows, layout), self._columns(), self._among()
            again = core.ledger.first_of(rounds)
            if again is not None:
                raise FeedbackError.must("decisions", learner.owner, "not answered before", f"round {again}")
            while start < count:
                part = slice(start, None)
                made = (log, log_ends, counted, before[part])
                which = np.arange(start, count)
                done, status = core.update_many(
                    rows, which, *among, *columns, bits[part], told[part], False, made
                )
                core.ledger.add_many(rounds[start : start + done])
                start += done
                if status:
                    error = failed(learner, status, rows.row(start), int(rounds[start]))
                    if not isinstance(error, SuperarmError):
                        raise error
                    refused[start], counted, start = str(error), int(before[start]), start + 1
            counted = int(before[-1])
        core.advance(log, log_ends, counted, len(self._logs))
        self.__init__(learner)  # type: ignore[misc]
        return refused

    def _columns(self) -> DrawnSets:
        number, learner = self.number, self.learner
        flat, ends, sizes, odds, logs = list[int](), [0], list[int](), list[float](), list[Array]()
        for one in self._answered:
            body = one.body
            flat += [number[label] for label in (*body.labels, *body.drawn, *body.top)]
            ends.append(len(flat))
            sizes.append(len(body.labels))
            ordered, of_set = body.log_ordered_propensity, body.log_propensity
            odds += (nan if ordered is None else ordered, nan if of_set is None else of_set, body.belief)
            logs.append(one.draw_log(learner))
        sets = np.array(flat, np.intp), np.array(ends, np.intp), np.array(sizes, np.intp)
        return DrawnSets(*sets, np.array(odds).reshape(-1, 3), *joined(logs, np.float64))

    def _among(self) -> Among:
        """The labels that could be shown: the eligible ones, or all that there were."""
        every, bodies = self.learner.inputs.everything, [one.body for one in self._answered]
        if all(body.eligible is None and body.k == len(every) for body in bodies):
            return Among(every)
        return Among.each(
            [
                every[: body.k]
                if body.eligible is None
                else np.sort([self.number[label] for label in body.eligible])
                for body in bodies
            ]
        )
