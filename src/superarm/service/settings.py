"""How a service runs. A restart may change all of it; what the journal was made for stays (journal/create.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from superarm.errors import InvalidInput
from superarm.journal.shadows import make_shadows
from superarm.learners import Learner

UPKEEP_EVERY = 0.5  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a service."""

    timeout: float | None = None  # seconds after which a decision without an outcome is closed
    default_outcome: bool | None = None  # the outcome that a timeout counts as; None: none
    snapshot_every: int = 50_000  # events between two snapshots
    keep_snapshots: int = 3  # how many, beside the first and pinned ones; 0: all
    retain: float | None = None  # seconds after which features and context are erased
    shadows: Sequence[str] = ()  # learners that learn beside it, and are never shown
    trust_clock: bool = False  # believe the clock, however far it is from the last event
    clock: Callable[[], float] | None = None  # the time of events, in place of the journal's own clock
    patience: float = 5.0  # of a database: seconds that a statement may take

    def __post_init__(self) -> None:
        for name in ("timeout", "retain", "patience"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0.0:
                raise InvalidInput.must(f"--{name}", "superarm serve", "more than 0 seconds", seconds)

    def check(self, learner: Learner) -> None:
        """Refuse settings that a learner cannot follow."""
        if self.default_outcome is not None and "hit" not in learner.feedback:
            wanted = f"none: {type(learner).__name__} learns from labels, not from hits"
            given = "hit" if self.default_outcome else "miss"
            raise InvalidInput.must("--default-outcome", "superarm serve", wanted, given)
        make_shadows(self.shadows, learner)
