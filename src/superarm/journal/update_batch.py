"""UpdateBatch: decisions of a learner's own that were stored, and answers to them, applied to it in their order.

The same bits as `Learner.advance` and `Learner.update` one by one, in one compiled loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.data.rows import layout_of, stack
from superarm.decisions.decision import nan_if_none
from superarm.decisions.decisions import DrawnSets, EligibleLabels, flatten
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.events import TIMEOUT, DecisionBody, Event
from superarm.journal.records import StagedEvent
from superarm.learners.answers import answered_before
from superarm.learners.batch_answers import AnswerColumns, DecisionsBetween
from superarm.learners.failures import update_error
from superarm.learners.learner import Learner
from superarm.native import loops
from superarm.native.loops import DecisionBlock


class StoredAnswer(NamedTuple):
    """The answer to a stored decision."""

    staged: StagedEvent
    row: Any  # where rows have names: what these mean may change with the next row; else None
    label: int  # its number; -1 where only a bit came
    decisions_before: int  # how many decisions came before it


class UpdateBatch:
    """Gathers decisions and answers of one learner until `apply`."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.number = {label: number for number, label in enumerate(learner.label_set.all())}
        self._clear()

    def _clear(self) -> None:
        self._rounds: list[int] = []
        self._logs: list[Array] = []
        self._answers: list[StoredAnswer] = []

    def add_decision(self, decision: Event) -> None:
        """Take a decision that the learner made; InvalidInput if its row does not fit the rows before it."""
        self._check_row(decision.row())
        self._rounds.append(decision.body.round)
        self._logs.append(decision.draw_log(self.learner))

    def add_answer(self, staged: StagedEvent, label: str | None) -> None:
        """Take an answer, or the default of a timeout: its bit, and the right label where the learner is to hear it."""
        row = None if self.learner.columns is None else self._row(staged.record.event)
        number = -1 if label is None else self.number[label]
        self._answers.append(StoredAnswer(staged, row, number, len(self._logs)))

    def apply(self) -> None:
        """Move the learner and let it learn; answers that cannot be learnt get their ``refusal``."""
        learner, answers = self.learner, self._answers
        if not self._logs and not answers:
            return
        core = learner.ensure_core()
        for round_ in self._rounds:
            core.count_round(round_)
        logs, counted = flatten(self._logs, np.float64), 0
        if answers:
            batch, which = self._batch(), np.arange(len(answers))
            hits = np.array([answer.staged.event.body.hit for answer in answers])
            labels = np.array([answer.label for answer in answers], np.intp)
            before = np.array([answer.decisions_before for answer in answers], np.intp)
            start = 0
            while start < len(answers):
                rest = AnswerColumns(which[start:], hits[start:], labels[start:])
                between = DecisionsBetween(*logs, counted, before[start:])
                done, status = loops.update_many(core, batch, rest, between)
                start += done
                counted = int(before[min(start, len(answers) - 1)])
                if status:
                    staged = answers[start].staged
                    decision = staged.record.event
                    error = update_error(learner, status, self._row(decision), decision.body.round)
                    if not isinstance(error, SuperarmError):
                        raise error
                    staged.refusal = str(error)
                    start += 1
        core.advance(*logs, counted, len(self._logs))
        self._clear()

    def _batch(self) -> DecisionBlock:
        """Return the decisions that were answered, in columns."""
        bodies = [answer.staged.record.body for answer in self._answers]
        rounds = [body.round for body in bodies]
        again = self.learner.answered.first_of(np.array(rounds, np.int64))
        if again is not None:
            raise answered_before(self.learner, again)
        rows = [
            self._row(answer.staged.record.event) if answer.row is None else answer.row
            for answer in self._answers
        ]
        eligible = [self._eligible(body) for body in bodies]
        inputs = self.learner.inputs
        one_list = all(numbers is inputs.all_labels for numbers in eligible)
        return DecisionBlock(
            stack(rows, inputs.layout),
            EligibleLabels(inputs.all_labels) if one_list else EligibleLabels.by_row(eligible),
            self._draws(bodies),
            np.array(rounds, np.int64),
        )

    def _check_row(self, row: Any) -> None:
        """Let a first row fix the layout, and new names get their features; refuse a row that does not fit."""
        learner, inputs = self.learner, self.learner.inputs
        if learner.core is not None and type(row) is not dict and layout_of(row) == inputs.layout:
            return  # most of them
        checkpoint = inputs.checkpoint()
        try:
            inputs.encode_row(row)
        except InvalidInput:
            inputs.rollback(checkpoint)
            raise

    def _row(self, decision: Event) -> Any:
        row = decision.row()
        return self.learner.inputs.encode_row(row) if type(row) is dict else row

    def _draws(self, bodies: list[DecisionBody]) -> DrawnSets:
        sets = [
            np.array([self.number[label] for label in (*body.labels, *body.drawn, *body.top)], np.intp)
            for body in bodies
        ]
        log_probs = [nan_if_none(body.log_propensity) for body in bodies]
        logs = []
        for answer in self._answers:
            log = answer.staged.record.event.draw_log(self.learner)
            if answer.staged.event.kind == TIMEOUT:  # no answer came in time: it moves no promise
                log = self.learner.rule.without_promise(log)
            logs.append(log)
        return DrawnSets.from_lists(sets, [len(body.labels) for body in bodies], log_probs, logs)

    def _eligible(self, body: DecisionBody) -> Array:
        """Return the labels that could be shown: the eligible ones, or all that there were."""
        if body.eligible is not None:
            return np.sort([self.number[label] for label in body.eligible])
        all_labels = self.learner.inputs.all_labels
        return all_labels if body.n_labels == len(all_labels) else all_labels[: body.n_labels]
