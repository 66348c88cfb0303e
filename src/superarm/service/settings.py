"""How a service runs. A restart may change all of it; what the journal was made for stays (journal/create.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from superarm.errors import InvalidInput
from superarm.journal.shadows import make_shadows
from superarm.learners import Learner
from superarm.parameters import check_bool, check_int, parse_duration

OWNER = "superarm serve"
DEFAULT_OUTCOMES = {"none": None, "hit": True, "miss": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a service."""

    timeout: float | None = None  # seconds after which a decision without an outcome is closed
    default_outcome: bool | None = None  # the outcome that a timeout counts as; None: none
    snapshot_every: int = 50_000  # events between two snapshots
    keep_snapshots: int = 3  # how many, beside the first and pinned ones; 0: all
    retain: float | None = None  # seconds after which features and context are erased
    shadows: Sequence[str] = ()  # learners that learn beside it, and are never shown
    trust_clock: bool = False  # use the clock, however far it is from the last event
    clock: Callable[[], float] | None = None  # the time of events, in place of the journal's own clock
    patience: float = 5.0  # of a database: seconds that a statement may take

    def __post_init__(self) -> None:
        for name in ("timeout", "retain", "patience"):
            seconds = getattr(self, name)
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not (is_number and seconds > 0.0) and (seconds is not None or name == "patience"):
                raise InvalidInput.must(name, OWNER, "more than 0 seconds", seconds)
        if not isinstance(self.default_outcome, bool | None):
            raise InvalidInput.must("default_outcome", OWNER, "none, miss or hit", self.default_outcome)
        if self.default_outcome is not None and self.timeout is None:
            got = "hit" if self.default_outcome else "miss"
            raise InvalidInput.must("default_outcome", OWNER, "none where there is no timeout", got)
        check_bool("trust_clock", OWNER, self.trust_clock)
        if not all(isinstance(spec, str) for spec in self.shadows):
            raise InvalidInput.must("shadows", OWNER, "a learner, or a list of them", self.shadows)
        check_int("snapshot_every", OWNER, self.snapshot_every, 1)
        check_int("keep_snapshots", OWNER, self.keep_snapshots, 0)

    @classmethod
    def parse(cls, **options: Any) -> Settings:
        """Return settings from fields by name; some may be as on the command line: "90d", "miss", one shadow."""
        names = [field.name for field in fields(cls)]
        for name, value in options.items():
            if name not in names:
                raise InvalidInput.must("option", OWNER, f"one of {', '.join(names)}", name, choices=names)
            if name in ("timeout", "retain") and isinstance(value, str):
                options[name] = parse_duration(value, name, OWNER)
            elif name == "default_outcome" and isinstance(value, str):
                options[name] = DEFAULT_OUTCOMES.get(value, value)
            elif name == "shadows" and isinstance(value, str):
                options[name] = (value,)
        return cls(**options)

    def check(self, learner: Learner) -> None:
        """Refuse settings that a learner cannot follow."""
        if self.default_outcome is not None and "hit" not in learner.feedback:
            wanted = f"none: {type(learner).__name__} learns from labels, not from hits"
            given = "hit" if self.default_outcome else "miss"
            raise InvalidInput.must("default_outcome", OWNER, wanted, given)
        make_shadows(self.shadows, learner)
