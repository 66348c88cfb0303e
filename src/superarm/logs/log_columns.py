"""Which columns of a log hold what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
        features: columns of numbers, words, text, dates, with gaps or without; ``None`` takes ``x``, or
            ``x_indices`` and ``x_values``, or else every other column that is no id, index, constant, time of
            the row, or only known afterwards.
        text, words, numbers, dates: features that hold this, whatever they look like.
        leave_out: columns that are no features.
    """

    labels: tuple[str, ...] = ("labels",)
    hit: str = "hit"
    label: str = "label"
    propensity: str = "propensity"
    eligible: str = "eligible"
    features: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: Any = self.labels
        object.__setattr__(self, "labels", (given,) if isinstance(given, str) else tuple(given))

    @property
    def taken(self) -> dict[str, str]:
        """Columns that are no features, and what they are (superarm's own go without saying)."""
        return {
            **dict.fromkeys(COLUMNS, ""),
            "id": "an id",
            "time": "time",
            self.hit: "the outcome",
            self.label: "the outcome",
            **dict.fromkeys(self.labels, "the set"),
            self.propensity: "how probable the set was",
            self.eligible: "what could be shown",
        }

    @property
    def kinds(self) -> dict[str, Any]:
        """The features whose kinds are given, as `superarm.Columns.infer` takes them."""
        names = ("text", "words", "numbers", "dates", "leave_out")
        return {name: tuple(getattr(self, name)) for name in names}
