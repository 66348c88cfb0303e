"""The decision log of a journal: one row per decision, with what evaluation needs.

    id time x labels drawn top eligible set_size gamma propensity ordered_propensity hit label learner context

``x`` is a list of floats, or the names and values of a row with names (as JSON, but in JSON lines), or
``x_indices`` and ``x_values`` take its place if the learner's rows are sparse. ``time`` is ISO 8601, UTC.
``hit`` and ``label`` are the outcome, in time or late, and null without one: the default of a timeout was not
observed and does not count here. Decisions whose features were erased are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from orjson import loads

from superarm._types import JsonObject
from superarm.decisions import Decision
from superarm.journal.events import DECISION, OUTCOME
from superarm.journal.snapshots import check_kind
from superarm.journal.store import Store
from superarm.logs.writer import Writer


def rows(store: Store) -> Iterator[tuple[Decision, JsonObject]]:
    """Each decision with its outcome, id, time and context, in the order they were made.

    Two passes: outcomes come after their decisions, days later perhaps, and are small.
    """
    check_kind(store.meta())
    outcomes = {event.id: event.body for event in store.events() if event.kind == OUTCOME}
    learner = store.meta()["learner"]
    for event in store.events():
        if event.kind != DECISION or event.x is None:
            continue
        outcome = outcomes.get(event.id)
        context = None if event.context is None else json.dumps(loads(event.context), ensure_ascii=False)
        time = datetime.fromtimestamp(event.time, UTC).isoformat()
        hit, label = (None, None) if outcome is None else (outcome.hit, outcome.label)
        fields = {"hit": hit, "label": label, "id": event.id, "time": time, "context": context}
        yield event.to_decision(learner), fields


def export(store: Store, path: str | Path) -> int:
    """Write the decision log, as Parquet, JSON lines or CSV by the file's ending; how many rows."""
    with Writer(path) as log:
        for decision, fields in rows(store):
            log.add(decision, **fields)
    return log.rows
