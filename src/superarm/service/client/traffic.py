"""Simulated users of a running service: rows and labels from a data set, outcomes late, twice or never."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from threading import Lock, Thread
from typing import Any, NamedTuple

from superarm._progress import Progress, with_progress
from superarm._types import JsonObject
from superarm.data.rows import row_to_json
from superarm.errors import InvalidInput, Unquoted
from superarm.service.client.client import Client, ServiceError
from superarm.streams import Stream

Request = tuple[str, Any, str]  # id, features, and the right label


@dataclass(frozen=True, slots=True)
class UserBehaviour:
    """How the users behave."""

    users: int = 8
    mean_delay: float = 0.5  # seconds before an outcome, exponentially distributed
    lost_share: float = 0.1  # of decisions, which get no outcome
    repeated_share: float = 0.05  # of requests, which are sent twice
    seed: int = 0


@dataclass(slots=True)
class TrafficCounts:
    """Counts of requests."""

    decisions: int = 0
    outcomes: int = 0
    hits: int = 0
    repeats: int = 0
    lost: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


def simulate_users(
    url: str,
    stream: Stream,
    decisions: int,
    *,
    behaviour: UserBehaviour | None = None,
    token: str | None = None,
    progress: Progress = None,
) -> TrafficCounts:
    """Let users request ``decisions`` sets and report their outcomes; returns when all were reported."""
    behaviour, start, lock = behaviour or UserBehaviour(), time.monotonic(), Lock()
    with Client(url, token=token) as client:
        info = client.info()
    id_prefix = f"{info['learner_id']}.{behaviour.seed}"
    all_requests = _requests(stream, _labels(info, stream), id_prefix, behaviour.seed)
    requests = with_progress(islice(all_requests, decisions), progress, decisions, "decisions")

    def next_request() -> Request | None:
        with lock:
            return next(requests, None)

    users = [
        _User(i, Client(url, token=token), behaviour, next_request, Random(f"{behaviour.seed}/{i}"))
        for i in range(behaviour.users)
    ]
    threads = [Thread(target=user.run, daemon=True) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = TrafficCounts(seconds=time.monotonic() - start)
    for name in ("decisions", "outcomes", "hits", "repeats", "lost"):
        setattr(counts, name, sum(getattr(user.counts, name) for user in users))
    counts.errors = [error for user in users for error in user.counts.errors]
    return counts


class DueOutcome(NamedTuple):
    """An outcome, and when it is to be reported."""

    time: float
    id: str
    hit: bool


@dataclass(slots=True)
class _User:
    """A user: requests sets, one after another, and reports each outcome when it is due."""

    number: int
    client: Client
    behaviour: UserBehaviour
    next_request: Callable[[], Request | None]
    random: Random
    counts: TrafficCounts = field(default_factory=TrafficCounts)
    outcomes: list[DueOutcome] = field(default_factory=list)  # a heap

    def run(self) -> None:
        try:
            with self.client:
                while (request := self.next_request()) is not None:
                    self._decide(*request)
                    self._report_due()
                while self.outcomes:
                    time.sleep(max(0.0, self.outcomes[0].time - time.monotonic()))
                    self._report_due()
        except (ServiceError, AssertionError) as error:
            self.counts.errors.append(str(error))

    def _decide(self, id_: str, features: Any, label: str) -> None:
        context = {"user": self.number}
        shown = self.client.decide(features, id=id_, context=context)
        self.counts.decisions += 1
        if self._draw(self.behaviour.repeated_share):
            repeated = self.client.decide(features, id=id_, context=context)
            assert repeated == shown, "the same id must give the same set"
            self.counts.repeats += 1
        hit = label in shown.labels
        self.counts.hits += hit
        if self._draw(self.behaviour.lost_share):
            self.counts.lost += 1
        else:
            delay = self.behaviour.mean_delay * self.random.expovariate(1.0)
            heapq.heappush(self.outcomes, DueOutcome(time.monotonic() + delay, id_, hit))

    def _report_due(self) -> None:
        while self.outcomes and self.outcomes[0].time <= time.monotonic():
            due = heapq.heappop(self.outcomes)
            for _ in range(1 + self._draw(self.behaviour.repeated_share)):
                self.client.outcome(due.id, hit=due.hit)
            self.counts.outcomes += 1

    def _draw(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability


def _labels(info: JsonObject, stream: Stream) -> list[str]:
    """Return the service's labels in the order of the stream's labels, which must fit it."""
    if info["learner"].partition(":")[0] == "scores":
        raise InvalidInput.must(
            "url", "superarm traffic", "a service that takes features", Unquoted("one that takes scores")
        )
    labels, features = info["labels"], info["n_features"]
    n_features = tuple(features) if isinstance(features, list) else features
    if n_features not in (None, stream.n_features) or len(labels) != stream.n_labels:
        wanted = f"{n_features or 'any'} features and {len(labels)} labels, as the service has"
        got = Unquoted(f"{stream.n_features} and {stream.n_labels}")
        raise InvalidInput.must("data", "superarm traffic", wanted, got)
    names = labels if stream.labels is None else [str(name) for name in stream.labels]
    return names if set(names) == set(labels) else list(labels)


def _requests(stream: Stream, labels: list[str], id_prefix: str, seed: int) -> Iterator[Request]:
    rows = ((chunk.rows.row(i), int(chunk.y[i])) for chunk in stream.chunks(seed) for i in chunk.order)
    for number, (row, y) in enumerate(rows):
        yield f"{id_prefix}.{number}", row_to_json(row, width=False), labels[y]
