"""A load on several processes that keeps the history of every request, and what must be true of one.

As Jepsen does it: each attempt is noted with when it was sent, to whom, when it was answered and what.
The clients try again elsewhere, under the same id, until they are answered. Afterwards the history is held
against the journal:

    no acknowledged write is lost        every answer of 200 is in the journal, with that content
    no decision changes                  whoever was told of one, by whichever process, was told the same
    what was acknowledged is seen        a look that was sent after an answer shows it, in any process
    no answer is learnt twice            each event is in the order once; as many are learnt as were answered
    no model version goes back           a decision knows all that was acknowledged before it was first sent,
                                         by whichever process
    one order, that can be lived again   the chain is whole, every snapshot, every decision and the model
                                         of every process are met
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any, NamedTuple

from service_kit import rows

__all__ = ["Attempt", "Load", "check"]

X = rows(50)
WAITS = 3.0  # seconds that a client waits for one attempt


class Attempt(NamedTuple):
    """One request."""

    client: int
    what: str  # decide, answer, look
    id: str
    port: int
    sent: float
    answered: float
    status: int | None  # None: nobody answered, and whether it happened is not known
    told: Any


class Load:
    """Clients that decide and answer on whichever process will have them, until `stop`."""

    def __init__(self, ports: list[int], *, clients: int = 6, seed: int = 0) -> None:
        self.ports = ports  # changed while it runs, by whoever starts and kills the processes
        self.attempts: list[Attempt] = []
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i, seed)) for i in range(clients)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> list[Attempt]:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        return self.attempts

    def _run(self, number: int, seed: int) -> None:
        dice = random.Random(1000 * seed + number)
        turn = 0
        while not self._ending.is_set():
            turn += 1
            id_ = f"{seed}.{number}.{turn}"
            body = {"features": X[turn % len(X)].tolist(), "id": id_}
            if self._until_told(number, "decide", id_, "/v1/decisions", body, dice) is None:
                continue
            if dice.random() < 0.1:  # a client that asks twice, of somebody else
                self._attempt(number, "decide", id_, "/v1/decisions", body, dice.choice(self.ports))
            if dice.random() < 0.85:
                answer = {"hit": dice.random() < 0.5}
                self._until_told(number, "answer", id_, f"/v1/decisions/{id_}/outcome", answer, dice)
            if dice.random() < 0.15:
                self._attempt(number, "look", id_, f"/v1/decisions/{id_}", None, dice.choice(self.ports))

    def _until_told(
        self, number: int, what: str, id_: str, path: str, body: Any, dice: random.Random
    ) -> Attempt | None:
        until = time.monotonic() + 30.0
        while time.monotonic() < until:
            found = self._attempt(number, what, id_, path, body, dice.choice(self.ports))
            if found.status == 200:
                return found
            assert found.status in (None, 503), found  # nothing else may ever come of it
            if self._ending.is_set():
                return None
            time.sleep(0.02)
        raise AssertionError(f"{what} {id_} was refused for 30 s")

    def _attempt(self, number: int, what: str, id_: str, path: str, body: Any, port: int) -> Attempt:
        sent = time.monotonic()
        status, told = None, None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAITS)
        try:
            if body is None:
                connection.request("GET", path)
            else:
                head = {"Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), head)
            answer = connection.getresponse()
            status, told = answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            connection.close()
        made = Attempt(number, what, id_, port, sent, time.monotonic(), status, told)
        self.attempts.append(made)
        return made


def check_model_versions(history: list[Attempt], found: dict[str, Any]) -> None:
    """Every decision was made with a model that knows all events acknowledged before it was first sent."""
    acknowledged = []  # when, and which event
    for one in history:
        if one.status == 200 and one.what in ("decide", "answer"):
            record = found[one.id]
            acknowledged.append(
                (one.answered, (record.decision if one.what == "decide" else record.outcome).seq)
            )
    acknowledged.sort()
    times = [time for time, _ in acknowledged]
    newest = list(accumulate((seq for _, seq in acknowledged), max, initial=0))
    first_sent: dict[str, float] = {}
    for one in history:
        if one.what == "decide":
            first_sent[one.id] = min(one.sent, first_sent.get(one.id, one.sent))
    for id_, sent in first_sent.items():
        if id_ in found:
            known, seq = found[id_].decision.body.model_seq, newest[bisect_left(times, sent)]
            assert known >= seq, f"decision {id_} has the model of event {known}, after event {seq}"


def check(history: list[Attempt], url: str, model: bytes | None = None) -> dict[str, Any]:
    """Hold a history, and the model that all processes have, against the journal; counts of what was looked at."""
    from superarm.journal.events import DECISION, OUTCOME
    from superarm.journal.postgres import PostgresStore
    from superarm.journal.records import DecisionRecord
    from superarm.journal.snapshots import model_bytes
    from superarm.journal.verify import verify_store

    acknowledged = [one for one in history if one.status == 200]
    ids = sorted({one.id for one in acknowledged})
    store = PostgresStore(url, read_only=True)
    try:
        found = {id_: DecisionRecord.from_events(events) for id_, events in store.events_by_id(ids).items()}
        order = list(store.events())
        report = verify_store(store)
    finally:
        store.close()
    for event in order:
        if event.kind == DECISION:
            assert 0 <= event.body.model_seq < event.seq, f"decision {event.id} knew its own future"
    told: dict[str, tuple[Any, ...]] = {}
    for one in acknowledged:
        assert one.id in found, f"{one.what} {one.id} was acknowledged and is lost"
        kept_ = found[one.id]
        if one.what in ("decide", "look"):
            shown = tuple(one.told["labels"]), one.told["propensity"], one.told["model_version"]
            assert told.setdefault(one.id, shown) == shown, f"decision {one.id} has changed"
            body = kept_.decision.body
            assert shown[0] == tuple(body.labels)
            assert shown[2] == body.n_learnt
        if one.what == "answer":
            assert kept_.outcome is not None, f"the answer to {one.id} was acknowledged and is lost"
            assert kept_.outcome.body.hit == one.told["outcome"]["hit"]
    check_model_versions(history, found)
    answered = {one.id: one for one in acknowledged if one.what == "answer"}
    for one in acknowledged:
        if one.what == "look" and one.id in answered and answered[one.id].answered < one.sent:
            assert one.told["outcome"] is not None, f"the answer to {one.id} was not seen after it was given"
    once = Counter((row.kind, row.id) for row in order if row.kind in (DECISION, OUTCOME))
    assert not once or max(once.values()) == 1
    assert report.problems == []
    assert report.replayed is not None
    assert report.replayed.same
    if model is not None:
        assert model == model_bytes(report.replayed.learner), (
            "the processes have another model than the replay"
        )
    return {
        "attempts": len(history),
        "acknowledged": len(acknowledged),
        "not known": sum(one.status is None for one in history),
        "refused": sum(one.status == 503 for one in history),
        "why": Counter(one.told["error"]["message"] for one in history if one.status == 503).most_common(3),
        "events": report.events,
        "snapshots met": len(report.replayed.snapshots_same),
    }
