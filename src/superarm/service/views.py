"""Views of a service: the bodies of responses (messages.py has their types). They change nothing."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import asdict, astuple

from superarm._types import JsonObject
from superarm.data.rows import row_to_json
from superarm.groups import coverage_by, worst_first
from superarm.journal.events import loads
from superarm.journal.records import DecisionRecord
from superarm.journal.totals import AGE_BUCKETS, CoverageCounts, LabelCounts, Stats
from superarm.learners import Learner
from superarm.service.follower import JournalFollower
from superarm.service.messages import (
    Changes,
    DecisionRecordBody,
    DecisionResponse,
    Info,
    Outcome,
    PendingBody,
    PendingItem,
    SnapshotItem,
    Snapshots,
)

if TYPE_CHECKING:
    from superarm.service.service import Service

MAX_PARTS = 200  # labels or groups whose coverage is shown, the least first


def info(service: Service) -> Info:
    """Return the learner, labels and options of the service."""
    from superarm import __version__

    projector = service.projector
    learner, totals = projector.learner, projector.totals
    return Info(
        learner=service.meta["learner"],
        learner_id=learner.id,
        params={name: value for name, value in learner.params.items() if name != "labels"},
        labels=list(learner.labels or ()),
        disabled=sorted(totals.settings.disabled),
        frozen=totals.settings.frozen,
        n_features=learner.n_features,
        set_size=learner.set_size,
        coverage=service.meta.get("coverage"),
        model_version=totals.stats.learnt,
        timeout=service.settings.timeout,
        default_outcome=service.settings.default_outcome,
        superarm=__version__,
    )


def decision_response(record: DecisionRecord, warnings: tuple[str, ...] = ()) -> DecisionResponse:
    """Return the response to the request for a decision."""
    return DecisionResponse(
        id=record.decision.id,
        labels=tuple(record.body.labels),
        propensity=record.propensity,
        model_version=record.body.n_learnt,
        warnings=warnings,
    )


def recorded_outcome(follower: JournalFollower, record: DecisionRecord) -> Outcome | None:
    """Return the outcome of a decision, or its timeout in the place of one; None if it has neither."""
    event = record.closed_by
    if event is None:
        return None
    return Outcome(
        hit=event.body.hit,
        label=event.body.label,
        time=event.time,
        learnt=follower.was_learnt(record),
        late=record.earlier_timeout is not None,
        timeout=record.outcome is None,
    )


def decision_details(service: Service, id_: str) -> DecisionRecordBody | None:
    """Return all that the journal has about a decision; None if there is none of that id."""
    service.check_readable()
    record = DecisionRecord.from_events(service.store.events_by_id([id_]).get(id_, ()))
    if record is None:
        return None
    event, body, features = record.decision, record.body, None
    if event.x is not None:
        x = event.row()
        features = x if isinstance(x, dict) else row_to_json(x, width=False)
    return DecisionRecordBody(
        **asdict(decision_response(record)),
        time=event.time,
        state=record.status,
        features=features,
        top=body.top,
        eligible=body.eligible,
        set_size=len(body.labels),
        context=None if event.context is None else loads(event.context),
        erased=event.x is None,
        outcome=recorded_outcome(service.follower, record),
    )


def pending(service: Service, limit: int, after: int = 0) -> PendingBody:
    """Return decisions without an outcome, oldest first."""
    service.check_readable()
    waiting, now = service.store.pending(limit + 1, after), service.follower.clock()
    return PendingBody(
        pending=[PendingItem(one.id, one.time, max(0.0, now - one.time)) for one in waiting[:limit]],
        count=service.projector.totals.stats.pending,
        next=waiting[limit - 1].seq if len(waiting) > limit else None,
    )


def oldest_pending_seconds(service: Service) -> float | None:
    """Return the age of the oldest decision without an outcome; None if there is none."""
    oldest = service.store.pending(1)
    return max(0.0, service.follower.clock() - oldest[0].time) if oldest else None


def snapshots(service: Service) -> Snapshots:
    """Return the kept snapshots, oldest first."""
    service.check_readable()
    kept = service.store.snapshots()
    return Snapshots([SnapshotItem(info.seq, info.time, **info.made_by) for info in kept])


def changes(service: Service) -> Changes:
    """Return the changes by operators, oldest first, without refused ones."""
    service.check_readable()
    listed, refused = [], service.projector.totals.refused_seqs
    for event in service.store.changes():
        if event.seq in refused:
            continue
        body = event.body
        if "ids" in body:  # how many, and not whose
            body = body | {"ids": len(body["ids"])}
        listed.append({"seq": event.seq, "time": event.time, **body})
    return Changes(listed)


def stats(service: Service) -> JsonObject:
    """Return all that the dashboard shows."""
    projector, now = service.projector, service.follower.clock()
    stats, settings = projector.totals.stats, projector.totals.settings
    recent = [event.id for event in service.store.recent_decisions(12)]
    by_id = service.store.events_by_id(recent)
    # another thread counts meanwhile: each dict is looked up, or listed at once
    labels, coverage_of = projector.labels, stats.coverage_by_label
    totals = {
        "now": now,
        **{name: getattr(stats, name) for name in (*stats.COUNTS, "pending")},
        "floor": stats.min_propensity,
        "oldest_pending": oldest_pending_seconds(service),
        "mean_age": stats.age_sum / max(1, sum(stats.ages)),
        "ages": {"below": [*AGE_BUCKETS, None], "count": stats.ages},
        "labels": _label_counts(labels, stats),
        "curve": {
            "start": stats.start,
            "width": stats.width,
            "slots": [astuple(slot) for slot in stats.slots],
        },
        "sizes": stats.set_size_counts,
        "promise": _promised_coverage(projector.learner),
        "by_label": {
            "unnamed": stats.unnamed,
            "parts": _coverage_parts(
                [(label, coverage_of[label]) for label in labels if label in coverage_of]
            ),
        },
        "by_group": {
            "column": service.meta.get("group"),
            "parts": _coverage_parts(list(stats.coverage_by_group.items())),
        },
        "recent": [
            _recent_decision(record) for id_ in recent if (record := DecisionRecord.from_events(by_id[id_]))
        ],
        "learner": service.meta["learner"],
        "disabled": sorted(settings.disabled),
        "frozen": settings.frozen,
        "shadows": service.projector.reports(),
        "warnings": list(service.column_warnings.by_column.values()),
        "processes": service.store.processes(),
    }
    return copy.deepcopy(totals)  # the running lists are in it


def _label_counts(labels: Sequence[str], stats: Stats) -> JsonObject:
    """Return how often each label was shown, and how often that was answered, and a hit."""
    counts = [stats.by_label.get(label, LabelCounts()) for label in labels]
    return {
        "name": labels,
        "shown": [count.shown for count in counts],
        "answered": [count.answered for count in counts],
        "hit": [count.hits for count in counts],
    }


def _recent_decision(record: DecisionRecord) -> JsonObject:
    body, event, last = record.body, record.decision, record.closed_by
    return {
        "id": event.id,
        "time": event.time,
        "labels": body.labels,
        "explored": set(body.labels) != set(body.top),
        "propensity": record.propensity,
        "state": record.status,
        "hit": None if last is None else last.body.hit,
    }


def _promised_coverage(learner: Learner) -> JsonObject | None:
    """Return the promised coverage and how it is kept; None without a promise."""
    coverage = learner.coverage
    if coverage is None:
        return None
    names = ("promised", "kept", "mean_size", "answers", "warm_up")
    figures = {name: getattr(coverage, name) for name in names}
    return {name: None if isnan(figure) else figure for name, figure in figures.items()}  # JSON has no NaN


def _coverage_parts(counts: Sequence[tuple[str, CoverageCounts]]) -> list[JsonObject]:
    """Return the coverage of each label or group, the least first."""
    sums = np.array([astuple(count) for _, count in counts], float).reshape(-1, 3)
    shown, _ = worst_first(coverage_by([name for name, _ in counts], sums), MAX_PARTS)
    return [dataclasses.asdict(part) for part in shown]
