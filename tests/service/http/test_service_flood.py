"""Requests that nest, repeat, truncate and flood: no 5xx but 503 and 507, and the journal stays whole."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import time

import pytest
from service_kit import D, Web

from superarm.journal.replay import replay

PATHS = (
    "/v1/decisions",
    "/v1/decisions/a/outcome",
    "/v1/batch/decisions",
    "/v1/batch/outcomes",
    "/v1/changes",
)


def value(dice: random.Random, depth: int = 0):
    """Any JSON, and some that nests."""
    kind = dice.randrange(9 if depth < 4 else 6)
    if kind == 6:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 7:
        return {f"k{i}": value(dice, depth + 1) for i in range(dice.randrange(4))}
    if kind == 8:
        deep = dice.choice([5, 60, 64, 65, 254, 255, 900])
        return (
            json.loads("[" * deep + "]" * deep)
            if dice.random() < 0.5
            else json.loads('{"a":' * deep + "1" + "}" * deep)
        )
    return dice.choice(
        [None, True, 1, -1, 2**63, 2**64, 10**40, 0.1, 1e308, "", "x" * 300, "\ud83d\ude00", "a"]
    )


def body(dice: random.Random, path: str) -> bytes:
    x = [round(dice.gauss(0, 1), 3) for _ in range(D)]
    ask = {"features": x, "id": dice.choice(["a", "b", f"n{dice.randrange(300)}"]), "context": value(dice)}
    if dice.random() < 0.3:
        ask[dice.choice(["features", "id", "eligible", "set_size", "context", "what"])] = value(dice)
    reply = {"hit": dice.random() < 0.5}
    if dice.random() < 0.3:
        reply[dice.choice(["hit", "label", "id"])] = value(dice)
    made = {
        "/v1/decisions": ask,
        "/v1/decisions/a/outcome": reply,
        "/v1/batch/decisions": {"decisions": [ask, value(dice), ask]},
        "/v1/batch/outcomes": {"outcomes": [{"id": "b", **reply}, value(dice)]},
        "/v1/changes": {
            "what": dice.choice(["freeze", "resume", "explode", "set_explore", "go_back"]),
            "to": value(dice),
        },
    }[path]
    data = json.dumps(made).encode()
    if dice.random() < 0.2:
        data = data[: dice.randrange(len(data))]  # truncated
    if dice.random() < 0.1:
        at = dice.randrange(len(data) + 1)
        data = data[:at] + dice.randbytes(3) + data[at:]
    return data


def request(dice: random.Random) -> bytes:
    path = dice.choice(PATHS)
    data = body(dice, path)
    said = len(data) if dice.random() < 0.9 else max(0, len(data) - dice.randrange(20))
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % said + data


def caller(port: int, seed: int, until: float, seen: list[int], faults: list[bytes]) -> None:
    dice = random.Random(seed)
    while time.monotonic() < until:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.settimeout(0.5)
            data = b"".join(request(dice) for _ in range(dice.randrange(1, 12)))  # pipelined, repeated
            if dice.random() < 0.2:
                data = data[: dice.randrange(len(data))]  # and hung up in the middle
            got = b""
            try:
                raw.sendall(data)
                if dice.random() < 0.2:
                    continue
                while part := raw.recv(1 << 16):
                    got += part
            except (TimeoutError, ConnectionError):
                pass
            for status in map(int, re.findall(rb"HTTP/1.1 (\d\d\d) ", got)):
                seen.append(status)
                if status >= 500 and status not in (503, 507):
                    faults.append(data)


def test_a_flood_of_nonsense(live, open_service):
    service = open_service(snapshot_every=200, keep_snapshots=2, max_journal_mb=40)
    web = live(service)
    seen: list[int] = []
    faults: list[bytes] = []
    until = time.monotonic() + 3
    callers = [
        threading.Thread(target=caller, args=(web.port, seed, until, seen, faults)) for seed in range(8)
    ]
    for one in callers:
        one.start()
    while time.monotonic() < until:
        assert web.get("/health")[0] == 200
        time.sleep(0.1)
    for one in callers:
        one.join()
    assert faults == []
    assert {200, 400, 422} <= set(seen)
    assert seen.count(200) > 20
    assert web.get("/ready")[0] == 200
    web.post("/v1/changes", {"what": "unfreeze"})
    assert web.post("/v1/decisions", {"features": [0.0] * D, "id": "after"})[0] == 200
    web.stop()
    again = open_service()
    assert again.store.events_by_id(["after"])["after"]
    assert replay(again.store).same


@pytest.mark.slow
def test_a_set_of_ten_thousand_labels_never_reaches_the_learner(live, open_service, monkeypatch):
    many = [f"label-{i}" for i in range(12_000)]
    service = open_service(labels=many)
    web, asked, decide = live(service), [], service.decide
    monkeypatch.setattr(service, "decide", lambda ask: asked.append(ask.set_size) or decide(ask))
    status, answer = web.post("/v1/decisions", {"features": [1.0] * D, "set_size": 10_000})
    assert (status, answer["error"]["field"]) == (422, "set_size")
    assert len(web.post("/v1/decisions", {"features": [1.0] * D, "set_size": 256})[1]["labels"]) == 256
    names = {f"n{i}": 1 for i in range(6000)}
    status, answer = web.post("/v1/decisions", {"features": names})
    assert (status, answer["error"]["field"]) == (422, "features")
    assert asked == [256]


def test_the_model_is_written_beside_the_loop(live, open_service):
    """A large model: while it is downloaded, others are answered."""
    many = [f"label-{i}" for i in range(2_000)]
    service = open_service(labels=many, n_features=2_000)
    web = live(service)
    web.post("/v1/decisions", {"features": [1.0] * 2_000})  # gives it its weights
    sizes: list[int] = []
    slow = threading.Thread(target=lambda: sizes.append(len(web.get("/v1/model")[1])))
    other, answered = Web(web.port), 0
    slow.start()
    while slow.is_alive():
        assert other.get("/health")[0] == 200
        answered += 1
    slow.join()
    assert sizes[0] > 1 << 20
    assert answered > 3, "the loop was away all the time"
