"""Decisions of a learner's own that were stored, and answers to them: made its own again in the order they came.

The same bits as `Learner.advance` and `Learner.update` one by one, in one compiled loop.
"""

from __future__ import annotations

from math import nan
from typing import Any, Protocol

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


class StoredBody(Protocol):
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

    decision: Decision | None  # itself, if this process made it

    @property
    def body(self) -> Any:
        """What is kept of it, as `StoredBody`."""

    def row(self) -> Any:
        """The row that it was made for."""

    def draw_log(self, learner: Learner) -> Array:
        """What its rule wrote down, or at least the part that moves the rule."""


class StoredUpdates:
    """Gathers decisions and answers of one learner until `apply`."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.number = {label: number for number, label in enumerate(learner.label_set.all())}
        self._clear()

    def _clear(self) -> None:
        self._round = 0
        self._logs: list[Array] = []
        self._before: list[int] = []  # how many decisions came before each answer
        self._answered: list[Stored] = []
        # of answers, where rows have names: what these mean may change with the next row
        self._rows: list[Any] = []
        self._hits: list[bool] = []
        self._label_numbers: list[int] = []
        self._all_live = True
        self._batch: tuple[Rows, Array, EligibleLabels, DrawnSets] | None = None

    def add_decision(self, decision: Stored) -> None:
        """The learner made this decision."""
        learner = self.learner
        if learner.core is None or learner.columns is not None:
            learner.inputs.row(decision.row())
        self._round = max(self._round, decision.body.round + 1)
        self._logs.append(decision.draw_log(learner))

    def add_answer(self, decision: Stored, hit: bool, label: str | None) -> None:
        """The world answered: the bit, and the right label where the learner is to hear it."""
        live, learner = decision.decision, self.learner
        if live is None or live.label_set is not learner.label_set or type(live.x) is dict:
            self._all_live = False
        if learner.columns is not None:
            self._rows.append(self._row(decision))
        self._before.append(len(self._logs))
        self._answered.append(decision)
        self._hits.append(hit)
        self._label_numbers.append(-1 if label is None else self.number[label])

    def apply(self) -> dict[int, str]:
        """Move and teach the learner; why some answers, by their number, could not be learnt."""
        learner, refused = self.learner, dict[int, str]()
        if not self._logs and not self._answered:
            return refused
        core = learner.ensure_core()
        core.round = max(core.round, self._round)
        log, log_ends = flatten(self._logs, np.float64)
        learn = self._learn_live if self._all_live else self._learn_stored
        start = counted = 0
        while start < len(self._answered):
            done, status = learn(core, start, (log, log_ends, counted))
            start += done
            counted = self._before[min(start, len(self._before) - 1)]
            if status:
                stored = self._answered[start]
                error = update_error(learner, status, self._row(stored), stored.body.round)
                if not isinstance(error, SuperarmError):
                    raise error
                refused[start] = str(error)
                start += 1
        core.advance(log, log_ends, counted, len(self._logs))
        self._clear()
        return refused

    def _learn_live(self, core: Core, start: int, decided: tuple[Array, Array, int]) -> tuple[int, int]:
        """Learn from answers about decisions that are at hand: how many were done, and why it stopped."""
        log, log_ends, counted = decided
        every = self.learner.inputs.everything
        for i in range(start, len(self._answered)):
            decision: Any = self._answered[i].decision
            if self._before[i] > counted:
                core.advance(log, log_ends, counted, self._before[i])
                counted = self._before[i]
            if decision.round in core.ledger:
                self._check_open(core, np.array([decision.round]))
            among = every if decision.eligible_ is None else decision.eligible_
            hit, label = self._hits[i], self._label_numbers[i]
            status = core.update(
                decision, decision.row, among, decision.sets, decision.size, hit, label, None
            )
            if status:
                return i - start, status
            core.ledger.add(decision.round)
        return len(self._answered) - start, 0

    def _learn_stored(self, core: Core, start: int, decided: tuple[Array, Array, int]) -> tuple[int, int]:
        """Learn from answers about decisions of which only records are left, in one compiled loop."""
        if self._batch is None:
            layout = self.learner.inputs.layout
            assert layout is not None
            rows = self._rows or [self._row(stored) for stored in self._answered]
            rounds = np.array([stored.body.round for stored in self._answered], np.int64)
            self._check_open(core, rounds)
            self._batch = stack(rows, layout), rounds, self._eligible(), self._columns()
        rows_, rounds, among, columns = self._batch
        part, count = slice(start, None), len(self._answered)
        before = np.array(self._before[part], np.intp)
        label_numbers = np.array(self._label_numbers[part], np.intp)
        bits, which = np.array(self._hits[part], np.uint8), np.arange(start, count)
        done, status = loops.update_many(
            core, rows_, which, *among, *columns, bits, label_numbers, False, (*decided, before)
        )
        core.ledger.add_many(rounds[start : start + done])
        return done, status

    def _row(self, decision: Stored) -> Any:
        row = decision.row()
        return self.learner.inputs.row(row) if type(row) is dict else row

    def _check_open(self, core: Core, rounds: Array) -> None:
        again = core.ledger.first_of(rounds)
        if again is not None:
            raise answered_before(self.learner, again)

    def _columns(self) -> DrawnSets:
        number, learner = self.number, self.learner
        flat, ends, sizes, log_probs, logs = list[int](), [0], list[int](), list[float](), list[Array]()
        for stored in self._answered:
            body = stored.body
            flat += [number[label] for label in (*body.labels, *body.drawn, *body.top)]
            ends.append(len(flat))
            sizes.append(len(body.labels))
            ordered, of_set = body.log_ordered_propensity, body.log_propensity
            log_probs += (nan if ordered is None else ordered, nan if of_set is None else of_set, body.belief)
            logs.append(stored.draw_log(learner))
        sets = np.array(flat, np.intp), np.array(ends, np.intp), np.array(sizes, np.intp)
        return DrawnSets(*sets, np.array(log_probs).reshape(-1, 3), *flatten(logs, np.float64))

    def _eligible(self) -> EligibleLabels:
        """The labels that could be shown: the eligible ones, or all that there were."""
        every, bodies = self.learner.inputs.everything, [stored.body for stored in self._answered]
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
