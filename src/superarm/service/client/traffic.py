"""Simulated users of a running service: rows and labels from a data set, answers late, twice or never."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from superarm.data.rows import row_to_json
from superarm.errors import InvalidInput
from superarm.service.client.client import Client, ServiceError
from superarm.streams import Stream


@dataclass(frozen=True, slots=True)
class Habits:
    """How the users behave."""

    users: int = 8
    delay: float = 0.5  # mean seconds before an answer, exponential
    lose: float = 0.1  # the share of decisions that nobody answers
    repeat: float = 0.05  # the share of requests sent twice
    name_label: float = 0.0  # the share of answers that name the label
    rate: float | None = None  # decisions a second of all users together; None: as fast as they can
    seed: int = 0


@dataclass(slots=True)
class Tally:
    """Counts of requests so far."""

    decisions: int = 0
    outcomes: int = 0
    hits: int = 0
    repeats: int = 0
    lost: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


def traffic(
    url: str,
    stream: Stream,
    decisions: int,
    *,
    habits: Habits | None = None,
    token: str | None = None,
    tick: Callable[[int], object] | None = None,
) -> Tally:
    """Let users ask for ``decisions`` sets and answer them; returns when all answers have been given."""
    habits = habits or Habits()
    with Client(url, token=token) as client:
        info = client.info()
    if info["learner"].partition(":")[0] == "scores":
        raise InvalidInput.must(
            "url", "superarm traffic", "a service that takes features", "one that takes scores"
        )
    features = info["n_features"]
    asked = tuple(features) if isinstance(features, list) else features
    if asked not in (None, stream.n_features) or len(info["labels"]) != stream.n_labels:
        wanted = f"{asked or 'any'} features and {len(info['labels'])} labels, as the service has"
        got = f"{stream.n_features} and {stream.n_labels}"
        raise InvalidInput.must("data", "superarm traffic", wanted, got)
    names = info["labels"]
    if stream.labels is not None and {str(name) for name in stream.labels} == set(names):
        names = [str(name) for name in stream.labels]
    tally, lock, began = Tally(), Lock(), time.monotonic()
    source = _rows(stream, habits.seed)

    def user(number: int) -> None:
        dice = random.Random(f"{habits.seed}/{number}")
        later: list[tuple[float, str, dict[str, Any]]] = []  # answers to give, by time
        with Client(url, token=token) as client:
            while True:
                with lock:
                    if tally.decisions >= decisions:
                        break
                    nth, (x, y) = tally.decisions, next(source)
                    tally.decisions += 1
                if habits.rate is not None:
                    _answer_until(client, later, began + nth / habits.rate, dice, habits, tally, lock)
                shown = client.decide(
                    x, id=f"{info['learner_id']}.{habits.seed}.{nth}", context={"user": number}
                )
                if dice.random() < habits.repeat:
                    again = client.decide(x, id=shown.id, context={"user": number})
                    assert again == shown, "the same id must give the same set"
                    with lock:
                        tally.repeats += 1
                hit = names[y] in shown.labels
                with lock:
                    tally.hits += hit
                    tally.lost += (lost := dice.random() < habits.lose)
                if not lost:
                    outcome = {"label": names[y]} if dice.random() < habits.name_label else {"hit": hit}
                    due = time.monotonic() + (
                        dice.expovariate(1.0 / habits.delay) if habits.delay > 0 else 0.0
                    )
                    heapq.heappush(later, (due, shown.id, outcome))
                _answer_until(client, later, None, dice, habits, tally, lock)
                if tick is not None:
                    tick(1)
            while later:
                _answer_until(client, later, later[0][0], dice, habits, tally, lock)

    def guarded(number: int) -> None:
        try:
            user(number)
        except (ServiceError, AssertionError) as error:
            with lock:
                tally.errors.append(str(error))

    threads = [Thread(target=guarded, args=(number,), daemon=True) for number in range(habits.users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.seconds = time.monotonic() - began
    return tally


def _answer_until(
    client: Client,
    later: list[tuple[float, str, dict[str, Any]]],
    until: float | None,
    dice: random.Random,
    habits: Habits,
    tally: Tally,
    lock: Lock,
) -> None:
    """Give the answers that are due, up to a time; None: now, without waiting."""
    while True:
        now = time.monotonic()
        while later and later[0][0] <= now:
            _, id_, outcome = heapq.heappop(later)
            for _ in range(1 + (dice.random() < habits.repeat)):
                client.outcome(id_, **outcome)
            with lock:
                tally.outcomes += 1
        if until is None or now >= until:
            return
        time.sleep(max(0.0, min(until, later[0][0] if later else until) - now))


def _rows(stream: Stream, seed: int) -> Iterator[tuple[Any, int]]:
    for chunk in stream.chunks(seed):
        for i in chunk.visit:
            x = row_to_json(chunk.rows.row(i))
            if isinstance(x, dict):
                del x["width"]  # the service knows it
            yield x, int(chunk.y[i])
