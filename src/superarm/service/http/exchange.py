"""A request and its response, and how they are read from and written to ASGI."""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import count
from os import urandom
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from superarm.service.http.faults import HttpRefused

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Header = tuple[bytes, bytes]

# bytes: a longer body is handed on in pieces, each when the caller has fetched the one before
PIECE = 1 << 18
# no page may frame an answer, run it, embed it or guess its type, and no cache keeps it
SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
CLOSED: Header = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
TRACE = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")

_prefix, _numbers = b32encode(urandom(5)).decode().lower(), count(1)


class Disconnected(Exception):
    """The caller has gone away before the whole request was here."""


class Response(NamedTuple):
    """A response.

    ``own_policy``: its headers have a content security policy. ``done`` is called when it is out, or the
    caller has gone.
    """

    status: int
    body: bytes = b""
    kind: bytes = b"application/json"
    headers: tuple[Header, ...] = ()
    own_policy: bool = False
    done: Callable[[], None] | None = None


class Request:
    """The head of a request.

    Attributes:
        method, path: the path is without that under which an application has mounted us.
        headers: names in lower case; the last of those with the same name.
        address: of the caller; empty where it has none (a socket in the file system).
        id: the caller's own ``X-Request-Id``, if it is fit for a log line, or one of ours.
        began: when it came, by the steady clock.
        target: the route, and the id in the path; None if there is no such route.
    """

    __slots__ = ("address", "began", "headers", "id", "method", "path", "scope", "target")

    def __init__(self, scope: Scope) -> None:
        self.began = monotonic()
        self.scope = scope
        self.method: str = scope["method"]
        path, root = scope["path"], scope.get("root_path", "")
        self.path: str = path[len(root) :] if root and path.startswith(root) else path
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self.id = _id_of(self.headers.get(b"x-request-id"))
        self.target: Any = None

    @property
    def query(self) -> dict[str, str]:
        """The last value of each name."""
        text = self.scope.get("query_string", b"").decode("latin-1")
        parts = (part.partition("=") for part in text.split("&")) if text else ()
        return {unquote_plus(name): unquote_plus(value) for name, _, value in parts}

    @property
    def trace(self) -> dict[str, str]:
        """The trace that it is a part of (W3C's ``traceparent``), for log lines."""
        match = TRACE.fullmatch(self.headers.get(b"traceparent", b""))
        return {} if match is None else {"trace_id": match[1].decode(), "parent_id": match[2].decode()}

    def check_host(self) -> None:
        """HTTP/1.1 requires exactly one Host: with two, a proxy and this service might take different ones."""
        version = self.scope.get("http_version", "1.1")
        hosts = sum(name == b"host" for name, _ in self.scope["headers"]) if b"host" in self.headers else 0
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            raise HttpRefused.must("host", "request", "given once", f"{hosts} of them", status=400)

    def check_encoding(self) -> None:
        """Refuse compressed bodies."""
        coding = self.headers.get(b"content-encoding", b"identity").lower()
        if coding != b"identity" or self.headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            wanted = "left out: bodies are not compressed"
            raise HttpRefused.must(
                "content-encoding", "request", wanted, coding.decode("latin-1"), status=415
            )

    def check_no_body(self) -> None:
        """Refuse a body, where the method takes none."""
        if self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers:
            raise HttpRefused.must("body", f"{self.method} request", "left out", "one", status=400)


def _id_of(given: bytes | None) -> str:
    if given is not None and 0 < len(given) <= 128 and given.isascii():
        text = given.decode()
        if text.isprintable() and " " not in text and '"' not in text:
            return text
    return f"{_prefix}-{next(_numbers)}"


async def read_body(request: Request, receive: Receive, most: int) -> bytes:
    """The whole body, if it is not larger than ``most`` bytes."""
    length = request.headers.get(b"content-length")
    if length is not None and (len(length) > 15 or not length.isdigit() or int(length) > most):
        raise HttpRefused.must("body", "request", f"at most {most:,} bytes", "more", status=413)
    message = await receive()
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        body = message.get("body", b"")
        size += len(body)
        if size > most:
            raise HttpRefused.must("body", "request", f"at most {most:,} bytes", "more", status=413)
        if not message.get("more_body"):
            return b"".join([*parts, body]) if parts else body
        parts.append(body)
        message = await receive()


async def send_response(request: Request, response: Response, send: Send) -> None:
    """Head and body; the server leaves out the body for a HEAD."""
    body = response.body
    headers = [
        (b"content-type", response.kind),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request.id.encode()),
        *SAFE,
    ]
    if response.headers:
        headers += response.headers
    if not response.own_policy:
        headers.append(CLOSED)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if len(body) <= PIECE:
        await send({"type": "http.response.body", "body": body})
        return
    start = 0
    while len(body) - start > PIECE:  # each waits until the one before is out: a model has many megabytes
        piece = body[start : start + PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        start += PIECE
    await send({"type": "http.response.body", "body": body[start:] if start else body})
