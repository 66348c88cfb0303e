"""What strangers do to a server; each is bounded in bytes and in time, and only for 127.0.0.1."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /v1/decisions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
MOST = 300 << 20  # bytes of an attack
SECONDS = 6.0


def memory(pid: int) -> tuple[float, float]:
    """What a process has of it now, and the most it ever had since `forget_peak`, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(found["VmRSS"].split()[0]) / 1024, int(found["VmHWM"].split()[0]) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


class Caller:
    """A connection that sends as much as it can, and reads nothing unless it is told to."""

    def __init__(
        self, port: int, data: bytes = b"", host: str = "127.0.0.1", receive_buffer: int | None = None
    ) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(10)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.bind((host, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.sent, self.ended, self.received = 0, False, b""
        self.push(data)

    def push(self, data: bytes) -> bool:
        """As much as is taken at once; whether all was."""
        view = memoryview(data)
        while view and not self.ended:
            try:
                sent = self.socket.send(view[: 1 << 16])
                view, self.sent = view[sent:], self.sent + sent
            except BlockingIOError:
                return False
            except OSError:
                self.ended = True
        return not view

    def flood(self, piece: bytes, most: int = MOST, seconds: float = SECONDS) -> Caller:
        """The same again and again."""
        until = time.monotonic() + seconds
        while not self.ended and self.sent < most and time.monotonic() < until:
            if not self.push(piece):
                select.select([], [self.socket], [], 0.05)
        return self

    def is_over(self) -> bool:
        """Whether the server has hung up; what it has said is read."""
        try:
            while not self.ended:
                part = self.socket.recv(1 << 16)
                self.received += part[:300]
                self.ended = not part
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        return self.ended

    def close(self) -> None:
        self.socket.close()


def endless_trailers(port: int) -> list[Caller]:
    trailers = b"".join(b"x-%d: %b\r\n" % (i, b"y" * 100) for i in range(500))
    heads = (POST, b"GET /health HTTP/1.1\r\n" + HOST)
    return [
        Caller(port, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n").flood(trailers, seconds=4)
        for head in heads
    ]


def endless_heads(port: int) -> list[Caller]:
    begun = b"GET /health HTTP/1.1\r\n" + HOST
    return [
        Caller(port, begun + b"X-Big: ").flood(b"x" * (1 << 16), seconds=3),
        Caller(port, begun).flood(b"X-y: z\r\n" * 8000, seconds=3),
        Caller(port, begun).flood(b"a:\r\n" * 16000, seconds=3),
        Caller(port, b"GET /").flood(b"x" * (1 << 16), seconds=3),
        Caller(port, b"").flood(b"\r\n" * (1 << 15), seconds=3),
    ]


def endless_bodies(port: int) -> list[Caller]:
    chunked = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    return [
        Caller(port, chunked).flood(b"10000;" + b"e" * 1000 + b"\r\n" + b"x" * 65536 + b"\r\n", seconds=3),
        Caller(port, chunked + b"1;").flood(b"e" * 65536, seconds=3),
        Caller(port, chunked).flood(b"1\r\nx\r\n" * 10000, seconds=3),
        Caller(port, POST + b"Content-Length: 99999999999\r\n\r\n").flood(b"x" * 65536, seconds=3),
    ]


def dropped_bodies(port: int, count: int = 3000) -> list[Caller]:
    """A GET with a body of 1 MB, all of it but its end; most are closed, some stay."""
    held: list[Caller] = []
    body, until = b"x" * ((1 << 20) - 1), time.monotonic() + 20
    for _ in range(count):
        if time.monotonic() > until:
            break
        try:
            caller = Caller(port, b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: 1048576\r\n\r\n")
        except OSError:
            continue
        held.append(caller.flood(body, 1 << 20, 0.02))
        if len(held) > 200:
            held.pop(0).close()
    return held


def unread_pipelines(port: int) -> list[Caller]:
    """Forty ask for much, and read nothing."""
    held = [Caller(port) for _ in range(40)]
    ask = (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 200
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for caller in held:
            if caller.sent < 4 << 20:
                caller.push(ask)
        time.sleep(0.02)
    return held


def unread_answers(port: int) -> list[Caller]:
    """A hundred, each with as many requests as may wait, and none of the answers is read."""
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
    return [Caller(port, ask * 12) for _ in range(100)]


def unread_heads(port: int, count: int = 450) -> list[Caller]:
    """Heads as large as may be, pipelined behind responses that nobody reads; from four addresses."""
    held = []
    for i in range(count):
        held.append(Caller(port, host=f"127.0.0.{2 + i % 4}", receive_buffer=2048))
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST
    padding = b"".join(b"h%02d: %b\r\n" % (i, b"y" * 150) for i in range(95))
    for piece in [(ask + b"\r\n") * 6] * 4 + [(ask + padding + b"\r\n") * 14] * 2:
        for caller in held:
            caller.push(piece)
        time.sleep(0.5)
    time.sleep(1.0)
    return held


def half_heads(port: int) -> list[Caller]:
    return [Caller(port, b"GET /health HTTP/1.1\r\nHost: 127.") for _ in range(200)]


def many_headers_held(port: int) -> list[Caller]:
    """Heads of as many headers as may be, that do not end."""
    return [Caller(port, b"GET /health HTTP/1.1\r\n" + b"a:\r\n" * 99) for _ in range(200)]


def half_bodies(port: int) -> list[Caller]:
    half = POST + b"Content-Length: 1000000\r\n\r\n" + b"[" * 200_000
    return [Caller(port, half) for _ in range(100)]


def silent(port: int) -> list[Caller]:
    return [Caller(port) for _ in range(200)]


ATTACKS = (
    endless_trailers,
    endless_heads,
    endless_bodies,
    dropped_bodies,
    unread_pipelines,
    unread_answers,
    unread_heads,
    half_heads,
    many_headers_held,
    half_bodies,
    silent,
)
