"""Which columns of a log hold what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from superarm.data.column import ColumnKinds
from superarm.decisions.decision import COLUMNS


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Which columns of a log hold what; the defaults are superarm's own names.

    Attributes:
        labels: one column with the whole set, or one column for each label of the slate.
        hit: whether the right label was among the shown ones.
        label: the right label, where it is known.
        propensity: how probable the set was.
        eligible: the labels that could be shown.
        features: columns of numbers, words, text, dates, some of them missing; ``None`` takes ``x``, or
            ``x_indices`` and ``x_values``, or else every other column that is no id, index, constant, time of
            the row, or only known afterwards.
        kinds: what some columns are, whatever they look like, as `superarm.Columns.infer` takes it:
            ``{"note": "text", "id": "left out"}``.
    """

    labels: tuple[str, ...] = ("labels",)
    hit: str = "hit"
    label: str = "label"
    propensity: str = "propensity"
    eligible: str = "eligible"
    features: tuple[str, ...] | None = None
    kinds: ColumnKinds = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: Any = self.labels
        object.__setattr__(self, "labels", (given,) if isinstance(given, str) else tuple(given))

    @property
    def reserved(self) -> dict[str, str]:
        """Columns that are no features, and why; those of superarm's own format need no reason."""
        return {
            **dict.fromkeys(COLUMNS, ""),
            "id": "an id",
            "time": "time",
            "context": "the context of a decision, which is no feature",
            self.hit: "the outcome",
            self.label: "the outcome",
            **dict.fromkeys(self.labels, "the set"),
            self.propensity: "how probable the set was",
            self.eligible: "what could be shown",
        }
