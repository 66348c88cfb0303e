"""What people on call need to know of a service, and the numbers for those who watch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from superarm.journal.snapshots import made_by
from superarm.journal.stats import AGES, Stats

__all__ = ["Metric", "Status", "memory_bytes", "model_metrics", "one", "promise_metrics", "promise_sentences"]

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
        """What is wrong, worst first, one sentence each; empty if nothing is."""
        found = [] if self.down is None else [self.down]
        if self.turn_seconds > HUNG_SECONDS:
            found.append(f"a commit has been waiting for the disk for {self.turn_seconds:.0f} s")
        found += [sentence for sentence in (self.erasing, self.falling) if sentence is not None]
        if self.broken_snapshots:
            found.append(f"snapshots are damaged: after events {', '.join(map(str, self.broken_snapshots))}")
        if self.upkeep_error is not None:
            found.append(f"upkeep fails: {self.upkeep_error}")
        return (*found, *self.more)

    @property
    def ready(self) -> bool:
        """Whether requests that write should be sent here."""
        return self.down is None and self.turn_seconds <= HUNG_SECONDS


class Metric(NamedTuple):
    """A number for Prometheus; ``name`` without the prefix superarm_."""

    name: str
    kind: str  # counter, gauge; of a histogram the value is (edges, counts, sum)
    help: str
    samples: list[tuple[dict[str, str], Any]]


def one(name: str, kind: str, help_: str, value: Any) -> Metric:
    return Metric(name, kind, help_, [({}, value)])


def falling_sentence(stats: Stats) -> str | None:
    if not stats.falling:
        return None
    return f"the hit rate has fallen: {stats.recent:.3f} lately, {stats.usual:.3f} usually"


def promise_sentences(learner: Any) -> list[str]:
    """Why a promised coverage cannot be kept, if so."""
    promise = learner.coverage
    return [] if promise is None or promise.trouble is None else [promise.trouble]


def memory_bytes() -> int:
    """What the process holds in memory; 0 where nobody tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * 4096


def model_metrics(stats: Stats, frozen: bool, reports: list[dict[str, Any]]) -> list[Metric]:
    """What the totals of a projector say."""
    counted = stats.outcomes + stats.late
    rates = [
        ({"learner": report["spec"], "bound": bound}, report[bound])
        for report in reports
        for bound in ("rate", "low", "high")
    ]
    counters = {
        "decisions_total": ("Sets shown.", stats.decisions),
        "explored_total": ("Sets that were not the top set.", stats.explored),
        "outcomes_total": ("Outcomes in time.", stats.outcomes),
        "late_outcomes_total": ("Outcomes after the timeout.", stats.late),
        "timeouts_total": ("Decisions closed by the timeout.", stats.timeouts),
        "hits_total": ("Outcomes that were hits.", stats.hits),
        "answers_total": ("What people said of rows beside their outcomes.", stats.answers),
        "corrections_total": ("Outcomes and answers that were corrected.", stats.corrections),
        "learnt_total": ("Outcomes learnt: the model version.", stats.learnt),
        "refused_updates_total": ("Outcomes not learnt: weights would overflow.", stats.refused),
    }
    recent, usual = (stats.recent, stats.usual) if counted else (None, None)
    share = stats.explored / stats.decisions if stats.decisions else None
    gauges = {
        "hit_rate": ("Hits among all outcomes.", stats.hits / counted if counted else None),
        "hit_rate_recent": ("The same among about the last 300.", recent),
        "hit_rate_usual": ("The same among about the last 20,000.", usual),
        "hit_rate_falling": ("Whether recent is below usual beyond chance.", int(stats.falling)),
        "exploration_share": ("Sets that were not the top set, among all.", share),
        "propensity_floor": ("The least probability of a shown set.", stats.floor),
        "pending": ("Decisions without an outcome.", stats.pending),
        "frozen": ("Whether learning is frozen.", int(frozen)),
    }
    ages: list[tuple[dict[str, str], Any]] = [({}, (AGES, list(stats.ages), stats.age_sum))]
    return [
        *(one(name, "counter", *told) for name, told in counters.items()),
        *(one(name, "gauge", *told) for name, told in gauges.items()),
        Metric("build_info", "gauge", "What this process is made of.", [(made_by(), 1)]),
        Metric("estimated_hit_rate", "gauge", "Of top sets: the model's, and its shadows'.", rates),
        Metric("outcome_age_seconds", "histogram", "Time between a decision and its outcome.", ages),
    ]


def promise_metrics(learner: Any) -> list[Metric]:
    """Of a promised coverage, if there is one."""
    promise = learner.coverage
    if promise is None:
        return []
    counts = promise.answers > 0
    return [
        one("coverage_promised", "gauge", "How often the right label is to be shown.", promise.promised),
        one(
            "coverage_kept",
            "gauge",
            "How often it was, after the warm-up.",
            promise.kept if counts else None,
        ),
        one("coverage_answers", "gauge", "Answers that count for it.", promise.answers),
        one("set_size_mean", "gauge", "Labels shown for it.", promise.mean_size if counts else None),
        one("coverage_broken", "gauge", "Whether it cannot be kept.", int(promise.trouble is not None)),
    ]


def status_metrics(status: Status, size: int, oldest: float) -> list[Metric]:
    """Of any journal; what only one in a file has is its model's to tell (local.py)."""
    return [
        one("oldest_pending_seconds", "gauge", "The age of the oldest decision that waits.", oldest),
        one("journal_events", "gauge", "Events written since the journal was made.", status.events),
        one("journal_bytes", "gauge", "The journal on disk.", size),
        one("journal_up", "gauge", "Whether the journal can be written.", int(status.down is None)),
        one("ready", "gauge", "Whether requests that write should be sent here.", int(status.ready)),
        one("troubles", "gauge", "How many things are wrong; /ready says which.", len(status.trouble)),
        one("snapshot_lag_events", "gauge", "Events since the newest snapshot.", status.snapshot_lag),
        one("restart_seconds", "gauge", "What the last start took.", status.restart_seconds),
        one("restart_replayed_events", "gauge", "Events projected by it.", status.replayed),
        one("turn_age_seconds", "gauge", "The age of the turn under way.", status.turn_seconds),
        one(
            "erasure_unfinished",
            "gauge",
            "Whether erased content is still on the disk.",
            int(bool(status.erasing)),
        ),
        one("upkeep_failures_total", "counter", "Failed expiry, snapshots, erasing.", status.upkeep_failures),
        one("process_memory_bytes", "gauge", "What this process holds in memory.", memory_bytes()),
    ]
