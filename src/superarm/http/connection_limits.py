"""Limits of connections that uvicorn does not have: how much, how slowly and how often clients may send.

uvicorn reads and writes HTTP, with llhttp (Node's parser) under it. It has no limit for the size of a head or
of trailers, for how slowly these come, for pipelined requests, for responses that are not read, nor for what an
address may take. tests/service/http/test_attacks.py has the attacks; without this file they took 1.6 GB.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter, deque
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from time import monotonic
from typing import Any, Literal, NoReturn

import msgspec
from httptools import HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from superarm.http.http_errors import server_error_body
from superarm.http.request import DENY_ALL_CSP, SECURITY_HEADERS

log = logging.getLogger("superarm.service")

BURST_SECONDS = 1.0  # a client that starts may open many connections within this time
PARSER_CHUNK = 1 << 14  # bytes that the parser gets at a time: uvloop reads up to 256 KiB
MAX_HEADERS = 100
REQUEST_BYTES = 1 << 10  # of a request in memory, beside its head, which takes twice its bytes
# of a body that is refused: time for the client to read the refusal
LINGER_SECONDS = 2.0
LINGER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection, and of all of them together."""

    # bytes of the request line and the headers; of trailers as well; memory of requests that wait behind another one
    max_head: int = 1 << 14
    max_connections: int = 1_000
    # beyond max_connections, for new clients alone, which may have a token or ask for /health
    reserved_connections: int = 50
    max_unauthenticated_per_address: int = 250
    # from the first byte to the end of the head; the idle time of the unauthenticated
    head_seconds: float = 10.0
    body_seconds: float = 30.0  # from there to the end of the body
    idle_seconds: float = 75.0  # between two requests
    send_seconds: float = 30.0  # in which an answer must move on


class LimitExceeded(Exception):
    """Stops the parser; `LimitedProtocol.refusal_status` is the reason."""


class ConnectionTracker:
    """All connections of a server: counts them, and closes those that are too many or too late.

    A connection is unauthenticated until one of its requests has been admitted. When there are too many
    connections, a new one replaces the oldest unauthenticated one; it has one round trip to show a token.

    Attributes:
        connections: all that are open.
        unauthenticated: those without an admitted request, oldest first.
        n_refused: connections that were closed for want of room.
        refused_requests: the number of requests that the server itself has refused, by status.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections: set[LimitedProtocol] = set()
        self.unauthenticated: dict[LimitedProtocol, None] = {}
        self.n_refused = 0
        self.refused_requests: Counter[int] = Counter()
        self._by_address: Counter[str] = Counter()

    def add(self, new: LimitedProtocol) -> bool:
        """Return whether there is room for a connection, which is then tracked."""
        limits, address = self.limits, new.address
        if address and self._by_address[address] >= limits.max_unauthenticated_per_address:
            oldest = next(other for other in self.unauthenticated if other.address == address)
            if new.opened_at - oldest.opened_at >= BURST_SECONDS:
                self._close(oldest)
            elif self._by_address[address] >= 2 * limits.max_unauthenticated_per_address:
                self.n_refused += 1
                return False
        if len(self.connections) >= limits.max_connections:
            if len(self.unauthenticated) > limits.reserved_connections:
                self._close(next(iter(self.unauthenticated)))
            elif len(self.connections) >= limits.max_connections + limits.reserved_connections:
                self.n_refused += 1
                return False
        self.connections.add(new)
        self.unauthenticated[new] = None
        self._by_address[address] += 1
        return True

    def mark_authenticated(self, connection: LimitedProtocol) -> None:
        """Called when a request of a connection has been admitted."""
        if connection in self.unauthenticated:
            del self.unauthenticated[connection]
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def remove(self, connection: LimitedProtocol) -> None:
        self.mark_authenticated(connection)
        self.connections.discard(connection)

    def _close(self, connection: LimitedProtocol) -> None:
        self.n_refused += 1
        self.remove(connection)
        connection.transport.abort()

    def sweep(self) -> None:
        """Refuse late requests, and close late connections; the server calls it twice a second."""
        now = monotonic()
        for connection in tuple(self.connections):
            try:
                connection.sweep(now)
            except Exception:  # of one connection alone
                log.exception("sweep")


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, within limits. It overrides what asyncio and httptools call, and the refusals."""

    def __init__(self, tracker: ConnectionTracker, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self.tracker, self.limits = tracker, tracker.limits
        self.address = ""
        # bytes that came and are in no body: of a head or trailers that are not at an end
        self.head_bytes = 0
        self.dropped_bytes = 0  # bytes of a refused body
        # where the head that asks for another protocol ends, in what was read last
        self.upgrade_end: int | None = None
        # memory of the last requests, newest first: some of them may wait
        self.recent_sizes: deque[int] = deque(maxlen=1 + self.limits.max_head // REQUEST_BYTES)
        self.phase: Literal["idle", "head", "body"] = "idle"  # what of a request is being read
        self.refusal_status = 400  # of the response, where the parser fails or is stopped
        self.pending_refusal = b""  # a refusal that waits for the answers before it
        self.opened_at = monotonic()
        self.deadline = self.opened_at + self.limits.head_seconds
        self.unsent_bytes, self.send_deadline = 0, 0.0  # and until when some must be sent

    def mark_authenticated(self) -> None:
        """Called by the application when it has admitted a request."""
        self.tracker.mark_authenticated(self)

    # ------------------------------------------------------------ the socket

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.tracker.add(self):
            self.refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self.tracker.remove(self)
        self._unset_keepalive_if_required()  # uvicorn leaves it be after an error, and with it all of this
        super().connection_lost(exc)
        self.pipeline.clear()
        if self.cycle is not None:
            self.drop_body()
            self.cycle.scope.pop("extensions", None)  # a cycle: without this, memory is freed late

    def eof_received(self) -> bool:  # type: ignore[override]
        """Called when the client sends no more: whole requests are answered, then it is closed, else at once."""
        if self.phase == "idle" and not self.pending_refusal:  # (a refusal closes it)
            self.shutdown()
        is_answering = self.phase == "idle" or bool(self.pending_refusal)
        return is_answering and self.scheme == "http"  # TLS has no half of a connection

    def drop_body(self) -> None:
        """Drop the part of a body that the application has not read."""
        self.cycle.body = bytearray()

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PARSER_CHUNK):
            self.feed_parser(data[start : start + PARSER_CHUNK])

    def feed_parser(self, data: bytes) -> None:
        if self.pending_refusal or self.transport.is_closing():
            return
        self.head_bytes += len(data)
        super().data_received(data)
        while self.upgrade_end is not None:
            data, self.upgrade_end = self.head_without_upgrade() + data[self.upgrade_end :], None
            self.parser = HttpRequestParser(self)
            super().data_received(data)
        if self.phase != "idle" and self.head_bytes > self.limits.max_head:
            self.refuse(431)

    # ------------------------------------------------------------ requests for another protocol, such as h2c

    @property
    def asks_for_upgrade(self) -> bool:
        """Whether the request at hand may be answered in another protocol, and is not: RFC 9110, 7.8.

        httptools would pass over its body, so it is read again without that header.
        """
        return self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """Called by uvicorn after the head, while it handles the parser's HttpParserUpgrade."""
        if self.asks_for_upgrade:
            self.upgrade_end = getattr(sys.exception(), "args", [0])[0]

    def head_without_upgrade(self) -> bytes:
        """Return the head that was read last, without the header that asks for another protocol."""
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    # ------------------------------------------------------------ the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_bytes = self.dropped_bytes = 0
        self.phase = "head"
        self.deadline = monotonic() + self.limits.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value.rstrip(b" \t"))  # llhttp strips the left side only
        if len(self.headers) > MAX_HEADERS:  # trailers included
            self.stop_parser(431)

    def on_headers_complete(self) -> None:
        headers = self.headers
        if self.asks_for_upgrade:
            return
        n_bytes = len(self.url) + sum([len(name) + len(value) for name, value in headers])
        if n_bytes > self.limits.max_head:
            self.stop_parser(431)
        self.recent_sizes.appendleft(2 * n_bytes + REQUEST_BYTES)
        waiting = sum(islice(self.recent_sizes, 1 + len(self.pipeline)))
        if self.cycle is not None and not self.cycle.response_complete and waiting > self.limits.max_head:
            self.stop_parser(429)
        self.phase, self.head_bytes = "body", 0
        self.deadline = monotonic() + self.limits.body_seconds
        self.scope["headers"] = headers.copy()  # uvicorn would put trailers among them
        self.scope["extensions"] = {"superarm": self}  # type: ignore[dict-item]
        super().on_headers_complete()
        if self.parser.should_upgrade():  # CONNECT: llhttp reads no more of it here
            self.cycle.keep_alive = False

    def stop_parser(self, status: int) -> NoReturn:
        """Stop reading this request: `send_400_response` follows."""
        self.refusal_status = status
        raise LimitExceeded

    def on_body(self, body: bytes) -> None:
        self.head_bytes = max(0, self.head_bytes - 2 * len(body))  # chunks may have sizes before them
        if self.cycle.response_complete:
            self.dropped_bytes += len(body)
            if self.dropped_bytes > LINGER_BYTES:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.asks_for_upgrade:
            return
        self.phase, self.head_bytes = "idle", 0
        # no deadline while it is our turn
        self.deadline = self.idle_deadline() if self.cycle.response_complete else float("inf")
        super().on_message_complete()

    # ------------------------------------------------------------ answers

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():  # or the next one has begun
            self.drop_body()
            if self.pending_refusal:
                self.send_refusal(self.pending_refusal)
            elif self.phase == "idle":
                self.deadline = self.idle_deadline()
            elif self.phase == "body":  # refused before all of it was here
                self.deadline = monotonic() + LINGER_SECONDS

    def idle_deadline(self) -> float:
        """Return the time until which a client may send nothing."""
        is_unauthenticated = self in self.tracker.unauthenticated
        return monotonic() + (self.limits.head_seconds if is_unauthenticated else self.limits.idle_seconds)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn when the parser fails, while it handles the error."""
        error = sys.exception()
        reason = getattr(error, "__context__", None) or error  # httptools says only that a callback failed
        self.refuse(self.refusal_status, str(reason) if self.refusal_status == 400 else "")

    def refuse(self, status: int, reason: str = "") -> None:
        """Send a refusal, after which nothing more is read; earlier requests are answered first."""
        if self.transport.is_closing() or self.pending_refusal:
            return
        self.tracker.refused_requests[status] += 1
        if self.headers:
            self.headers.clear()  # what waits for earlier answers to be read takes no memory
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self.phase == "body":  # of the request of this cycle
            is_answering = bool(self.pipeline) and self.pipeline[0][0] is self.cycle
            if is_answering:
                self.pipeline.popleft()  # the refused request itself, which had to wait
        if is_answering:
            self.pending_refusal, self.deadline = _refusal_response(status, reason), float("inf")
            self.flow.pause_reading()
        else:
            self.send_refusal(_refusal_response(status, reason))

    def send_refusal(self, response: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(response)
        self.transport.close()

    def sweep(self, now: float) -> None:
        """Refuse a request that is late, or close the connection."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes:
            if unsent_bytes != self.unsent_bytes:
                self.unsent_bytes, self.send_deadline = unsent_bytes, now + self.limits.send_seconds
            elif now > self.send_deadline:
                self.transport.abort()
            return
        self.unsent_bytes = 0
        if now <= self.deadline:
            return
        was_refused = self.phase == "body" and self.cycle is not None and self.cycle.response_complete
        if self.phase == "idle" or was_refused:
            self.transport.close()
        else:
            self.refuse(408)


def _refusal_response(status: int, reason: str) -> bytes:
    body = msgspec.json.encode(server_error_body(status, reason))
    lines = [
        b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()),
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"content-security-policy: " + DENY_ALL_CSP,
        *(b"%b: %b" % header for header in SECURITY_HEADERS),
        *([b"retry-after: 1"] if status == 503 else []),
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])
