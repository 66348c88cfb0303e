"""The gate before the application: who may come in, how much, how often; and a short way for the hot routes.

FastAPI costs several times what the decision does, so the two hot routes are answered here, by the
same functions that the application calls.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from time import monotonic, perf_counter
from typing import Any

from superarm.errors import must
from superarm.service.core.faults import Refused
from superarm.service.http.metrics import Metrics
from superarm.service.http.refusals import HttpRefused, status_of
from superarm.service.http.routes import Answer, Routes, refusal

__all__ = ["Gate"]

OPEN_PATHS = frozenset({"/", "/health", "/ready", "/openapi.json", "/docs", "/favicon.ico"})
HOT, TAIL = "/v1/decisions", "/outcome"
BODY_SECONDS = 30.0
LOCAL = re.compile(rb"(127(\.\d{1,3}){3}|localhost|\[::1\]|)(:\d{1,5})?", re.IGNORECASE)
MOST_ADDRESSES = 10_000
SAFE_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Gate:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: Any,
        metrics: Metrics,
        *,
        token: str | None = None,
        max_body: int = 1 << 20,
        rate: float = 10_000.0,
    ) -> None:
        self.app, self.metrics, self.max_body, self.rate = app, metrics, max_body, rate
        self.routes: Routes | None = None  # when the session is open
        self._token = None if token is None else f"Bearer {token}".encode()
        self._buckets: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = perf_counter()
        path = scope["path"]
        try:
            self._admit(scope, path)
            body = await self._body(scope, receive) if scope["method"] in ("POST", "PUT", "PATCH") else b""
        except Refused as error:
            await self._send(send, refusal(error))
            self.metrics.saw("refused", status_of(error), perf_counter() - began)
            return
        if scope["method"] == "POST" and path.startswith(HOT) and self.routes is not None:
            rest = path[len(HOT) :]
            if not rest:
                answer = await self.routes.decide(body)
                await self._send(send, answer)
                self.metrics.saw("decisions", answer.status, perf_counter() - began)
                return
            if rest.endswith(TAIL) and rest.count("/") == 2:
                answer = await self.routes.outcome(rest[1 : -len(TAIL)], body)
                await self._send(send, answer)
                self.metrics.saw("outcomes", answer.status, perf_counter() - began)
                return
        await self._pass(scope, body, receive, send, began)

    # ------------------------------------------------------------ who may come in

    def _admit(self, scope: Any, path: str) -> None:
        if self._token is None:
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            if not LOCAL.fullmatch(host):
                # a page in a browser here may reach us under a name of its own (DNS rebinding)
                wanted = "127.0.0.1, localhost or [::1]: a service for other names needs a token"
                raise HttpRefused.must("host", "request", wanted, host.decode("latin-1"), status=403)
        elif path not in OPEN_PATHS:
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, self._token):
                raise HttpRefused(
                    "authorization of request must be 'Bearer' and the service's token",
                    status=401,
                    field="authorization",
                )
        client = scope.get("client")
        address = client[0] if client else ""
        now = monotonic()
        # a bucket that holds one second's requests, and fills up evenly
        left, at = self._buckets.get(address, (self.rate, now))
        left = min(self.rate, left + (now - at) * self.rate)
        if left >= 1.0:
            self._buckets[address] = left - 1.0, now
            if len(self._buckets) > MOST_ADDRESSES:
                self._forget(now)
        else:
            raise HttpRefused(
                f"requests of {address} must be at most {self.rate:g} a second", status=429, field="rate"
            )

    def _forget(self, now: float) -> None:
        """A bucket that has had a second to fill up is as good as none."""
        self._buckets = {who: one for who, one in self._buckets.items() if now - one[1] < 1.0}

    async def _body(self, scope: Any, receive: Any) -> bytes:
        kind, length = b"", b"0"
        for name, value in scope["headers"]:
            if name == b"content-type":
                kind = value
            elif name == b"content-length":
                length = value
        if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
            got = kind.decode("latin-1")
            raise HttpRefused.must("content-type", "request", "application/json", got, status=415)
        if length.isdigit() and int(length) > self.max_body:
            raise self._too_large(int(length))
        message = await receive()
        if not message.get("more_body"):
            body: bytes = message.get("body", b"")
        else:
            try:
                body = await asyncio.wait_for(self._rest(message.get("body", b""), receive), BODY_SECONDS)
            except TimeoutError:
                raise HttpRefused(
                    f"body of request must arrive within {BODY_SECONDS:g} s", status=408, field="body"
                ) from None
        if len(body) > self.max_body:
            raise self._too_large(len(body))
        return body

    async def _rest(self, first: bytes, receive: Any) -> bytes:
        parts, size = [first], len(first)
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_body or not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self, size: int) -> Refused:
        message = must("body", "request", f"of at most {self.max_body} bytes", f"{size} bytes")
        return HttpRefused(message, status=413, field="body")

    # ------------------------------------------------------------ ways out

    async def _send(self, send: Any, answer: Answer) -> None:
        headers = [
            (b"content-type", answer.kind.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            *SAFE_HEADERS,
        ]
        if answer.status in (429, 503, 507):
            headers.append((b"retry-after", b"1"))
        elif answer.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _pass(self, scope: Any, body: bytes, receive: Any, send: Any, began: float) -> None:
        """On to the application, which gets the body that was read here."""
        given, status = False, 0

        async def again() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SAFE_HEADERS]
            await send(message)

        try:
            await self.app(scope, again, watched)
        finally:
            self.metrics.saw("other", status or 500, perf_counter() - began)
