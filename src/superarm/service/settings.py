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
    """The settings of a service.

    Attributes:
        timeout: seconds after which a decision without an outcome is closed.
        default_outcome: the outcome that a timeout counts as; None: none.
        snapshot_every: events between two snapshots.
        keep_snapshots: how many, beside the first and pinned ones; 0: all.
        retain: seconds after which features and context are erased.
        shadows: learners that learn beside it, and are never shown.
        trust_clock: believe the clock, however far it is from the last event.
        lease: of a database: seconds without a sign of life after which another process learns.
        patience: of a database: seconds that a caller waits for it.
        publish_every: of a database: seconds between two models that are published, or five times what one costs.
        may_learn: of a database: whether this process may learn.
        clock: of a file: the time, in place of `SystemClock`.
    """

    timeout: float | None = None
    default_outcome: bool | None = None
    snapshot_every: int = 50_000
    keep_snapshots: int = 3
    retain: float | None = None
    shadows: Sequence[str] = ()
    trust_clock: bool = False
    lease: float = 3.0
    patience: float = 5.0
    publish_every: float = 0.1
    may_learn: bool = True
    clock: Callable[[], float] | None = None

    def __post_init__(self) -> None:
        for name in ("timeout", "retain", "lease", "patience"):
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
