"""Metrics for Prometheus: of this process's requests, and of the service's model, promise and journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import inf, isnan
from typing import TYPE_CHECKING

from superarm._extras import require_extra
from superarm._types import JsonObject
from superarm.http.access import Tokens
from superarm.journal.snapshots import made_by
from superarm.journal.totals import AGE_BUCKETS, Totals
from superarm.service.views import oldest_pending_seconds

require_extra("serve")
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest  # noqa: E402
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric  # noqa: E402
from prometheus_client.registry import Collector  # noqa: E402

if TYPE_CHECKING:
    from superarm.http.connection_limits import ConnectionTracker
    from superarm.http.json_logging import NonBlockingHandler
    from superarm.service.service import Service

LATENCY_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds


def gauge(name: str, help_: str, value: float | None) -> Metric:
    """Return a gauge; without a sample while there is no value yet."""
    return GaugeMetricFamily(f"superarm_{name}", help_, None if value is None or isnan(value) else value)


def counter(name: str, help_: str, value: float) -> Metric:
    """Return a counter; Prometheus adds _total to its name."""
    return CounterMetricFamily(f"superarm_{name}", help_, value)


# ---------------------------------------------------------------- requests


class MetricList(Collector):
    """Metrics in their order, as Prometheus' client takes them."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self.metrics


class RequestMetrics:
    """Latencies and statuses of the requests of one process.

    Args:
        tokens: the service's.
        routes: the names of all routes: their errors are counted from 0 on, or an alert would miss the first one.

    Attributes:
        tracker: the connections, where the server is our own.
        logs: the log handler of `superarm serve`.
    """

    def __init__(self, tokens: Tokens, routes: Iterable[str] = ()) -> None:
        self.tokens = tokens
        self.tracker: ConnectionTracker | None = None
        self.logs: NonBlockingHandler | None = None
        registry = self._registry = CollectorRegistry()  # of its own: a process may have several applications
        self._requests = Counter(
            "superarm_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "superarm_request_seconds",
            "Time to answer a request.",
            ["route"],
            registry=registry,
            buckets=LATENCY_BUCKETS,
        )
        ProcessCollector(registry=registry)  # memory, processor time, files
        for route in (*routes, "other"):
            self._requests.labels(route, 500)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def quantiles(self) -> dict[str, float | None]:
        """Return the bucket edges below which half and 99 % of the decisions were answered."""
        below = {
            float(sample.labels["le"]): sample.value
            for metric in self._seconds.collect()
            for sample in metric.samples
            if sample.name.endswith("_bucket") and sample.labels["route"] == "decisions"
        }
        count = below.get(inf, 0.0)

        def quantile(share: float) -> float | None:
            edges = (edge for edge, value in below.items() if value >= share * count and edge < inf)
            return next(edges, None) if count else None

        return {"p50": quantile(0.5), "p99": quantile(0.99)}

    def text(self, service_metrics: Iterable[Metric]) -> bytes:
        """Return all metrics, those of `service_metrics` included, in Prometheus' text format."""
        metrics = MetricList([*service_metrics, *self._server_metrics()])
        return generate_latest(metrics) + generate_latest(self._registry)

    def _server_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of tokens, log lines and connections."""
        if self.tokens.file is not None:
            text = "0: it is missing or wrong, and no token is accepted."
            yield gauge("token_file_ok", text, self.tokens.problem is None)
        if self.tokens.required:
            yield gauge("tokens", "Tokens that are accepted.", self.tokens.count)
        if self.logs is not None:
            text = "Log lines that were not read in time."
            yield counter("log_lines_dropped", text, self.logs.dropped_total)
        if self.tracker is not None:
            yield gauge("connections", "Open connections.", len(self.tracker.connections))
            text = "Connections without an admitted request."
            yield gauge("connections_unauthenticated", text, len(self.tracker.unauthenticated))
            yield counter("connections_refused", "Connections beyond the limits.", self.tracker.n_refused)
            text = "Requests that were late, too large or no HTTP."
            refused = CounterMetricFamily("superarm_requests_refused", text, labels=["status"])
            for status, count in self.tracker.refused_requests.items():
                refused.add_metric([str(status)], count)
            yield refused


# ---------------------------------------------------------------- the service


def service_metrics(service: Service) -> Iterator[Metric]:
    """Yield the metrics of a service that are there whether its journal can be read or not."""
    follower, projector, upkeep, queue = service.follower, service.projector, service.upkeep, service.queue
    yield from _model_metrics(projector.totals, projector.reports())
    promise = projector.learner.coverage
    if promise is not None:
        yield gauge("coverage_promised", "How often the right label is to be shown.", promise.promised)
        yield gauge("coverage_kept", "How often it was, after the warm-up.", promise.kept)
        yield gauge("coverage_answers", "Outcomes that count for it.", promise.answers)
        yield gauge("set_size_mean", "Labels shown for it.", promise.mean_size)
        yield gauge("coverage_broken", "Whether it cannot be kept.", promise.trouble is not None)
    yield gauge("journal_events", "Events written since the journal was made.", projector.seq)
    yield gauge("journal_up", "Whether the journal can be written.", service.outage is None)
    yield gauge("ready", "Whether requests that write should be sent here.", service.ready)
    yield gauge("restart_seconds", "The time that the last start took.", service.restart_seconds)
    yield gauge("restart_replayed_events", "Events projected by it.", follower.replayed)
    yield gauge("batch_age_seconds", "The age of the batch under way.", service.batch_age)
    unfinished = follower.erasure_problem is not None
    yield gauge("erasure_unfinished", "Whether erased content is still on the disk.", unfinished)
    yield counter("upkeep_failures", "Failed expiry, snapshots, erasing.", upkeep.failures)
    yield gauge("broken_snapshots", "Snapshots that could not be read.", len(follower.broken_snapshots))
    warned = "Decisions for rows whose columns differ from the declared ones."
    yield counter("column_warnings", warned, service.column_warnings.n_decisions)
    if queue is not None:
        yield gauge("queue_depth", "Requests that wait for the next batch.", queue.n_waiting)
        yield counter("batches", "Batches of requests, each with one commit at most.", queue.n_batches)
        yield counter("batch_seconds", "Time that the batches took.", queue.total_seconds)


def storage_metrics(service: Service) -> list[Metric]:
    """Return the metrics that are read from the journal; some only SQLite or only PostgreSQL has."""
    store, oldest = service.store, oldest_pending_seconds(service) or 0.0
    lag, processes = service.projector.seq - store.newest_snapshot(), store.processes()
    return [
        gauge("oldest_pending_seconds", "The age of the oldest pending decision.", oldest),
        gauge("journal_bytes", "The journal on disk.", store.size()),
        gauge("snapshot_lag_events", "Events since the newest snapshot.", lag),
        gauge("wal_bytes", "The write-ahead log.", store.log_bytes())
        if processes is None
        else gauge("processes", "Processes that serve on this journal.", len(processes)),
    ]


def _model_metrics(totals: Totals, reports: list[JsonObject]) -> Iterator[Metric]:
    stats = totals.stats
    yield counter("decisions", "Sets shown.", stats.decisions)
    yield counter("explored", "Sets that were not the top set.", stats.explored)
    yield counter("outcomes", "Outcomes in time.", stats.outcomes)
    yield counter("late_outcomes", "Outcomes after the timeout.", stats.late)
    yield counter("timeouts", "Decisions closed by the timeout.", stats.timeouts)
    yield counter("hits", "Outcomes that were hits.", stats.hits)
    yield counter("learnt", "Outcomes learnt: the model version.", stats.learnt)
    yield counter("refused_updates", "Outcomes that could not be learnt.", stats.refused)
    outcomes = stats.outcomes + stats.late
    yield gauge("hit_rate_recent", "Hits among about the last 300.", stats.recent_rate if outcomes else None)
    yield gauge(
        "hit_rate_long_run", "Hits among about the last 20,000.", stats.long_run_rate if outcomes else None
    )
    yield gauge("hit_rate_falling", "Whether recent is significantly below long_run.", stats.falling)
    yield gauge("propensity_floor", "The least probability of a shown set.", stats.min_propensity)
    yield gauge("pending", "Decisions without an outcome.", stats.pending)
    yield gauge("frozen", "Whether learning is frozen.", totals.settings.frozen)
    build = GaugeMetricFamily("superarm_build_info", "Version and processor.", labels=list(made_by()))
    build.add_metric(list(made_by().values()), 1)
    yield build
    rates = GaugeMetricFamily(
        "superarm_estimated_hit_rate",
        "Of the top sets of the model and its shadows.",
        labels=["learner", "bound"],
    )
    for report in reports:
        for bound in ("rate", "low", "high"):
            if report[bound] is not None:
                rates.add_metric([report["learner"], bound], report[bound])
    yield rates
    ages = HistogramMetricFamily("superarm_outcome_age_seconds", "From a decision to its outcome.", labels=[])
    edges = map(str, (*AGE_BUCKETS, "+Inf"))
    ages.add_metric([], list(zip(edges, accumulate(stats.ages), strict=True)), stats.age_sum)
    yield ages
