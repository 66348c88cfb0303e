"""What a session is asked, what it is told, and what it keeps of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from superarm.decision import Decision
from superarm.rows import Row, row_to_json
from superarm.service.core.journal import STATES, Place

__all__ = ["Ask", "Entry", "Reply", "outcome_of"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a set."""

    x: Row
    id: str | None = None
    eligible: tuple[str, ...] | None = None
    set_size: int | None = None
    context: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer about a decision: the bit, or the right label."""

    id: str
    hit: bool | None = None
    label: str | None = None


@dataclass(slots=True)
class Entry:
    """A decision and what has become of it."""

    place: Place
    x: bytes
    body: dict[str, Any]
    decision: Decision
    outcome: dict[str, Any] | None

    def shown(self) -> dict[str, Any]:
        """What the asker is told."""
        return {
            "id": self.place.id,
            "labels": self.body["labels"],
            "propensity": self.decision.propensity,
            "model_version": self.body["version"],
        }

    def full(self) -> dict[str, Any]:
        """All about it, as JSON-ready values."""
        features = row_to_json(self.decision.x)
        if isinstance(features, dict):
            del features["width"]
        return {
            **self.shown(),
            "time": self.place.time,
            "state": STATES[self.place.state],
            "features": features,
            "top": self.body["top"],
            "eligible": self.body["eligible"],
            "set_size": len(self.body["labels"]),
            "context": self.body["context"],
            "outcome": self.outcome,
        }


def outcome_of(at: float, timeout: bool, body: dict[str, Any]) -> dict[str, Any]:
    """What is told of an outcome or timeout event."""
    kept = {"hit": body["hit"], "label": body["label"], "time": at, "learnt": body["learnt"]}
    return kept | {"late": body["late"], "timeout": timeout}
