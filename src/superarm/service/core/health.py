"""What people on call need to know of a session, in one record."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Health"]

HUNG_SECONDS = 10.0  # a commit that has been under way for longer than this is stuck


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a session and its journal.

    Attributes:
        down: why nothing can be written at the moment; None if it can.
        full: whether that is because the disk or the size limit is full.
        events: events written since the journal was made.
        snapshot_lag: events since the newest snapshot, which a restart would have to replay.
        restart_seconds: what opening and replaying took.
        replayed: how many events that was.
        more: whatever else is wrong, one sentence each.

    Of a journal in a file alone (a database sees to these itself):
        upkeep_failures: how often expiry, snapshots, compaction or retention have failed.
        upkeep_error: how they last failed; None if they have worked since.
        different_sets, different_odds, different_bits: decisions that came out otherwise when this
            process replayed them: another set; odds that differ by more than 1e-5; last bits only.
        commit_seconds: the age of the commit in flight; 0 if there is none.
        wal_bytes: the size of SQLite's write-ahead log.
        missing_archives: archive files that the journal lists and the disk does not have.
        broken_snapshots: snapshots that could not be read when this process started.
    """

    down: str | None
    full: bool
    events: int
    snapshot_lag: int
    restart_seconds: float
    replayed: int
    more: tuple[str, ...] = ()
    upkeep_failures: int = 0
    upkeep_error: str | None = None
    different_sets: int = 0
    different_odds: int = 0
    different_bits: int = 0
    commit_seconds: float = 0.0
    wal_bytes: int = 0
    missing_archives: tuple[str, ...] = ()
    broken_snapshots: tuple[int, ...] = ()

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong, worst first, one sentence each; empty if nothing is."""
        found = []
        if self.down is not None:
            found.append(self.down)
        if self.commit_seconds > HUNG_SECONDS:
            found.append(f"a commit has been waiting for the disk for {self.commit_seconds:.0f} s")
        if self.missing_archives:
            found.append(f"archives are missing: {', '.join(self.missing_archives)}")
        if self.different_sets or self.different_odds:
            count = self.different_sets + self.different_odds
            found.append(f"{count} decisions came out otherwise on replay: run superarm verify")
        if self.broken_snapshots:
            found.append(f"snapshots are damaged: after events {', '.join(map(str, self.broken_snapshots))}")
        if self.upkeep_error is not None:
            found.append(f"upkeep fails: {self.upkeep_error}")
        found += self.more
        return tuple(found)

    @property
    def ready(self) -> bool:
        """Whether requests that write should be sent here."""
        return self.down is None and self.commit_seconds <= HUNG_SECONDS
