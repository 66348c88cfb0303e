"""Strangers without a token: what they can make the service hold, and whom they can keep out."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attacks
import pytest
from ports import free_port
from service_kit import Web, X, soon

from superarm.service import Client

TOKEN = "a-very-secret-token"
MOST_MB = 50.0  # above idle


class Process:
    """A service in a process of its own."""

    def __init__(self, folder: Path, *, wait: bool = True, **environment: Any) -> None:
        port = free_port()
        script = Path(__file__).with_name("attacked_server.py")
        self.output = environment.pop("stderr", subprocess.DEVNULL)
        limits = environment.pop("limits", {})
        given = {name: str(value) for name, value in environment.items()} | {"LIMITS": json.dumps(limits)}
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(port), str(folder / "events.db")],
            env=os.environ | given,
            stderr=self.output,
        )
        self.pid = self.process.pid
        self.web = Web(port, environment.get("TOKEN"))
        if wait:
            self.web.wait(60)

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(40)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    quick = {"head_seconds": 3.0, "body_seconds": 3.0, "idle_seconds": 5.0, "send_seconds": 3.0}
    made = Process(tmp_path_factory.mktemp("attacked"), TOKEN=TOKEN, limits=quick)
    with Client(made.web.url, token=TOKEN) as client:  # idle is after some work
        for _ in range(50):
            client.outcome(client.decide(X).id, hit=True)
        made.web.get("/openapi.json")
    yield made
    assert made.end() == 0


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def begin(*given: Any, **named: Any) -> Process:
        made.append(Process(*given, **named))
        return made[-1]

    yield begin
    for one in made:  # a test that has failed leaves nothing running
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(20)


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.slow
def test_strangers_cannot_take_the_memory(served, attack):
    attacks.forget_peak(served.pid)
    idle, _ = attacks.memory(served.pid)
    callers = attack(served.web.port)
    try:
        with Client(served.web.url, token=TOKEN, retries=0) as client:  # under way as well
            began = time.monotonic()
            client.outcome(client.decide(X).id, hit=True)
            took = time.monotonic() - began
        _, peak = attacks.memory(served.pid)
        sent = sum(caller.sent for caller in callers)
        print(
            f"\n{attack.__name__}: {sent >> 20} MB sent, {peak - idle:+.1f} MB held, a pair in {took:.2f} s"
        )
        assert peak - idle < MOST_MB
        # nobody is kept for long: neither those who send nor those who do not read
        soon(
            lambda: served.web.get("/metrics")[1].count(b"\nsuperarm_connections_unauthenticated 0.0\n") == 1,
            seconds=40,
        )
        now, _ = attacks.memory(served.pid)
        assert now - idle < MOST_MB
    finally:
        for caller in callers:
            caller.close()


def test_a_thousand_connections_keep_nobody_out(start, tmp_path):
    """Ten seconds are all that a stranger has; and whoever comes takes the place of one."""
    served = start(tmp_path, TOKEN=TOKEN)
    port = served.web.port
    with Client(served.web.url, token=TOKEN, retries=0) as known:
        known.info()
        callers = []
        for i in range(1_500):
            callers.append(socket.socket())
            callers[-1].bind((f"127.0.{i // 200}.{i % 200 + 1}", 0))  # from many addresses
            callers[-1].connect(("127.0.0.1", port))
        worst = 0.0
        for _ in range(20):
            began = time.monotonic()
            known.info()
            with Client(served.web.url, token=TOKEN, retries=0) as new:
                new.decide(X)
            assert served.web.get("/health")[0] == 200
            worst = max(worst, time.monotonic() - began)
        print(f"\nwith 1,500 strangers about: the slowest of 20 took {worst:.2f} s")
    for caller in callers:
        caller.close()
    assert served.end() == 0


def test_framing_errors_say_what_is_wrong_and_are_no_bugs(served):
    def said(data: bytes) -> tuple[int, dict[str, Any]]:
        with socket.create_connection(("127.0.0.1", served.web.port), timeout=20) as raw:
            raw.sendall(data)
            answer = b""
            while part := raw.recv(1 << 16):
                answer += part
        return int(answer.split()[1]), json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]

    host = b"Host: localhost\r\n"
    post = b"POST /v1/decisions HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    token = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
    for broken in (
        post + host + token + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        post + host + token + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        post + host + token + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + host + token + b"Content-Length: -1\r\n\r\n",
        post + host + token + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\nHost : localhost\n\n",
        b"GET /\x00 HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /health HTTP/9.9\r\n" + host + b"\r\n",
    ):
        status, error = said(broken)
        assert (status, error["field"]) == (400, "request"), broken[:200]
        assert error["message"].startswith("request must be valid HTTP/1.1: "), error
    _, error = said(post + host + token + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345")
    assert error["message"] == "request must be valid HTTP/1.1: Duplicate Content-Length"
    _, error = said(b"CONNECT elsewhere:80 HTTP/1.1\r\nHost: elsewhere:80\r\n\r\n")
    assert error["message"] == "request must be valid HTTP/1.1: invalid url b'elsewhere:80'"
    status, error = said(post + host + token + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
    assert (status, error["field"]) == (415, "transfer-encoding")
    assert "got 'gzip, chunked'" in error["message"]
    look = b"GET /health HTTP/1.1\r\nConnection: close\r\n"
    for hosts in (b"", host + host, host + b"Host: evil.example\r\n"):
        status, error = said(look + hosts + b"\r\n")
        assert (status, error["field"]) == (400, "host")
    status, error = said(look + host + b"Content-Length: 5\r\n\r\n12345")
    assert (status, error["field"]) == (400, "body")
    status, error = said(post + host + token + b"Content-Length: 5 \t\r\n\r\nhello")
    assert (status, error["field"]) == (400, "body")


def test_ids_that_are_no_ids(served):
    web = served.web
    for id_ in ("{id}", "%7Bid%7D", ".", "..", "%2E%2E", "a%2Fb", "a%00b", "%ff", "x" * 129, ""):
        for path in (f"/v1/decisions/{id_}", f"/v1/decisions/{id_}/outcome"):
            status, answer = web(
                "POST" if path.endswith("outcome") else "GET",
                path,
                {"hit": True} if path.endswith("outcome") else None,
            )
            assert status in (404, 405, 422), (path, answer)
    for id_ in (".", ".."):
        status, answer = web.post("/v1/decisions", {"features": X, "id": id_})
        assert (status, answer["error"]["field"]) == (422, "id")
    counts = re.findall(rb'superarm_requests_total{.*status="500"} (.*)', web.get("/metrics")[1])
    assert counts
    assert set(counts) == {b"0.0"}


@pytest.mark.slow
def test_twelve_models_at_once(start, tmp_path):
    """10,000 labels: one model has 40 MB here; never more than two are made and sent at the same time."""
    served = start(tmp_path, TOKEN=TOKEN, LABELS=10_000, FEATURES=500)
    web = served.web
    web.timeout = 120.0
    web.post("/v1/decisions", {"features": [0.5] * 500, "id": "a"})
    web.post("/v1/decisions/a/outcome", {"hit": True})
    size = len(web.get("/v1/model")[1])
    idle, _ = attacks.memory(served.pid)
    attacks.forget_peak(served.pid)
    with ThreadPoolExecutor(12) as pool:
        clients = [Web(web.port, TOKEN) for _ in range(12)]
        for client in clients:
            client.timeout = 120.0  # two at a time, on a machine that may be busy
        got = list(pool.map(lambda client: len(client.get("/v1/model")[1]), clients))
    assert got == [size] * 12
    _, peak = attacks.memory(served.pid)
    print(f"\na model of {size >> 20} MB, twelve times at once: {peak - idle:+.0f} MB")
    assert peak - idle < 6 * size / 2**20 + MOST_MB
    assert served.end() == 0


# ---------------------------------------------------------------- logs, signals


def test_a_log_that_nobody_reads_keeps_nobody_waiting(start, tmp_path):
    """A pipe holds 64 KiB; then writing to it waits, but nobody else does."""
    reading, writing = os.pipe()
    served = start(tmp_path, TOKEN=TOKEN, LOG_REQUESTS=1, stderr=writing)
    os.close(writing)
    with Client(served.web.url, token=TOKEN, timeout=5) as client:
        for _ in range(500):
            client.info()
        shown = client.decide(X)
        assert client.outcome(shown.id, hit=True).learnt
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(20) == 0
    os.close(reading)


def test_lines_are_dropped_counted_and_told(monkeypatch):
    import logging

    from superarm.http import json_logging

    monkeypatch.setattr(json_logging, "MAX_LINES", 10)
    monkeypatch.setattr(json_logging, "FLUSH_TIMEOUT", 0.05)
    reading, writing = os.pipe()
    handler = json_logging.NonBlockingHandler(writing)
    for _ in range(2_000):
        handler.handle(logging.makeLogRecord({"msg": "x" * 1000, "levelname": "INFO"}))
        time.sleep(0)
    assert handler.dropped_total > 1_000
    handler.flush()  # does not wait for ever
    found = b""
    while b"lines_dropped_before" not in found:
        found += os.read(reading, 1 << 16)
        handler.handle(logging.makeLogRecord({"msg": "again", "levelname": "INFO"}))
    assert all(json.loads(line)["message"] for line in found.splitlines()[:20])
    dropped = handler.dropped_total
    handler.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))  # never onto standard error
    assert handler.dropped_total == dropped + 1
    os.close(reading)
    for _ in range(5):  # nobody will ever read it
        handler.handle(logging.makeLogRecord({"msg": "into the void", "levelname": "INFO"}))
        time.sleep(0.01)
    os.close(writing)


def test_signals_that_end_nothing(start, tmp_path):
    log = (tmp_path / "log").open("w+")
    served = start(tmp_path, TOKEN=TOKEN, stderr=log)

    def heard(word: str) -> bool:
        return word in (tmp_path / "log").read_text()

    with Client(served.web.url, token=TOKEN) as client:
        client.outcome(client.decide(X).id, hit=True)
        served.process.send_signal(signal.SIGUSR1)
        soon(lambda: [one["seq"] for one in client.snapshots()][-1] == 2)
        soon(lambda: heard("SIGUSR1"))
        served.process.send_signal(signal.SIGHUP)
        soon(lambda: heard("SIGHUP"))
        assert client.info()["model_version"] == 1
    assert served.end() == 0
    log.close()


def test_signals_before_the_server_is_ready_end_nothing(tmp_path):
    code = """
import os, signal, sys
from superarm.http.access import Tokens
from superarm.http.connection_limits import Limits
from superarm.http.listener import Listener
from superarm.service.serve import serve

def open_service():
    for name in (signal.SIGHUP, signal.SIGUSR1):
        os.kill(os.getpid(), name)
    sys.exit(7)

serve(open_service, Tokens(), listener=Listener(port=0), limits=Limits())
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 7
