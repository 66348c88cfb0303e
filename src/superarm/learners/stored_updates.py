"""Decisions of a learner's own that were stored, and answers to them: made its own again in the order they came.

The same bits as `Learner.advance` and `Learner.update` one by one, in one compiled loop.
"""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple, Protocol

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows, stack
from superarm.decisions import Decision
from superarm.decisions.decisions import DrawnSets, EligibleLabels, flatten
from superarm.errors import SuperarmError
from superarm.learners.feedback import answered_before, update_error
from superarm.learners.learner import Learner
from superarm.native import loops
from superarm.native.core import Core


class Stored(Protocol):
    """A decision that was stored."""

    decision: Decision | None  # itself, if this process made it

    @property
    def body(self) -> Any:
        """What is kept of it: fields as in `Decision.to_dict`, and ``k``, how many labels there were."""

    def row(self) -> Any:
        """The row that it was made for."""

    def draw_log(self, learner: Learner) -> Array:
        """What its rule wrote down, or at least the part that moves the rule."""


class StoredAnswer(NamedTuple):
    """The answer to a stored decision."""

    stored: Stored
    row: Any  # where rows have names: what these mean may change with the next row; else None
    hit: bool
    label: int  # its number; -1 where only a bit came
    decisions_before: int  # that came before it


class StoredUpdates:
    """Gathers decisions and answers of one learner until `apply`."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.number = {label: number for number, label in enumerate(learner.label_set.all())}
        self._clear()

    def _clear(self) -> None:
        self._next_round = 0
        self._logs: list[Array] = []
        self._answers: list[StoredAnswer] = []
        self._all_live = True
        self._batch: tuple[Rows, EligibleLabels, DrawnSets, Array] | None = None

    def add_decision(self, decision: Stored) -> None:
        """The learner made this decision."""
        learner = self.learner
        if learner.core is None or learner.columns is not None:
            learner.inputs.row(decision.row())
        self._next_round = max(self._next_round, decision.body.round + 1)
        self._logs.append(decision.draw_log(learner))

    def add_answer(self, decision: Stored, hit: bool, label: str | None) -> None:
        """The world answered: the bit, and the right label where the learner is to hear it."""
        live, learner = decision.decision, self.learner
        if live is None or live.label_set is not learner.label_set or type(live.x) is dict:
            self._all_live = False
        row = None if learner.columns is None else self._row(decision)
        number = -1 if label is None else self.number[label]
        self._answers.append(StoredAnswer(decision, row, hit, number, len(self._logs)))

    def apply(self) -> dict[int, str]:
        """Move and teach the learner; why some answers, by their number, could not be learnt."""
        learner, refused = self.learner, dict[int, str]()
        if not self._logs and not self._answers:
            return refused
        core = learner.ensure_core()
        core.round = max(core.round, self._next_round)
        logs = flatten(self._logs, np.float64)
        learn = self._learn_live if self._all_live else self._learn_stored
        start = counted = 0
        while start < len(self._answers):
            done, status = learn(core, start, logs, counted)
            start += done
            counted = self._answers[min(start, len(self._answers) - 1)].decisions_before
            if status:
                stored = self._answers[start].stored
                error = update_error(learner, status, self._row(stored), stored.body.round)
                if not isinstance(error, SuperarmError):
                    raise error
                refused[start] = str(error)
                start += 1
        core.advance(*logs, counted, len(self._logs))
        self._clear()
        return refused

    def _learn_live(self, core: Core, start: int, logs: tuple[Array, Array], counted: int) -> tuple[int, int]:
        """Learn from answers about decisions that are at hand: how many were done, and why it stopped."""
        every = self.learner.inputs.all_labels
        for i, answer in enumerate(self._answers[start:]):
            decision: Any = answer.stored.decision
            if answer.decisions_before > counted:
                core.advance(*logs, counted, answer.decisions_before)
                counted = answer.decisions_before
            if decision.round in core.ledger:
                raise answered_before(self.learner, decision.round)
            eligible = every if decision.eligible_ is None else decision.eligible_
            numbers = decision.sets, decision.size
            status = core.update(decision, decision.row, eligible, *numbers, answer.hit, answer.label, None)
            if status:
                return i, status
            core.ledger.add(decision.round)
        return len(self._answers) - start, 0

    def _learn_stored(
        self, core: Core, start: int, logs: tuple[Array, Array], counted: int
    ) -> tuple[int, int]:
        """Learn from answers about decisions of which only records are left, in one compiled loop."""
        if self._batch is None:
            self._batch = self._stacked(core)
        rows, eligible, columns, rounds = self._batch
        answers, which = self._answers[start:], np.arange(start, len(self._answers))
        hits = np.array([answer.hit for answer in answers], np.uint8)
        labels = np.array([answer.label for answer in answers], np.intp)
        interleaved = (*logs, counted, np.array([answer.decisions_before for answer in answers], np.intp))
        done, status = loops.update_many(
            core, rows, which, *eligible, *columns, rounds, hits, labels, interleaved
        )
        core.ledger.add_many(rounds[start : start + done])
        return done, status

    def _stacked(self, core: Core) -> tuple[Rows, EligibleLabels, DrawnSets, Array]:
        """The decisions that were answered, in columns."""
        layout, bodies = self.learner.inputs.layout, [answer.stored.body for answer in self._answers]
        assert layout is not None
        rounds = np.array([body.round for body in bodies], np.int64)
        again = core.ledger.first_of(rounds)
        if again is not None:
            raise answered_before(self.learner, again)
        rows = [self._row(a.stored) if a.row is None else a.row for a in self._answers]
        return stack(rows, layout), self._eligible(bodies), self._columns(bodies), rounds

    def _row(self, decision: Stored) -> Any:
        row = decision.row()
        return self.learner.inputs.row(row) if type(row) is dict else row

    def _columns(self, bodies: list[Any]) -> DrawnSets:
        sets = [
            np.array([self.number[label] for label in (*body.labels, *body.drawn, *body.top)], np.intp)
            for body in bodies
        ]
        log_probs = [(_number(body.log_ordered_propensity), _number(body.log_propensity)) for body in bodies]
        logs = [answer.stored.draw_log(self.learner) for answer in self._answers]
        return DrawnSets.from_lists(sets, [len(body.labels) for body in bodies], log_probs, logs)

    def _eligible(self, bodies: list[Any]) -> EligibleLabels:
        """The labels that could be shown: the eligible ones, or all that there were."""
        every = self.learner.inputs.all_labels
        if all(body.eligible is None and body.k == len(every) for body in bodies):
            return EligibleLabels(every)
        return EligibleLabels.by_row(
            [
                every[: body.k]
                if body.eligible is None
                else np.sort([self.number[label] for label in body.eligible])
                for body in bodies
            ]
        )


def _number(log_probability: float | None) -> float:
    return nan if log_probability is None else log_probability
