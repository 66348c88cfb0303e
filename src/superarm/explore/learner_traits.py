"""LearnerTraits: what a rule may know of its learner."""

from __future__ import annotations

from typing import NamedTuple


class LearnerTraits(NamedTuple):
    """The traits of a learner that its rule may depend on.

    Attributes:
        full_information: whether it is told every label.
        none_label: the index of a label that is never shown and may be the truth; ``None`` without one.
    """

    full_information: bool = False
    none_label: int | None = None
