"""HTTP/1.1 on a socket: httptools parses, and nobody may be slow, large or many.

What a stranger can make us hold is bounded before anything is known about the request: the head
(its size, and the time it takes to come), the body (its size, its time; it is not even read before
`admit` has seen the head), idle connections, answers that nobody fetches, and the number of connections.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b32encode
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import count
from os import urandom
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import httptools

__all__ = ["Answer", "Application", "Limits", "Request", "Wire"]

log = logging.getLogger("superarm.service")

SWEEP_SECONDS = 0.5
JOIN_BELOW = 1 << 16  # bytes: one write where it costs no large copy
# after a refusal, for the caller to read it
LINGER_SECONDS = 2.0
LINGER_BYTES = 1 << 20
LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}
# no page may frame an answer, run it or guess its type, and nobody keeps it
SAFE = (
    b"x-content-type-options: nosniff\r\ncache-control: no-store\r\nx-frame-options: DENY\r\n"
    b"referrer-policy: no-referrer\r\ncross-origin-resource-policy: same-origin\r\n"
)
CLOSED = b"content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection, and all of them together, may take."""

    max_head: int = 1 << 14  # bytes of the request line and the headers
    max_body: int = 1 << 20  # bytes
    connections: int = 1_000
    head_seconds: float = 10.0  # from the first byte to the end of the head
    body_seconds: float = 30.0  # from there to the end of the body
    idle_seconds: float = 75.0  # between two requests
    fetch_seconds: float = 30.0  # in which an answer must move on


class Answer(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False  # end the connection after it


@dataclass(slots=True, eq=False)
class Request:
    method: str = "GET"
    path: str = "/"  # as it was sent: nothing is unquoted
    query: str = ""
    headers: dict[bytes, bytes] = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    address: str = ""
    id: str = ""
    began: float = 0.0
    keep_alive: bool = True
    refused: Answer | None = None
    target: Any = None  # whatever `admit` wants to find again in `answer`


class Application(Protocol):
    """What is behind the wire."""

    def admit(self, request: Request) -> Answer | None:
        """Look at the head; an answer here refuses it, and its body is not read."""

    def refuse(self, status: int, request: Request) -> Answer:
        """The words for a refusal that the wire makes."""

    def answer(self, request: Request, send: Callable[[Answer], None]) -> None:
        """Answer a whole request, now or later, by one call of ``send``. Must not raise."""


class Connection(asyncio.Protocol):
    """One caller."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.limits = wire, wire.limits
        self.parser = httptools.HttpRequestParser(self)
        self.transport: Any = None
        self.address = ""
        self.request = Request()
        self.url: list[bytes] = []
        self.parts: list[bytes] = []
        self.size = 0  # bytes of the head, then of the body
        self.fed = 0  # bytes that came while the head was not complete
        self.reading_head = True
        self.midway = False  # between the first byte of a request and its last
        self.fresh = False  # whether it has begun in the piece of data at hand
        self.waiting: deque[Request] = deque()  # pipelined: answered in their order
        self.busy = False
        self.deaf = False  # what else comes is thrown away
        self.thrown = 0
        self.closing = False
        self.deadline = monotonic() + self.limits.head_seconds
        self.unsent, self.fetch_by = 0, 0.0

    # ------------------------------------------------------------ the socket

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self.wire.connections.add(self)
        if len(self.wire.connections) > self.limits.connections:
            self.wire.turned_away += 1
            self.deaf = True
            refusal = self.wire.app.refuse(503, self.request)
            transport.write(head_of(refusal, self.wire.request_id({}), True) + refusal.body)
            transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        self.wire.connections.discard(self)
        self.deaf = self.closing = True

    def eof_received(self) -> bool:
        if self.deaf and self.transport.get_write_buffer_size() == 0:
            return False
        self.closing = True  # half closed: what was asked for is still answered
        return self.busy or bool(self.waiting) or self.transport.get_write_buffer_size() > 0

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            self.thrown += len(data)
            if self.thrown > LINGER_BYTES:
                self.transport.abort()
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError:  # a bug of ours
            log.exception("reading a request")
            self.turn_down(500)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError):
            self.turn_down(400)
        if self.midway and self.reading_head and not self.deaf:
            if self.fresh:  # this piece may have begun with the body of the request before
                self.fresh = False
            else:
                self.fed += len(data)
                if self.fed > self.limits.max_head:
                    self.turn_down(431)

    # ------------------------------------------------------------ the parser

    def on_message_begin(self) -> None:
        self.request = Request(address=self.address)
        self.url, self.parts, self.size, self.fed = [], [], 0, 0
        self.reading_head = self.midway = self.fresh = True
        self.deadline = monotonic() + self.limits.head_seconds

    def on_url(self, url: bytes) -> None:
        self.url.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.request.headers[name.lower()] = value
        self.size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        if self.deaf:
            return
        request, url = self.request, b"".join(self.url)
        if self.size + len(url) > self.limits.max_head:
            self.turn_down(431)
            return
        request.began = monotonic()
        request.method = self.parser.get_method().decode("ascii")
        path, _, query = url.decode("latin-1").partition("?")
        if not path.startswith("/"):  # http://host/path is fine, too
            path = "/" + path.partition("://")[2].partition("/")[2]
        request.path, request.query = path, query
        request.keep_alive = self.parser.should_keep_alive()
        request.id = self.wire.request_id(request.headers)
        self.size, self.reading_head = 0, False
        self.deadline = request.began + self.limits.body_seconds
        length = request.headers.get(b"content-length", b"0")
        has_body = length != b"0" or b"transfer-encoding" in request.headers
        refused = self.wire.app.admit(request)
        if refused is None and length.isdigit() and int(length) > self.limits.max_body:
            refused = self.wire.app.refuse(413, request)
        if refused is not None:
            if has_body or refused.close:  # the body shall not come
                self.queue(request, refused._replace(close=True))
                self.deaf = True
            else:
                request.refused = refused
        elif request.headers.get(b"expect", b"").lower() == b"100-continue" and not self.busy:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self.deaf:
            return
        self.size += len(body)
        if self.size > self.limits.max_body:
            self.turn_down(413)
        else:
            self.parts.append(body)

    def on_message_complete(self) -> None:
        if self.deaf:
            return
        self.request.body = b"".join(self.parts)
        self.queue(self.request, self.request.refused)

    # ------------------------------------------------------------ answering

    def queue(self, request: Request, refused: Answer | None) -> None:
        """Answer it when its turn comes; reading goes on after that."""
        request.refused = refused
        self.deadline = float("inf")
        self.reading_head, self.midway, self.fed = True, False, 0
        if self.busy:
            self.waiting.append(request)
            self.transport.pause_reading()
        else:
            self.begin(request)

    def begin(self, request: Request) -> None:
        self.busy = True
        if request.refused is not None:
            self.send(request, request.refused)
        else:
            self.wire.open_requests += 1
            self.wire.app.answer(request, partial(self.answered, request))

    def answered(self, request: Request, answer: Answer) -> None:
        self.wire.open_requests -= 1
        self.send(request, answer)

    def send(self, request: Request, answer: Answer) -> None:
        self.busy = False
        if self.transport.is_closing():
            return
        close = answer.close or self.wire.stopping or not request.keep_alive
        head, body = head_of(answer, request.id, close), answer.body if request.method != "HEAD" else b""
        if len(body) < JOIN_BELOW:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        if self.wire.on_answer is not None:
            self.wire.on_answer(request, answer)
        if close:
            self.hang_up(linger=request.refused is not None)
        elif self.waiting:
            self.busy = True
            self.wire.loop.call_soon(self.go_on)  # not at once: a long pipeline would nest as deep
        else:
            if not self.midway:
                self.deadline = monotonic() + self.limits.idle_seconds
            self.transport.resume_reading()
            if self.closing:
                self.hang_up(linger=False)

    def go_on(self) -> None:
        self.busy = False
        if self.waiting and not self.transport.is_closing():
            self.begin(self.waiting.popleft())

    def turn_down(self, status: int) -> None:
        """A refusal by the wire itself, after which nothing more is read."""
        self.deaf = True
        request = self.request
        request.id = request.id or self.wire.request_id({})
        self.queue(request, self.wire.app.refuse(status, request)._replace(close=True))

    def hang_up(self, *, linger: bool) -> None:
        """Close; ``linger`` if the caller may still be sending: or else it would not read what was said."""
        self.deaf = self.closing = True
        self.waiting.clear()
        self.deadline = monotonic() + LINGER_SECONDS
        if linger and self.transport.can_write_eof():
            self.transport.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    def sweep(self, now: float) -> None:
        """Called twice a second: whoever is late is told so, or let go."""
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if unsent != self.unsent:
                self.unsent, self.fetch_by = unsent, now + self.limits.fetch_seconds
            elif now > self.fetch_by:
                self.transport.abort()
            return
        self.unsent = 0
        if now <= self.deadline:
            return
        if self.deaf:
            self.transport.abort()
        elif self.midway:
            self.turn_down(408)
        else:
            self.transport.close()


def head_of(answer: Answer, id_: str, close: bool) -> bytes:
    """The head of an answer, as bytes."""
    parts = [
        LINES[answer.status],
        f"content-type: {answer.kind}\r\ncontent-length: {len(answer.body)}\r\n"
        f"x-request-id: {id_}\r\n".encode("latin-1"),
        SAFE,
    ]
    own = False
    for name, value in answer.headers:
        parts.append(f"{name}: {value}\r\n".encode("latin-1"))
        own = own or name == "content-security-policy"
    if not own:
        parts.append(CLOSED)
    parts.append(b"connection: close\r\n\r\n" if close else b"\r\n")
    return b"".join(parts)


class Wire:
    """All connections to one application.

    Args:
        app: who admits and answers requests.
        limits: what callers may take.
        on_answer: called with each request and its answer.
    """

    def __init__(
        self,
        app: Application,
        limits: Limits,
        on_answer: Callable[[Request, Answer], None] | None = None,
    ) -> None:
        self.app, self.limits, self.on_answer = app, limits, on_answer
        self.connections: set[Connection] = set()
        self.open_requests = 0  # that wait for their answer
        self.turned_away = 0
        self.stopping = False
        self.loop = asyncio.get_running_loop()
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._prefix = b32encode(urandom(5)).decode().lower()
        self._numbers = count(1)

    def request_id(self, headers: dict[bytes, bytes]) -> str:
        """The caller's own, if it is fit for a log line, or one of ours."""
        given = headers.get(b"x-request-id")
        if given is not None and len(given) <= 128 and given.isascii():
            text = given.decode()
            if text.isprintable() and text and " " not in text and '"' not in text:
                return text
        return f"{self._prefix}-{next(self._numbers)}"

    async def listen(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        unix_socket: str | None = None,
        tls: Any = None,
    ) -> None:
        """Begin to take connections."""
        options = {"ssl": tls, "ssl_handshake_timeout": self.limits.head_seconds} if tls else {}
        if unix_socket is not None:
            server = await self.loop.create_unix_server(lambda: Connection(self), unix_socket, **options)
        else:
            server = await self.loop.create_server(lambda: Connection(self), host, port, **options)
        self._servers.append(server)
        if self._sweeper is None:
            self._sweeper = self.loop.create_task(self._sweep())

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = monotonic()
            for connection in tuple(self.connections):
                try:
                    connection.sweep(now)
                except Exception:  # one caller's trouble
                    log.exception("sweep")

    async def stop(self, grace: float = 30.0) -> None:
        """Take no more connections, finish what has begun, and close."""
        self.stopping = True
        for server in self._servers:
            sockets = [one.getsockname() for one in server.sockets]
            server.close()
            for name in sockets:
                if isinstance(name, str):  # a socket in the file system
                    Path(name).unlink(missing_ok=True)
        await asyncio.sleep(0.01)  # what was accepted a moment ago becomes a connection first
        for connection in tuple(self.connections):
            if not connection.busy and connection.transport.get_write_buffer_size() == 0:
                connection.transport.close()
        until = monotonic() + grace
        while monotonic() < until and (
            self.open_requests or any(c.transport.get_write_buffer_size() for c in self.connections)
        ):
            await asyncio.sleep(0.01)
        for connection in tuple(self.connections):
            connection.transport.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        while self.connections:  # aborting takes the loop a turn
            await asyncio.sleep(0.001)


def parse_query(query: str) -> dict[str, str]:
    """The last value of each name."""
    found = {}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        found[unquote(name.replace("+", " "))] = unquote(value.replace("+", " "))
    return found
