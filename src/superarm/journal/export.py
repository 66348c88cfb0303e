"""The decision log of a journal: one row per decision, with what evaluation needs.

    format id time x labels drawn top eligible set_size gamma propensity ordered_propensity rule hit
    label learner context

``x`` is a list of floats, or the names and values of a row with names (as JSON, but in JSON lines), or
``x_indices`` and ``x_values`` take its place if the learner's rows are sparse. ``time`` is ISO 8601, UTC.
``hit`` and ``label`` are the outcome, in time or late, and null without one: the default of a timeout was not
observed and does not count here. Decisions whose features were erased are left out.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from orjson import loads

from superarm.journal.create import check_is_service_journal
from superarm.journal.events import DECISION, OUTCOME
from superarm.journal.store import JournalStore
from superarm.logs.writer import Writer


def export(store: JournalStore, path: str | Path) -> tuple[int, int]:
    """Write the decision log, as Parquet, JSON lines or CSV by the file's ending.

    Two passes: outcomes come after their decisions, days later perhaps, and are small.

    Returns:
        How many decisions were written, and how many were left out since their features were erased.
    """
    meta, n_erased = store.meta(), 0
    check_is_service_journal(meta)
    outcomes = {event.id: event.body for event in store.events() if event.kind == OUTCOME}
    with Writer(path) as log:
        for event in store.events():
            if event.kind != DECISION:
                continue
            if event.x is None:
                n_erased += 1
                continue
            outcome = outcomes.get(event.id)
            hit, label = (None, None) if outcome is None else (outcome.hit, outcome.label)
            context = None if event.context is None else json.dumps(loads(event.context), ensure_ascii=False)
            time = datetime.fromtimestamp(event.time, UTC).isoformat()
            decision = event.to_decision(meta["id"])
            log.add(decision, hit=hit, label=label, id=event.id, time=time, context=context)
    return log.rows, n_erased
