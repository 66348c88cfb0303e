"""Metrics of this process's requests, connections and tokens; and the text of all metrics for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from superarm.service.http.service_metrics import Metric, buckets, counter, gauge
from superarm.service.http.tokens import Tokens

if TYPE_CHECKING:
    from superarm.service.http.guard import Guard
    from superarm.service.http.json_logging import NonBlockingHandler

LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds


class RequestMetrics(Collector):
    """Latencies and statuses of the requests of one process.

    Args:
        tokens: the service's.

    Attributes:
        guard: the connections, where the server is our own.
        logs: the log handler of `superarm serve`.
    """

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.guard: Guard | None = None
        self.logs: NonBlockingHandler | None = None
        self.requests: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}
        self._service_metrics: Sequence[Metric] = ()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)  # memory, processor time, files

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[route, status] += 1
        if route not in self.times:
            self.times[route], self.sums[route] = [0] * (len(LATENCIES) + 1), 0.0
        self.times[route][bisect_left(LATENCIES, seconds)] += 1
        self.sums[route] += seconds

    def quantiles(self) -> dict[str, float | None]:
        """The bucket edges below which half and 99 % of the decisions were answered."""
        counts = self.times.get("decisions", [])
        edges: dict[str, float | None] = {"p50": None, "p99": None}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            running = 0
            for edge, count in zip((*LATENCIES, inf), counts, strict=False):
                running += count
                if running and running >= share * sum(counts):
                    edges[name] = edge if edge < inf else None
                    break
        return edges

    def text(self, service_metrics: Sequence[Metric]) -> bytes:
        """All metrics, those of `service_metrics` included, in Prometheus' text format."""
        self._service_metrics = service_metrics
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._service_metrics
        requests = CounterMetricFamily(
            "superarm_requests", "Requests by route and status.", labels=["route", "status"]
        )
        for (route, status), count in self.requests.items():
            requests.add_metric([route, str(status)], count)
        yield requests
        times = HistogramMetricFamily(
            "superarm_request_seconds", "Time to answer a request.", labels=["route"]
        )
        for route, counts in self.times.items():
            times.add_metric([route], buckets(LATENCIES, counts), self.sums[route])
        yield times
        bugs = sum(count for (_, status), count in self.requests.items() if status == 500)
        yield counter("bugs", "Answers of status 500.", bugs)
        if self.tokens.file is not None:
            fine = self.tokens.trouble is None
            yield gauge("token_file_ok", "0: it is missing or wrong, and no token is accepted.", fine)
        if self.tokens:
            yield gauge("tokens", "Tokens that are accepted.", len(self.tokens))
        if self.logs is not None:
            yield counter(
                "log_lines_dropped", "Log lines that were not read in time.", self.logs.dropped_total
            )
        if self.guard is not None:
            yield from self._connections(self.guard)

    def _connections(self, guard: Guard) -> Iterator[Metric]:
        yield gauge("connections", "Open connections.", len(guard.connections))
        yield gauge("strangers", "Connections that have not been let in yet.", len(guard.strangers))
        yield counter("connections_refused", "Connections beyond the limits.", guard.turned_away)
        refused = CounterMetricFamily(
            "superarm_requests_refused", "Requests that were late, too large or no HTTP.", labels=["status"]
        )
        for status, count in guard.refused.items():
            refused.add_metric([str(status)], count)
        yield refused
