"""The state of a service for people on call: `/ready` and the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from superarm.journal.stats import Stats
from superarm.learners import Learner

HUNG_SECONDS = 10.0  # a turn that has been under way for longer than this is stuck


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a service and its journal.

    Attributes:
        down: why nothing can be written at the moment; None if it can.
        full: whether that is because the disk or the size limit is full.
        events: events written since the journal was made.
        snapshot_lag: events since the newest snapshot, which a restart would have to project.
        restart_seconds, replayed: what the start took, and how many events it projected.
        turn_seconds: the age of the turn that is under way; 0 if there is none.
        erasing: why an erasure is not finished; None if all are.
        falling: whether the hit rate is below the usual one by more than chance.
        more: whatever else is wrong, one sentence each.
    """

    down: str | None
    full: bool
    events: int
    snapshot_lag: int
    restart_seconds: float
    replayed: int
    turn_seconds: float = 0.0
    log_bytes: int = 0
    broken_snapshots: tuple[int, ...] = ()
    upkeep_failures: int = 0
    upkeep_error: str | None = None
    erasing: str | None = None
    falling: str | None = None
    more: tuple[str, ...] = ()

    @property
    def trouble(self) -> tuple[str, ...]:
        """Problems, worst first, one sentence each; empty if there are none."""
        sentences = [] if self.down is None else [self.down]
        if self.turn_seconds > HUNG_SECONDS:
            sentences.append(f"a commit has been waiting for the disk for {self.turn_seconds:.0f} s")
        sentences += [sentence for sentence in (self.erasing, self.falling) if sentence is not None]
        if self.broken_snapshots:
            sentences.append(
                f"snapshots are damaged: after events {', '.join(map(str, self.broken_snapshots))}"
            )
        if self.upkeep_error is not None:
            sentences.append(f"upkeep fails: {self.upkeep_error}")
        return (*sentences, *self.more)

    @property
    def ready(self) -> bool:
        """Whether requests that write should be sent here."""
        return self.down is None and self.turn_seconds <= HUNG_SECONDS


def falling_sentence(stats: Stats) -> str | None:
    if not stats.falling:
        return None
    return f"the hit rate has fallen: {stats.recent:.3f} lately, {stats.usual:.3f} usually"


def promise_sentences(learner: Learner) -> list[str]:
    """Why a promised coverage cannot be kept, if so."""
    promise = learner.coverage
    return [] if promise is None or promise.trouble is None else [promise.trouble]
