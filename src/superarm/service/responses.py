"""The bodies of responses about a decision, from its record; messages.py has their types."""

from __future__ import annotations

from superarm._types import JsonObject
from superarm.data.rows import row_to_json
from superarm.journal.events import loads
from superarm.journal.records import DecisionRecord


def decision_response(record: DecisionRecord) -> JsonObject:
    """Return the `DecisionResponse` to the request for a decision."""
    body = record.body
    return {
        "id": record.decision.id,
        "labels": body.labels,
        "propensity": record.propensity,
        "model_version": body.n_learnt,
    }


def outcome_response(record: DecisionRecord, learnt: bool | None) -> JsonObject | None:
    """Return the `Outcome` of a decision, or its timeout in the place of one; None if it has neither.

    Args:
        record: the decision with its outcome.
        learnt: whether the outcome has moved the model, as `ServedModel.was_learnt` gives it.
    """
    event = record.closed_by
    if event is None:
        return None
    body, timeout = event.body, record.outcome is None
    return {
        "hit": body.hit,
        "label": body.label,
        "time": event.time,
        "learnt": learnt,
        "late": record.earlier_timeout is not None,
        "timeout": timeout,
    }


def decision_record_body(record: DecisionRecord, learnt: bool | None) -> JsonObject:
    """Return the `DecisionRecordBody` of a decision; features and context are None once they were erased."""
    event, body, features = record.decision, record.body, None
    if event.x is not None:
        x = event.row()
        features = x if isinstance(x, dict) else row_to_json(x)
        if not isinstance(x, dict) and isinstance(features, dict):
            del features["width"]  # as it came, without the width
    return {
        **decision_response(record),
        "time": event.time,
        "state": record.status,
        "features": features,
        "top": body.top,
        "eligible": body.eligible,
        "set_size": len(body.labels),
        "context": None if event.context is None else loads(event.context),
        "erased": event.x is None,
        "outcome": outcome_response(record, learnt),
    }
