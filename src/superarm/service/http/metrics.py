"""Numbers for Prometheus. Counts of events come from the journal's totals, the rest from this process."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any

from superarm.service.core.snapshots import made_by
from superarm.service.core.stats import AGES

if TYPE_CHECKING:
    from superarm.service.core.group import Group
    from superarm.service.http.wire import Wire

__all__ = ["Metrics"]


def escaped(text: str) -> str:
    """For a tag's value."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", " ")


LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds


class Metrics:
    """Latencies and statuses of this process's requests."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}
        self.wire: Wire | None = None

    def saw(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        if route not in self.times:
            self.times[route], self.sums[route] = [0] * (len(LATENCIES) + 1), 0.0
        self.times[route][bisect_left(LATENCIES, seconds)] += 1
        self.sums[route] += seconds

    def quantiles(self) -> dict[str, float | None]:
        """The bucket edges below which half and 99 % of the decisions were answered."""
        counts = self.times.get("decisions", [])
        found: dict[str, float | None] = {"p50": None, "p99": None}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            running = 0
            for edge, count in zip((*LATENCIES, float("inf")), counts, strict=False):
                running += count
                if running and running >= share * sum(counts):
                    found[name] = edge if edge < float("inf") else None
                    break
        return found

    def text(self, group: Group) -> str:
        """All of it in Prometheus' text format."""
        session: Any = group.session
        stats = session.stats
        counted = stats.outcomes + stats.late
        lines: list[str] = []

        def one(name: str, kind: str, help_: str, value: float | None) -> None:
            head = [f"# HELP superarm_{name} {help_}", f"# TYPE superarm_{name} {kind}"]
            lines.extend([*head, f"superarm_{name} {'NaN' if value is None else repr(value)}"])

        def histogram(
            name: str, edges: tuple[float, ...], counts: list[int], total: float, tags: str = ""
        ) -> None:
            running, comma = 0, "," if tags else ""
            for edge, count in zip((*edges, "+Inf"), counts, strict=True):
                running += count
                lines.append(f'superarm_{name}_bucket{{{tags}{comma}le="{edge}"}} {running}')
            wrapped = f"{{{tags}}}" if tags else ""
            lines.append(f"superarm_{name}_sum{wrapped} {total!r}")
            lines.append(f"superarm_{name}_count{wrapped} {running}")

        one("decisions_total", "counter", "Sets shown.", stats.decisions)
        one("explored_total", "counter", "Sets that were not the top set.", stats.explored)
        one("outcomes_total", "counter", "Answers in time.", stats.outcomes)
        one("late_outcomes_total", "counter", "Answers after the timeout.", stats.late)
        one("timeouts_total", "counter", "Decisions closed by the timeout.", stats.timeouts)
        one("hits_total", "counter", "Answers that were hits.", stats.hits)
        one(
            "learnt_total", "counter", "Answers and default outcomes learnt: the model version.", stats.learnt
        )
        one("refused_updates_total", "counter", "Answers not learnt: weights would overflow.", stats.refused)
        one("hit_rate", "gauge", "Hits among all answers.", stats.hits / counted if counted else None)
        share = stats.explored / stats.decisions if stats.decisions else None
        one("exploration_share", "gauge", "Sets that were not the top set, among all.", share)
        one("propensity_floor", "gauge", "The least probability of a shown set.", stats.floor)
        one("pending", "gauge", "Decisions without an answer.", stats.pending)
        oldest = session.journal.open_places(limit=1)
        age = max(0.0, session.clock() - oldest[0].time) if oldest else 0.0
        one("oldest_pending_seconds", "gauge", "The age of the oldest of them.", age)
        one("journal_events", "gauge", "Events written since the journal was made.", session.seq)
        one("journal_bytes", "gauge", "The journal and its archives on disk.", session.journal.size())
        health = session.health()
        one("journal_up", "gauge", "Whether the journal can be written.", int(health.down is None))
        one("ready", "gauge", "Whether requests that write should be sent here.", int(health.ready))
        one("troubles", "gauge", "How many things are wrong; /ready says which.", len(health.trouble))
        one("snapshot_lag_events", "gauge", "Events since the newest snapshot.", health.snapshot_lag)
        one("queue_depth", "gauge", "Requests that wait for their commit.", group.waiting)
        one("restart_seconds", "gauge", "What the last start took.", health.restart_seconds)
        one("restart_replayed_events", "gauge", "Events replayed by it.", health.replayed)
        if hasattr(session, "processes"):  # of a journal that many share
            alive = [who for who in session.processes if who["silent"] < 5.0]
            own = [who["behind"] for who in alive if who["process"] == session.process]
            one("processes", "gauge", "Processes that serve on this journal.", len(alive))
            one("learns", "gauge", "Whether this process learns.", int(session.learning is not None))
            one("model_behind_seconds", "gauge", "Since when there is a newer model.", max(own, default=0.0))
            one("learner_silent_seconds", "gauge", "Since the learner was heard of.", session.learner_age)
        else:  # what a database sees to itself
            one(
                "upkeep_failures_total",
                "counter",
                "Failed expiry, snapshots, compaction.",
                health.upkeep_failures,
            )
            lines.append("# HELP superarm_replay_mismatches Decisions that came out otherwise at the start.")
            lines.append("# TYPE superarm_replay_mismatches gauge")
            for kind in ("sets", "odds", "bits"):
                count = getattr(health, f"different_{kind}")
                lines.append(f'superarm_replay_mismatches{{kind="{kind}"}} {count}')
            one("commit_age_seconds", "gauge", "The age of the commit in flight.", health.commit_seconds)
            one("wal_bytes", "gauge", "The write-ahead log.", health.wal_bytes)
            one(
                "missing_archives",
                "gauge",
                "Archives that the disk does not have.",
                len(health.missing_archives),
            )
            one(
                "broken_snapshots", "gauge", "Snapshots that could not be read.", len(health.broken_snapshots)
            )
        one("frozen", "gauge", "Whether learning is frozen.", int(session.frozen))
        built = ",".join(f'{name}="{escaped(value)}"' for name, value in made_by().items())
        lines.append("# HELP superarm_build_info What this process is made of.")
        lines.append("# TYPE superarm_build_info gauge")
        lines.append(f"superarm_build_info{{{built}}} 1")
        failed = sum(count for (_, status), count in self.requests.items() if status == 500)
        one("bugs_total", "counter", "Answers of status 500.", failed)
        lines.append("# HELP superarm_estimated_hit_rate Of top sets: the model's, and its shadows'.")
        lines.append("# TYPE superarm_estimated_hit_rate gauge")
        for report in session.shadows:
            for bound in ("rate", "low", "high"):
                value = getattr(report, bound)
                tags = f'learner="{escaped(report.spec)}",bound="{bound}"'
                lines.append(f"superarm_estimated_hit_rate{{{tags}}} {'NaN' if value != value else value}")
        one("commits_total", "counter", "Commits by this process.", group.commits)
        one("commit_seconds_total", "counter", "Time spent waiting for them.", group.commit_seconds)
        if self.wire is not None:
            one("connections", "gauge", "Open connections.", len(self.wire.connections))
            one(
                "connections_refused_total", "counter", "Connections beyond the limit.", self.wire.turned_away
            )
        lines.append("# HELP superarm_outcome_age_seconds Time between a decision and its answer.")
        lines.append("# TYPE superarm_outcome_age_seconds histogram")
        histogram("outcome_age_seconds", AGES, stats.ages, stats.age_sum)
        if self.times:
            lines.append("# HELP superarm_request_seconds Time to answer a request.")
            lines.append("# TYPE superarm_request_seconds histogram")
        for route, counts in self.times.items():
            histogram("request_seconds", LATENCIES, counts, self.sums[route], f'route="{route}"')
        if self.requests:
            lines.append("# HELP superarm_requests_total Requests by route and status.")
            lines.append("# TYPE superarm_requests_total counter")
        for (route, status), count in self.requests.items():
            lines.append(f'superarm_requests_total{{route="{route}",status="{status}"}} {count}')
        return "\n".join(lines) + "\n"
