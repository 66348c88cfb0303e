"""Numbers for Prometheus: the service's, and this process's own: requests, connections, tokens, memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from superarm.service.http.tokens import Tokens

if TYPE_CHECKING:
    from superarm.service.http.guard import Guard
    from superarm.service.http.logs import NeverWaits

__all__ = ["Metrics"]

LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds


class Metrics(Collector):
    """Latencies and statuses of this process's requests; and all families, for Prometheus' client library."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.guard: Guard | None = None  # of our own server
        self.logs: NeverWaits | None = None
        self.requests: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}
        self._of_service: list[Any] = []
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)  # memory, processor time, files

    def saw(self, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
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

    def text(self, of_service: list[Any]) -> bytes:
        """All of it, in Prometheus' text format; ``of_service`` is what `Service.metrics` gives."""
        self._of_service = of_service
        return generate_latest(self._registry) + generate_latest(_Once(self.collect()))

    def collect(self) -> Iterator[Metric]:
        for one in self._of_service:
            yield _family(one)
        yield from self._requests()
        yield from self._callers()

    def _requests(self) -> Iterator[Metric]:
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
            times.add_metric([route], _buckets(LATENCIES, counts), self.sums[route])
        yield times
        bugs = sum(count for (_, status), count in self.requests.items() if status == 500)
        yield CounterMetricFamily("superarm_bugs", "Answers of status 500.", bugs)

    def _callers(self) -> Iterator[Metric]:
        if self.tokens.file is not None:
            fine = int(self.tokens.trouble is None)
            yield GaugeMetricFamily(
                "superarm_token_file_ok", "0: it is missing or wrong: nobody is let in.", fine
            )
        if self.tokens:
            yield GaugeMetricFamily("superarm_tokens", "Tokens that are taken.", len(self.tokens))
        if self.logs is not None:
            dropped = self.logs.dropped_total
            yield CounterMetricFamily("superarm_log_lines_dropped", "Lines that nobody read.", dropped)
        if self.guard is None:
            return
        yield GaugeMetricFamily("superarm_connections", "Open connections.", len(self.guard.connections))
        strangers = len(self.guard.strangers)
        yield GaugeMetricFamily("superarm_strangers", "Those that have not been let in yet.", strangers)
        away = self.guard.turned_away
        yield CounterMetricFamily("superarm_connections_refused", "Connections beyond the limits.", away)
        refused = CounterMetricFamily(
            "superarm_requests_refused", "Requests that were late, too large or no HTTP.", labels=["status"]
        )
        for status, count in self.guard.refused.items():
            refused.add_metric([str(status)], count)
        yield refused


class _Once:
    """Families that are there already, in place of a registry."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.collect = lambda: families


def _family(one: Any) -> Metric:
    """A metric of the service in the words of Prometheus' client library."""
    name, samples = f"superarm_{one.name.removesuffix('_total')}", one.samples
    tags = list(samples[0][0]) if samples else []
    family: Any
    if one.kind == "histogram":
        family = HistogramMetricFamily(name, one.help, labels=tags)
        for values, (edges, counts, total) in samples:
            family.add_metric(list(values.values()), _buckets(edges, counts), total)
        return family  # type: ignore[no-any-return]
    kind = CounterMetricFamily if one.kind == "counter" else GaugeMetricFamily
    family = kind(name if one.kind == "counter" else f"superarm_{one.name}", one.help, labels=tags)
    for values, value in samples:
        family.add_metric([str(text) for text in values.values()], float("nan") if value is None else value)
    return family  # type: ignore[no-any-return]


def _buckets(edges: Iterable[float], counts: Iterable[int]) -> list[tuple[str, float]]:
    """As Prometheus has them: each with all that is below its edge."""
    running, found = 0, []
    for edge, count in zip((*edges, "+Inf"), counts, strict=True):
        running += count
        found.append((str(edge), float(running)))
    return found
