"""One row of a decision log: what was shown, how it was drawn, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm.decision import Decision, Label
from superarm.rows import Row, SparseRow

__all__ = ["FIELDS", "Entry"]

# The columns of a log, in this order. Everything but the features and the labels may be missing.
FIELDS = (
    "id",
    "time",
    "x",
    "x_indices",
    "x_values",
    "labels",
    "drawn",
    "top",
    "eligible",
    "set_size",
    "gamma",
    "propensity",
    "ordered_propensity",
    "hit",
    "label",
    "learner",
    "context",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One logged decision.

    Attributes:
        x: the features: a float32 vector, or a pair (indices, values).
        labels: the shown set, best first.
        hit: whether the right label was among them; ``None`` if no outcome is known.
        label: the right label, where the world named it.
        drawn, top, gamma: how the set was drawn, if as in the paper's eq. 5.
        eligible: the only labels that could have been shown.
        propensity: the probability of the set; ``ordered_propensity``: of the ordered draw.
        id, time, learner, context: whatever the writer knew; nothing computes with them.
        place: the row's number in the file, from 0, bad rows included.
    """

    x: Row
    labels: tuple[Label, ...]
    hit: bool | None = None
    label: Label | None = None
    drawn: tuple[Label, ...] | None = None
    top: tuple[Label, ...] | None = None
    gamma: float | None = None
    eligible: tuple[Label, ...] | None = None
    propensity: float | None = None
    ordered_propensity: float | None = None
    id: str | None = None
    time: Any = None
    learner: str | None = None
    context: str | None = None
    place: int = 0

    @classmethod
    def of(
        cls, decision: Decision, *, hit: bool | None = None, label: Label | None = None, **facts: Any
    ) -> Entry:
        """The entry for a decision and its answer; ``facts`` are id, time and context."""
        if hit is None and label is not None:
            hit = label in decision.labels
        return cls(
            x=decision.x,
            labels=tuple(decision.labels),
            hit=None if hit is None else bool(hit),
            label=label,
            drawn=tuple(decision.drawn),
            top=tuple(decision.top) or None,
            gamma=decision.gamma,
            eligible=None if decision.eligible is None else tuple(decision.eligible),
            # a probability too small for a float is unknown, not zero
            propensity=decision.propensity or None,
            ordered_propensity=decision.ordered_propensity or None,
            learner=decision.learner,
            **facts,
        )

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON-ready values, one for each of `FIELDS`."""
        sparse = self.x if isinstance(self.x, SparseRow) else None
        return {
            "id": self.id,
            "time": self.time,
            "x": None if sparse is not None else np.asarray(self.x).tolist(),
            "x_indices": None if sparse is None else sparse.indices.tolist(),
            "x_values": None if sparse is None else sparse.values.tolist(),
            "labels": list(self.labels),
            "drawn": None if self.drawn is None else list(self.drawn),
            "top": None if self.top is None else list(self.top),
            "eligible": None if self.eligible is None else list(self.eligible),
            "set_size": len(self.labels),
            "gamma": self.gamma,
            "propensity": self.propensity,
            "ordered_propensity": self.ordered_propensity,
            "hit": self.hit,
            "label": self.label,
            "learner": self.learner,
            "context": self.context,
        }
