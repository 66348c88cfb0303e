"""A table of routes as an ASGI application: find the route, check the token, decode, run, respond."""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from time import monotonic
from typing import Any

import msgspec

from superarm.errors import SuperarmError
from superarm.service.http.admission import OPEN, Admission
from superarm.service.http.decoding import check_id, read, read_query
from superarm.service.http.exchange import (
    Disconnected,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    read_body,
    send_response,
)
from superarm.service.http.faults import HttpRefused, error_of

log = logging.getLogger("superarm.service")

encode = msgspec.json.Encoder().encode

Handler = Callable[..., Any]  # gives a result, or an awaitable of one

AGAIN = ((b"retry-after", b"1"),)
WHO = ((b"www-authenticate", b"Bearer"),)
HEADERS = {401: WHO, 429: AGAIN, 503: AGAIN, 507: AGAIN}


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table.

    Attributes:
        method, path: ``{id}`` stands for a decision's id.
        roles: of the tokens that may use it; empty: everybody.
        takes: the type of the body, or for a GET of the query.
        gives: the type of the response; a content type where it is not JSON.
        statuses: of this route, and what they mean, that the document does not describe for all routes.
        examples: bodies for the document, by what they show.
        listed: whether it is in the document.
        personal: whether ``run`` gets the name of the person with the token; empty where tokens have no names.
        run: what it does; called with the context, then the person if it is personal, then the id if the path
            has one, then what it takes.
    """

    method: str
    path: str
    roles: frozenset[str]
    run: Handler
    takes: Any = None
    gives: Any = None
    statuses: Mapping[int, str] = field(default_factory=dict)
    examples: Mapping[str, Any] = field(default_factory=dict)
    listed: bool = True
    personal: bool = False
    decoder: Any = field(init=False)

    def __post_init__(self) -> None:
        takes_body = self.takes is not None and self.method == "POST"
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.takes) if takes_body else None)

    @property
    def name(self) -> str:
        """For logs and metrics."""
        return self.run.__name__


class Router:
    """An ASGI application.

    Args:
        routes: the table.
        admission: who may come in.
        max_body: bytes of a request.
        log_requests: write a line for each.
    """

    context: Any = None  # what the routes work with
    loop: asyncio.AbstractEventLoop | None = None  # the one that the context belongs to

    def __init__(
        self,
        routes: Iterable[Route],
        admission: Admission,
        *,
        max_body: int = 1 << 20,
        log_requests: bool = False,
    ) -> None:
        self.admission, self.max_body, self.log_requests = admission, max_body, log_requests
        self._table: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}  # apart: nobody can ask for "{id}" itself
        for route in routes:
            table = self._with_id if "{id}" in route.path else self._table
            table.setdefault(route.path, {})[route.method] = route

    def on_response(self, route: str, status: int, seconds: float) -> None:
        """Called for each response; an application that counts them replaces it."""

    async def open(self) -> None:
        """Called when there is no context yet, or it belongs to another event loop."""

    async def lifespan(self, receive: Receive, send: Send) -> None:
        """Called by servers that tell of their start and their end; to raise is how ASGI says: not needed here."""
        raise NotImplementedError("this application opens with its first request")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.lifespan(receive, send)
        if scope["type"] != "http":
            raise NotImplementedError(f"superarm serves HTTP, not {scope['type']}")
        request = Request(scope)
        try:
            target = self.admit(request)
            arguments: list[Any] = [self.admission.person(request)] if target.personal else []
            if request.target[1] is not None:
                arguments.append(check_id(request.target[1]))
            if request.method == "POST":
                body = await read_body(request, receive, self.max_body)
                if target.decoder is not None:
                    arguments.append(read(target.decoder, body))
            elif target.takes is not None:
                arguments.append(read_query(target.takes, request.query))
            if self.context is None or (self.loop is not None and self.loop is not get_running_loop()):
                await self.open()
            result = target.run(self.context, *arguments)
            if isawaitable(result):
                result = await result
            response = result if type(result) is Response else Response(200, encode(result))
        except Disconnected:
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            response = self.failed(request, RuntimeError("what it waited for was cancelled"))
        except Exception as error:
            response = self.failed(request, error)
        name = request.target[0].name if request.target else "other"
        self.on_response(name, response.status, monotonic() - request.began)
        try:
            await send_response(request, response, send)
        finally:
            if response.done is not None:
                response.done()
        if self.log_requests:
            self._log(request, response)

    def find(self, method: str, path: str) -> tuple[Route, str | None]:
        """The route for a request, and the id in its path. The only part that varies is the third."""
        methods, id_ = self._table.get(path), None
        if methods is None:
            parts = path.split("/")
            if len(parts) > 3:
                id_, parts[3] = parts[3], "{id}"
                methods = self._with_id.get("/".join(parts))
        if methods is None:
            raise HttpRefused.must("path", "request", "one of those in /docs", path, status=404)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join(methods)
            raise HttpRefused.must("method", "request", allowed, method, status=405, allowed=allowed)
        return route, id_

    def admit(self, request: Request) -> Route:
        """The route of a request, if its token may use it; the body has not been read."""
        try:
            request.target = target, _ = self.find(request.method, request.path)
        except SuperarmError:
            self.admission.check(request, OPEN)  # strangers count, too, and cannot find out which paths exist
            raise
        self.admission.check(request, target.roles)
        if target.roles or not self.admission.tokens:
            server = request.scope.get("extensions")
            if server is not None and "superarm" in server:
                server["superarm"].trust()  # our own server keeps a share of its connections for these
        if request.method == "POST":
            request.check_encoding()
            kind = request.headers.get(b"content-type", b"")
            if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
                raise HttpRefused.must(
                    "content-type", "request", "application/json", kind.decode("latin-1"), status=415
                )
        else:
            request.check_no_body()
        return target

    def failed(self, request: Request, error: Exception) -> Response:
        """The response to an error."""
        body = error_of(error)
        status = body.error.status
        if status == 500:
            where = {"request": request.id, "path": request.path, **request.trace}
            log.error("unexpected error", exc_info=error, extra=where)
        headers = HEADERS.get(status, ())
        if isinstance(error, HttpRefused) and error.allowed:
            headers = ((b"allow", error.allowed.encode()),)
        return Response(status, encode(body), headers=headers)

    def _log(self, request: Request, response: Response) -> None:
        fields = {
            "request": request.id,
            "method": request.method,
            "path": request.path,
            "status": response.status,
            "ms": round(1e3 * (monotonic() - request.began), 2),
            "address": request.address,
            **request.trace,
        }
        log.info("request", extra=fields)
