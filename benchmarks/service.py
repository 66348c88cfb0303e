"""How fast the service is, beside the same server answering a constant, and how fast it restarts.

    python benchmarks/service.py [--seconds 10] [--clients 32] [--features 64] [--events 1000000]
    python benchmarks/service.py --journal postgresql    also 1, 2 and 3 processes on a database (postgres.py)

The load generator runs on the same machine: 32 connections, each sends a decision, waits, sends its
outcome, waits. Everything is durable: each answer waits for its fsync.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CONSTANT = """
import asyncio, sys
import uvloop
from superarm.http.connection_limits import Limits
from superarm.http.listener import Listener
from superarm.http.server import Server
BODY = b'{"id":"19b1c3a2f4e00112233445566","labels":["a","b","c"],"propensity":0.5,"model_version":1}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
async def constant(scope, receive, send):
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
listener = Listener(port=int(sys.argv[1]))
with listener.bind() as bound:
    uvloop.run(Server(constant, listener, Limits()).serve([bound]))
"""


class Connection(asyncio.Protocol):
    """One client: a decision, its outcome, the next decision."""

    def __init__(self, requests: list[bytes], until: float, times: list[float]) -> None:
        self.requests, self.until, self.times = requests, until, times
        self.buffer, self.pairs, self.done = b"", 0, asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.decide()

    def decide(self) -> None:
        self.answering = False
        self.send(b"/v1/decisions", random.choice(self.requests))

    def send(self, path: bytes, body: bytes) -> None:
        self.began = time.perf_counter()
        head = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: %d\r\n\r\n"
        self.transport.write(head % (path, len(body)) + body)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, rest = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self.times.append(time.perf_counter() - self.began)
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"refused: {head!r} {rest!r}")
        self.buffer = b""
        if not self.answering:
            self.answering = True
            name = rest.partition(b'"id":"')[2].partition(b'"')[0]
            self.send(
                b"/v1/decisions/%b/outcome" % name,
                b'{"hit":true}' if random.random() < 0.5 else b'{"hit":false}',
            )
        else:
            self.pairs += 1
            if time.perf_counter() < self.until:
                self.decide()
            else:
                self.transport.close()
                self.done.set_result(None)


async def pairs_of(port: int, clients: int, features: int, seconds: float) -> tuple[int, list[float]]:
    """Let clients send for some seconds: how many pairs, and what each request took."""
    requests = [
        json.dumps({"features": [round(random.gauss(0, 1), 6) for _ in range(features)]}).encode()
        for _ in range(500)
    ]
    loop = asyncio.get_running_loop()
    began, times = time.perf_counter(), list[float]()
    connections = [
        await loop.create_connection(lambda: Connection(requests, began + seconds, times), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in connections))
    return sum(protocol.pairs for _, protocol in connections), times


def load(ports: list[int], clients: int, features: int, seconds: float) -> dict[str, float]:
    """Pairs a second and latencies, of clients that are spread over some servers."""

    async def main() -> dict[str, float]:
        began, share = time.perf_counter(), clients // len(ports)
        results = await asyncio.gather(*(pairs_of(port, share, features, seconds) for port in ports))
        took = time.perf_counter() - began
        times = sorted(one for _, times in results for one in times)
        return {
            "pairs_per_second": sum(pairs for pairs, _ in results) / took,
            "p50_ms": 1e3 * times[len(times) // 2],
            "p99_ms": 1e3 * times[int(len(times) * 0.99)],
        }

    import uvloop

    return uvloop.run(main())


def health(port: int, seconds: float) -> float:
    """The p99 of GET /health, in ms, on one connection that requests 50 times a second."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    times, until = [], time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        connection.request("GET", "/health")
        connection.getresponse().read()
        times.append(time.perf_counter() - began)
        time.sleep(0.02)
    connection.close()
    return 1e3 * sorted(times)[int(len(times) * 0.99)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(command: list[str], port: int) -> tuple[subprocess.Popen[bytes], float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=1).read()
            return process, time.perf_counter() - began
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"{command} ended with {process.returncode}") from None
            time.sleep(0.02)


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fsync_ms(folder: Path) -> float:
    """What one small durable write costs here."""
    path = folder / "probe"
    with path.open("wb") as file:
        began = time.perf_counter()
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
        return (time.perf_counter() - began) * 10


def fill(journal: Path, labels: list[str], features: int, events: int) -> None:
    """A journal with that many events, as a service would have written them."""
    import numpy as np
    from journal import decide_and_answer

    from superarm.service.service import Service

    service = Service.open(journal, labels=labels, n_features=features, set_size=3)
    rows = list(np.random.default_rng(0).normal(size=(1000, features)).astype(np.float32))
    while (seq := service.store.head().seq) < events:
        decide_and_answer(service, rows, seq, 250)
        lag = seq - service.follower.store.newest_snapshot()
        if lag > service.settings.snapshot_every and seq < events - 45_000:  # leave a long tail to replay
            service.follower.snapshot()
    service.store.close()  # no snapshot: as if it had been killed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--journal", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--events", type=int, default=0, help="also measure a restart with so many events")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as name:
        folder = Path(name)
        labels = [f"label-{i}" for i in range(10)]
        (folder / "labels.txt").write_text("\n".join(labels))
        (folder / "constant.py").write_text(CONSTANT)
        report: dict[str, object] = {"cores": os.cpu_count(), "fsync_ms": round(fsync_ms(folder), 2)}
        journal = folder / "events.db"
        options = ["--labels", str(folder / "labels.txt"), "--set-size", "3"]
        options += ["--features", str(arguments.features)]
        serve = [sys.executable, "-m", "superarm", "serve", "--rate-limit", "1000000"]
        for kind in ("constant", "service"):
            port = free_port()
            command = [*serve, *options, "--journal", str(journal), "--port", str(port)]
            if kind != "service":
                command = [sys.executable, str(folder / "constant.py"), str(port)]
            process, _ = start(command, port)
            try:
                load([port], arguments.clients, arguments.features, 1.0)
                idle = health(port, 2.0)
                before = cpu_seconds(process.pid)
                with ThreadPoolExecutor(1) as pool:
                    beside = pool.submit(health, port, arguments.seconds)
                    got = load([port], arguments.clients, arguments.features, arguments.seconds)
                used = (cpu_seconds(process.pid) - before) / (got["pairs_per_second"] * arguments.seconds)
                report[kind] = {k: round(v, 1) for k, v in got.items()} | {
                    "server_cpu_us_per_pair": round(1e6 * used),
                    "health_p99_ms": {"idle": round(idle, 2), "under_load": round(beside.result(), 2)},
                }
            finally:
                process.terminate()
                process.wait()
        speeds = {kind: report[kind]["pairs_per_second"] for kind in ("constant", "service")}  # type: ignore[index]
        report["ratio_to_constant"] = round(speeds["service"] / speeds["constant"], 3)
        if arguments.journal == "postgresql":
            from postgres import measure

            def serving(url: str, number: int) -> tuple[subprocess.Popen[bytes], int]:
                port = free_port()
                new = options if number == 0 else []
                return start([*serve, *new, "--journal", url, "--port", str(port)], port)[0], port

            spread = {
                "clients": arguments.clients,
                "features": arguments.features,
                "seconds": arguments.seconds,
            }
            report["postgresql"] = measure(serving, load, **spread)
        if arguments.events:
            journal = folder / "long.db"
            fill(journal, labels, arguments.features, arguments.events)
            port = free_port()
            process, seconds = start([*serve, "--journal", str(journal), "--port", str(port)], port)
            process.terminate()
            process.wait()
            report["restart"] = {"events": arguments.events, "seconds": round(seconds, 2)}
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
