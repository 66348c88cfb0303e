"""LoggedDecision: a decision with its answer, the row of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from superarm.data.labels import Label
from superarm.data.rows import Row
from superarm.decisions.decision import Decision
from superarm.errors import InvalidInput

LOG_FORMAT = 1  # of the columns of a log

# The columns of a log, in this order. Everything but the features and the labels may be missing.
COLUMNS = (
    *("format", "id", "time", "x", "x_indices", "x_values", "labels", "drawn", "top", "eligible", "set_size"),
    *("gamma", "propensity", "ordered_propensity", "rule", "hit", "label", "learner", "context"),
)


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision and what came of it: one row of a log.

    Attributes:
        decision: what was shown.
        hit: whether the right label was among them; ``None`` if no outcome is known.
        label: the right label, where the world named it.
        id, time, context: details of the writer's; nothing computes with them.
        row_index: the place of the row in its file, from 0, bad rows included.
        extra_columns: other columns of the row that were asked for; they are not written.
    """

    decision: Decision
    hit: bool | None = None
    label: Label | None = None
    id: str | None = None
    time: Any = None
    context: str | None = None
    row_index: int = 0
    extra_columns: Mapping[str, Any] | None = None

    @classmethod
    def from_decision(
        cls, decision: Decision, *, hit: bool | None = None, label: Label | None = None, **details: Any
    ) -> LoggedDecision:
        """Return the record of a decision with its ``hit`` or ``label``; ``details`` are id, time and context."""
        if hit is None and label is not None:
            hit = label in decision.labels
        if hit is not None and hit not in (0, 1):  # NumPy's numbers and booleans are as good
            raise InvalidInput.must("hit", "LoggedDecision", "True or False", hit)
        return cls(decision, None if hit is None else bool(hit), label, **details)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready value for each of `COLUMNS`, in their order."""
        decision, x = self.decision, self.decision.x
        sparse = isinstance(x, Row)
        dense = x.dense if sparse else x
        return {
            "format": LOG_FORMAT,
            "id": self.id,
            "time": self.time,
            "x": x if x is None or isinstance(x, dict) else dense.tolist() if len(dense) else None,
            "x_indices": x.indices.tolist() if sparse else None,
            "x_values": x.values.tolist() if sparse else None,
            "labels": decision.labels,
            "drawn": decision.drawn,
            "top": decision.top or None,
            "eligible": decision.eligible,
            "set_size": decision.set_size,
            "gamma": decision.gamma,
            # a probability too small for a float is unknown, not zero
            "propensity": decision.propensity or None,
            "ordered_propensity": decision.ordered_propensity or None,
            "rule": decision.rule,
            "hit": self.hit,
            "label": self.label,
            "learner": decision.learner,
            "context": self.context,
        }
