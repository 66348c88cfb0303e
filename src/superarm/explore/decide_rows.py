"""Deciding for many rows in one compiled loop: how learners, and rules that are used alone, do it."""

from __future__ import annotations

import numpy as np

from superarm.data.rows import Rows
from superarm.decisions.decisions import Decisions, DrawnSets, EligibleLabels
from superarm.native import loops
from superarm.native.core import Core


def decide_rows(
    core: Core, rows: Rows, eligible: EligibleLabels, m: int, coverage: float, kept_rows: Rows | None
) -> tuple[Decisions, int]:
    """Decide for many rows in one compiled loop, and move the core if all of them could be decided.

    Args:
        core: the core of a learner, or of a rule that is used alone.
        rows: the rows as the core reads them.
        eligible: the labels that may be shown.
        m: how many to show.
        coverage: the coverage to keep; 0 for the rule's own.
        kept_rows: the rows that the decisions keep.

    Returns:
        The decisions, and for how many rows they were made before one failed.
    """
    cursor = core.cursor()
    done, draws = loops.decide_many(core, rows, eligible, m, cursor, coverage)
    decisions = Decisions(
        rows=kept_rows,
        draws=DrawnSets(**draws),
        eligible=None if eligible.indices is core.all_labels else eligible,
        rule=core.rule,
        round=np.arange(core.round, cursor.round),
        learner=core.id,
        vocabulary=core.vocabulary,
    )
    if done == len(rows):
        core.move_to(cursor)
    return decisions, done
