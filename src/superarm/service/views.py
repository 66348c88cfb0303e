"""What a service tells those who look: what it was made for, what the dashboard shows, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.groups import coverage_by, worst_first
from superarm.journal.errors import JournalFull
from superarm.journal.records import DecisionRecord, DecisionStatus
from superarm.journal.stats import AGES
from superarm.service.status import Status, falling_sentence, promise_sentences

if TYPE_CHECKING:
    from superarm.service.service import Service

__all__ = ["info", "report", "stats", "status"]

MOST_PARTS = 200  # labels or groups whose coverage is shown, the least first


def info(service: Service) -> dict[str, Any]:
    """What the service was made for."""
    from superarm import __version__

    serving = service.model.model()
    learner = serving.learner
    return {
        "learner": service.meta["learner"],
        "learner_id": learner.id,
        "params": {name: value for name, value in learner.params.items() if name != "labels"},
        "labels": list(learner.labels or ()),
        "disabled": sorted(serving.disabled),
        "frozen": serving.frozen,
        "n_features": learner.n_features,
        "set_size": learner.set_size,
        "coverage": service.meta.get("coverage"),
        "model_version": serving.version,
        "timeout": service.timeout,
        "default_outcome": service.default,
        "superarm": __version__,
    }


def status(service: Service) -> Status:
    """What people on call need to know."""
    model = service.model
    return Status(
        down=None if service.down is None else str(service.down),
        full=isinstance(service.down, JournalFull),
        events=model.seq,
        snapshot_lag=model.seq - model.snapshot_seq,
        restart_seconds=service.restart_seconds,
        replayed=model.replayed,
        turn_seconds=0.0 if service.turns is None else service.turns.age,
        log_bytes=service.store.log_bytes(),
        broken_snapshots=model.broken_snapshots,
        upkeep_failures=service.upkeep.failures,
        upkeep_error=service.upkeep.error,
        erasing=model.erasing(),
        falling=falling_sentence(model.stats),
        more=(*promise_sentences(model.model().learner), *model.trouble()),
    )


def stats(service: Service) -> dict[str, Any]:
    """All that the dashboard shows."""
    service.model.refresh()
    stats, serving, status, now = (
        service.model.stats,
        service.model.model(),
        service.status(),
        service.model.clock(),
    )
    oldest = service.store.pending(1)
    recent = [event.id for event in service.store.recent(12)]
    by_id = service.store.find(recent)
    return {
        "now": now,
        **{name: getattr(stats, name) for name in (*stats.COUNTS, "pending", "floor")},
        "oldest_pending": max(0.0, now - oldest[0].time) if oldest else None,
        "mean_age": stats.age_sum / max(1, sum(stats.ages)),
        "ages": {"below": [*AGES, None], "count": stats.ages},
        "labels": {
            "name": stats.labels,
            "shown": stats.shown,
            "answered": stats.answered,
            "hit": stats.hit,
        },
        "curve": {"start": stats.start, "width": stats.width, "slots": stats.slots},
        "sizes": stats.sizes,
        "promise": _promise(serving.learner),
        "by_label": {"unnamed": stats.unnamed, "parts": _parts(stats.labels, stats.named)},
        "by_group": {
            "column": service.meta.get("group"),
            "parts": _parts(list(stats.groups), list(stats.groups.values())),
        },
        "recent": [_brief(record) for id_ in recent if (record := DecisionRecord.of(by_id[id_]))],
        "learner": service.meta["learner"],
        "disabled": sorted(serving.disabled),
        "frozen": serving.frozen,
        "shadows": [report(one) for one in service.model.reports()],
        "trouble": status.trouble,
        "warnings": list(service.handler.warnings.values()),
        "journal": {"events": status.events, "down": status.down, "snapshot_lag": status.snapshot_lag},
        "processes": getattr(service.model, "processes", None),
    }


def _brief(record: DecisionRecord) -> dict[str, Any]:
    body, event = record.body, record.event
    return {
        "id": event.id,
        "time": event.time,
        "labels": body.labels,
        "explored": set(body.labels) != set(body.top),
        "propensity": record.propensity,
        "state": record.status.value,
        "hit": None
        if record.status is DecisionStatus.PENDING
        else (record.outcome or record.timeout).body.hit,  # type: ignore[union-attr]
    }


def _promise(learner: Any) -> dict[str, Any] | None:
    """Of a promised coverage: what was kept."""
    coverage = learner.coverage
    if coverage is None:
        return None
    return report(
        {name: getattr(coverage, name) for name in ("promised", "kept", "mean_size", "answers", "warm_up")}
    )


def _parts(names: Sequence[str], counts: list[list[int]]) -> list[dict[str, Any]]:
    """Coverage of each label or group, the least first."""
    shown, _ = worst_first(coverage_by(names, np.array(counts, float).reshape(-1, 3)), MOST_PARTS)
    return [asdict(part) for part in shown]


def report(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(v, float) and isnan(v) else v for name, v in values.items()}
