"""A request and its response, and how they are read from and written to ASGI."""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import count
from os import urandom
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from superarm.errors import Unquoted
from superarm.http.http_errors import HttpError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Header = tuple[bytes, bytes]

CHUNK_BYTES = 1 << 18  # a longer body (a model) is sent in chunks, each when the one before has been read
# no page may frame a response, run it, embed it or guess its type, and no cache keeps it
SECURITY_HEADERS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
DENY_ALL_CSP = b"default-src 'none'; frame-ancestors 'none'"
REQUEST_ID = re.compile(rb"[!#-~]{1,128}")  # visible ASCII characters, without quotation marks
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")

_process, _counter = b32encode(urandom(5)).decode().lower(), count(1)  # of request ids


class Disconnected(Exception):
    """The client has gone away before the whole request was here."""


class Response(NamedTuple):
    """A response.

    Attributes:
        status, body, content_type, headers: what is sent, beside the headers that all responses have.
        csp: the content security policy.
        on_sent: called when it has been sent, or the client has gone away.
    """

    status: int
    body: bytes = b""
    content_type: bytes = b"application/json"
    headers: tuple[Header, ...] = ()
    csp: bytes = DENY_ALL_CSP
    on_sent: Callable[[], None] | None = None


class Request:
    """The head of a request.

    Attributes:
        method, path: the path is without that under which an application has mounted us.
        headers: names in lower case; the last of those with the same name.
        address: of the client; empty where it has none (a socket in the file system).
        id: the client's own ``X-Request-Id``, if it is fit for a log line, or one of ours.
        start: when it came, by the monotonic clock.
    """

    __slots__ = ("address", "headers", "id", "method", "path", "scope", "start")

    def __init__(self, scope: Scope) -> None:
        self.start = monotonic()
        self.scope = scope
        self.method: str = scope["method"]
        path, root = scope["path"], scope.get("root_path", "")
        self.path: str = path[len(root) :] if root and path.startswith(root) else path
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self.id = _request_id(self.headers.get(b"x-request-id"))

    @property
    def query(self) -> dict[str, str]:
        """The last value of each name."""
        return dict(parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    @property
    def trace(self) -> dict[str, str]:
        """The trace that it is a part of (W3C's ``traceparent``), for log lines."""
        match = TRACEPARENT.fullmatch(self.headers.get(b"traceparent", b""))
        return {} if match is None else {"trace_id": match[1].decode(), "parent_id": match[2].decode()}

    def check_host(self) -> None:
        """Require exactly one Host, as HTTP/1.1 does: of two, a proxy and this service might take different ones."""
        version = self.scope.get("http_version", "1.1")
        hosts = [name for name, _ in self.scope["headers"]].count(b"host")
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            raise HttpError.must("host", "request", "given once", Unquoted(f"{hosts} of them"), status=400)

    def check_json_body(self) -> None:
        """Refuse a body that is compressed, or is not declared to be JSON."""
        for name, plain in ((b"content-encoding", b"identity"), (b"transfer-encoding", b"chunked")):
            coding = self.headers.get(name, plain)
            if coding.lower() != plain:
                wanted = f"{plain.decode()}, or left out: bodies are not compressed"
                raise HttpError.must(name.decode(), "request", wanted, coding.decode("latin-1"), status=415)
        kind = self.headers.get(b"content-type", b"")
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise HttpError.must(
                "content-type", "request", "application/json", kind.decode("latin-1"), status=415
            )

    def check_no_body(self) -> None:
        """Refuse a body, where the method takes none."""
        if self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers:
            raise HttpError(f"a {self.method} request has no body", status=400, field="body")


def _request_id(header: bytes | None) -> str:
    if header is not None and REQUEST_ID.fullmatch(header):
        return header.decode()
    return f"{_process}-{next(_counter)}"


async def read_body(request: Request, receive: Receive, max_bytes: int) -> bytes:
    """Return the whole body, if it is not larger than ``max_bytes``."""
    length = request.headers.get(b"content-length", b"0")
    body, fits = bytearray(), len(length) <= 15 and length.isdigit() and int(length) <= max_bytes
    while fits:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body += message.get("body", b"")
        fits = len(body) <= max_bytes
        if fits and not message.get("more_body"):
            return bytes(body)
    raise HttpError.must("body", "request", f"at most {max_bytes:,} bytes", Unquoted("more"), status=413)


async def send_response(request: Request, response: Response, send: Send) -> None:
    """Send head and body; the server leaves out the body for a HEAD."""
    body = response.body
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request.id.encode()),
        (b"content-security-policy", response.csp),
        *SECURITY_HEADERS,
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    start = 0
    while len(body) - start > CHUNK_BYTES:
        await send(
            {"type": "http.response.body", "body": body[start : start + CHUNK_BYTES], "more_body": True}
        )
        start += CHUNK_BYTES
    await send({"type": "http.response.body", "body": body[start:]})
