"""What the events about decisions do to the learner that made them: a decision moves it, an answer teaches it.

The same bits as `Learner.decide` and `Learner.update`. What counts is what the events say: how many labels there were,
and what the rule wrote down.
"""

from __future__ import annotations

from superarm._types import Array
from superarm.data.rows import layout_of
from superarm.decisions import Decision
from superarm.errors import SuperarmError
from superarm.journal.events import Event
from superarm.learners import Learner
from superarm.learners.answers import checked_answer, learn


def apply_decision(learner: Learner, event: Event) -> None:
    """Move a learner as the decision did; InvalidInput if its row does not fit the rows before it."""
    inputs, rule, body, row = learner.inputs, learner.rule, event.body, event.row()
    if learner.core is None or isinstance(row, dict) or layout_of(row) != inputs.layout:  # few of them
        inputs.encode_row(row)  # a first row fixes the layout, and new names get their features
    core = learner.ensure_core()
    core.count_round(body.round)
    if rule.is_own_record(body.rule):
        core.advance(rule.draw_log_from(body.rule))


def learn_outcome(
    learner: Learner, decision: Decision, hit: bool, label: str | None, draw_log: Array | None = None
) -> str | None:
    """Let a learner learn an outcome, or the default of a timeout, of a decision; return why it cannot, or None.

    Args:
        learner: the learner.
        decision: its own, or as a set that another learner chose.
        hit: whether the right label was shown.
        label: the right one, where that is known and the learner learns from labels.
        draw_log: in place of what the rule wrote down.
    """
    try:
        answer = checked_answer(learner, decision, **({"hit": hit} if label is None else {"label": label}))
        learn(learner, answer if draw_log is None else answer._replace(draw_log=draw_log.tobytes()))
    except SuperarmError as error:
        return str(error)
    return None
