"""What the events about decisions do to the learner that made them: a decision moves it, an answer teaches it.

The same bits as `Learner.decide` and `Learner.update`. What counts is what the events say: how many labels there were,
and what the rule wrote down.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from superarm._types import Array
from superarm.data.rows import layout_of
from superarm.decisions import Decision
from superarm.decisions.decision import nan_if_none
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.events import TIMEOUT, DecisionBody, Event
from superarm.learners import Learner
from superarm.learners.answers import CheckedAnswer, learn


def draw_log(learner: Learner, body: DecisionBody) -> Array:
    """Return what the rule wrote down at a decision; empty if another rule has taken its place."""
    if body.rule is None or body.rule["name"] != learner.rule.name:
        return np.zeros(0)
    return np.asarray(learner.rule.draw_log_from(body.rule), np.float64)


def label_number(learner: Learner, label: str | None) -> int:
    """Return the number of a known label; -1 for None."""
    return -1 if label is None else cast(int, learner.vocabulary.index(label))


def apply_decision(learner: Learner, decision: Event) -> None:
    """Move a learner as the decision did; InvalidInput if its row does not fit the rows before it."""
    inputs, row = learner.inputs, decision.row()
    if learner.core is None or isinstance(row, dict) or layout_of(row) != inputs.layout:  # few of them
        checkpoint = inputs.checkpoint()
        try:
            inputs.encode_row(row)  # a first row fixes the layout, and new names get their features
        except InvalidInput:
            inputs.rollback(checkpoint)
            raise
    core = learner.ensure_core()
    core.count_round(decision.body.round)
    core.advance(draw_log(learner, decision.body))


def learn_answer(learner: Learner, decision: Event, answer: Event, label: str | None) -> str | None:
    """Let a learner learn an outcome, or the default of a timeout, of its decision; return why it cannot, or None.

    ``label`` is the right one, where that is known and the learner learns from labels.
    """
    body, vocabulary, row = decision.body, learner.vocabulary, decision.row()
    log = draw_log(learner, body)
    if answer.kind == TIMEOUT:  # no answer came in time: it moves no promise
        log = learner.rule.without_promise(log)
    sets = np.array([vocabulary.index(name) for name in (*body.labels, *body.drawn, *body.top)], np.intp)
    own = Decision.from_parts(
        x=None,
        sets=sets,
        size=len(body.labels),
        log_propensity=nan_if_none(body.log_propensity),
        round=body.round,
        vocabulary=vocabulary,
    )
    checked = CheckedAnswer(
        own,
        row=learner.inputs.encode_row(row) if isinstance(row, dict) else row,
        eligible=_eligible_numbers(learner, body),
        sets=sets,
        draw_log=log.tobytes(),
        hit=answer.body.hit,
        label=label_number(learner, label),
        likelihood=None,
    )
    try:
        learn(learner, checked)
    except SuperarmError as error:
        return str(error)
    return None


def _eligible_numbers(learner: Learner, body: DecisionBody) -> Array:
    """Return the labels that could be shown: the eligible ones, or all that there were."""
    if body.eligible is not None:
        return np.sort([learner.vocabulary.index(label) for label in body.eligible])
    return learner.inputs.all_labels[: body.n_labels]
