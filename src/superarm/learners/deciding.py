"""Deciding, one row at a time and many at once, and the fused loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array
from superarm.data.cells import json_row
from superarm.data.labels import Label
from superarm.data.tables import named_row
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import EligibleLabels
from superarm.explore.decide_rows import decide_rows
from superarm.learners import failures
from superarm.learners.cores import core_for_cursor, rollback_inputs
from superarm.learners.locking import takes_turns
from superarm.native import loops
from superarm.native.cursor import Cursor

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


@takes_turns
def decide(
    learner: Learner,
    x: Any,
    eligible: Iterable[Label] | None,
    set_size: int | None,
    coverage: float | None,
    cursor: Cursor | None,
) -> Decision:
    """Choose a set for one row, of whatever kind."""
    inputs, named = learner.inputs, named_row(x)
    indices = inputs.eligible_indices(eligible, named)
    m = learner.set_size if set_size is None else inputs.check_set_size(set_size)
    with rollback_inputs(learner, keep_on_success=cursor is None):
        row = inputs.encode_row(x if named is None else named)
        core = learner.ensure_core() if cursor is None else core_for_cursor(learner, cursor)
        x_as_given = row if named is None else json_row(named)
        target = learner.rule.checked_target(core.kernel, coverage, learner.owner)
        decision: Decision | None = core.decide(row, x_as_given, indices, m, cursor, target)
        if decision is None:
            raise failures.score_error(learner, row)
    if cursor is None and inputs.column_warnings:
        inputs.warn()
    return decision


@takes_turns
def advance(learner: Learner, decision: Decision) -> None:
    """Move a learner as if it had made this decision."""
    if not isinstance(decision, Decision) or decision.learner != learner.id or decision.round is None:
        raise learner.invalid("decision", f"its own (learner {learner.id})", decision)
    if learner.core is None or learner.columns is not None:
        learner.inputs.encode_row(decision.x)
    core, log = learner.ensure_core(), learner.rule.draw_log_of(decision)
    if not core.count_round(decision.round):
        raise learner.invalid("decision", "one that it has not made or taken before", decision)
    core.advance(log)


@takes_turns
def decide_many(
    learner: Learner,
    X: Any,
    eligible: Iterable[Label] | Sequence[Iterable[Label]] | None,
    set_size: int | None,
    coverage: float | None,
) -> Decisions:
    """Choose a set for every row of X, in one compiled loop."""
    inputs = learner.inputs
    m = learner.set_size if set_size is None else inputs.check_set_size(set_size)
    with rollback_inputs(learner, keep_on_success=True):
        rows = inputs.encode_owned_rows(X)
        core, eligible_labels = learner.ensure_core(), EligibleLabels(inputs.showable)
        if eligible is not None:
            eligible_labels = inputs.eligible_by_row(eligible, len(rows), m)
        target = learner.rule.checked_target(core.kernel, coverage, learner.owner)
        decisions, done = decide_rows(core, rows, eligible_labels, m, target, rows)
        if done < len(rows):
            raise failures.score_error(learner, rows.row(done))
    return decisions


@takes_turns
def run(learner: Learner, X: Any, y: Any, order: Any, signed_sizes: Array | None) -> Array:
    """Decide and update over rows of X, answered from y, in one compiled loop; return the counts of mistakes."""
    with rollback_inputs(learner, keep_on_success=True):
        rows = learner.inputs.encode_rows(X)
        y, order = learner.inputs.check_run(len(rows), y, order, signed_sizes)
        core, counts = learner.ensure_core(), np.zeros(4, np.int64)
        before = core.round
        done, status = loops.run(core, rows, y, order, counts, signed_sizes)
        if status and done == 0:  # nothing stays of the first row
            core.raise_pending()
            raise failures.update_error(learner, status, rows.row(order[0]), before)
    core.raise_pending()
    if status:
        raise failures.update_error(learner, status, rows.row(order[done]), before + done)
    learner.rule.warn_of_promise(core.kernel)
    return counts
