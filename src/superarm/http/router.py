"""A table of routes as an ASGI application: find the route, check the token, decode, run, respond."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from time import monotonic
from typing import Any, get_args

import msgspec

from superarm.http.access import OPEN, AccessControl
from superarm.http.decoding import check_id, decode_body, decode_query
from superarm.http.http_errors import HttpError, error_body
from superarm.http.request import (
    Disconnected,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    read_body,
    send_response,
)

log = logging.getLogger("superarm.service")

encode = msgspec.json.Encoder().encode

Endpoint = Callable[..., Any]

RETRY_SOON = ((b"retry-after", b"1"),)
ERROR_HEADERS = {401: ((b"www-authenticate", b"Bearer"),), 429: RETRY_SOON, 503: RETRY_SOON, 507: RETRY_SOON}


@dataclass(slots=True)
class Route:
    """A path, who may use it, and what it does.

    Attributes:
        method, path: ``{id}`` stands for a decision's id.
        roles: of the tokens that may use it; empty: everybody.
        endpoint: a function that returns the result, or an awaitable of it. Its parameters are the router's context
            and then, as far as it has them: ``person`` (who holds the token; empty where tokens have no names),
            ``id_`` (from the path), and one more, the body of a POST or the query of a GET, of the annotated type.
        content_type: of the response.
        statuses: what they mean, beyond those that all routes have.
        examples: bodies for the OpenAPI document, by what they show.
        documented: whether it is in that document.
        needs_person: whether the endpoint has the parameter ``person``.
        request_type: of the body or the query; None if the endpoint takes neither.
        response_type: the message that it returns; None if that is another object.
    """

    method: str
    path: str
    roles: frozenset[str]
    endpoint: Endpoint
    content_type: str = "application/json"
    statuses: Mapping[int, str] = field(default_factory=dict)
    examples: Mapping[str, Any] = field(default_factory=dict)
    documented: bool = True
    needs_person: bool = field(init=False)
    request_type: Any = field(init=False)
    response_type: Any = field(init=False)
    decoder: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        types = signature(self.endpoint, eval_str=True)
        _, *parameters = types.parameters.values()
        self.needs_person = any(parameter.name == "person" for parameter in parameters)
        self.request_type = next((p.annotation for p in parameters if p.name not in ("person", "id_")), None)
        returned = get_args(types.return_annotation) or (types.return_annotation,)
        self.response_type = next((kind for kind in returned if isinstance(kind, type(msgspec.Struct))), None)
        if self.request_type is not None and self.method == "POST":
            self.decoder = msgspec.json.Decoder(self.request_type)

    @property
    def name(self) -> str:
        """For logs and metrics."""
        return self.endpoint.__name__


class Router:
    """Routes as an ASGI application.

    Args:
        routes: all of them.
        access: checks who may use which.
        context: the first argument of all endpoints.
        max_body: bytes of a request.
        log_requests: write a line for each.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        access: AccessControl,
        context: Any = None,
        *,
        max_body: int = 1 << 20,
        log_requests: bool = False,
    ) -> None:
        self.access, self.max_body, self.log_requests = access, max_body, log_requests
        self.context = context
        self._routes: dict[str, dict[str, Route]] = {}
        # apart: a request for "{id}" itself finds nothing
        self._routes_with_id: dict[str, dict[str, Route]] = {}
        for route in routes:
            table = self._routes_with_id if "{id}" in route.path else self._routes
            table.setdefault(route.path, {})[route.method] = route

    def on_response(self, route: str, status: int, seconds: float) -> None:
        """Called for each response; an application that counts them replaces it."""

    async def open(self) -> None:
        """Called before each endpoint; an application that makes its context then replaces it."""

    async def lifespan(self, receive: Receive, send: Send) -> None:
        """Called by servers that announce their start and end; raising means that it is not supported."""
        raise NotImplementedError("this application opens with its first request")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.lifespan(receive, send)
        if scope["type"] != "http":
            raise NotImplementedError(f"superarm serves HTTP, not {scope['type']}")
        request = Request(scope)
        route: Route | None = None
        try:
            route, id_ = self.match_route(request)
            response = await self._handle(request, route, id_, receive)
        except Disconnected:
            return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            response = self._error_response(request, RuntimeError("what it waited for was cancelled"))
        except Exception as error:
            response = self._error_response(request, error)
        route_name = "other" if route is None else route.name
        self.on_response(route_name, response.status, monotonic() - request.start)
        try:
            await send_response(request, response, send)
        finally:
            if response.on_sent is not None:
                response.on_sent()
        if self.log_requests:
            self._log(request, response)

    async def _handle(self, request: Request, route: Route, id_: str | None, receive: Receive) -> Response:
        """Check the head of a request, then read and decode its body, then call the endpoint."""
        person = self._admit(request, route)
        arguments: list[Any] = [person] if route.needs_person else []
        if id_ is not None:
            arguments.append(check_id(id_))
        if request.method == "POST":
            body = await read_body(request, receive, self.max_body)
            if route.decoder is not None:
                arguments.append(decode_body(route.decoder, body))
        elif route.request_type is not None:
            arguments.append(decode_query(route.request_type, request.query))
        await self.open()
        result = route.endpoint(self.context, *arguments)
        if hasattr(result, "__await__"):
            result = await result
        return result if type(result) is Response else Response(200, encode(result))

    def match_route(self, request: Request) -> tuple[Route, str | None]:
        """Return the route of a request, and the id in its path, if that has one (as its third part)."""
        methods, id_ = self._routes.get(request.path), None
        if methods is None:
            parts = request.path.split("/")
            if len(parts) > 3:
                id_, parts[3] = parts[3], "{id}"
                methods = self._routes_with_id.get("/".join(parts), {})
        route = methods.get("GET" if request.method == "HEAD" else request.method) if methods else None
        if route is None:
            self.access.check(request, OPEN)  # the rate and the host name of every request are checked
            if not methods:
                raise HttpError(f"no such path: {request.path}", field="path", status=404)
            allowed = ", ".join(methods)
            raise HttpError.must("method", "request", allowed, request.method, status=405, allowed=allowed)
        return route, id_

    def _admit(self, request: Request, route: Route) -> str:
        """Refuse a request that may not use the route, by its head alone; return the name of its token."""
        person = self.access.check(request, route.roles)
        if route.roles or not self.access.tokens.required:
            extensions = request.scope.get("extensions")
            if extensions is not None and "superarm" in extensions:
                extensions["superarm"].mark_authenticated()  # our own server keeps room for these
        if request.method == "POST":
            request.check_json_body()
        else:
            request.check_no_body()
        return person

    def _error_response(self, request: Request, error: Exception) -> Response:
        body = error_body(error)
        status = body.error.status
        if status == 500:
            where = {"request": request.id, "path": request.path, **request.trace}
            log.error("unexpected error", exc_info=error, extra=where)
        headers = ERROR_HEADERS.get(status, ())
        if isinstance(error, HttpError) and error.allowed:
            headers = ((b"allow", error.allowed.encode()),)
        return Response(status, encode(body), headers=headers)

    def _log(self, request: Request, response: Response) -> None:
        fields = {
            "request": request.id,
            "method": request.method,
            "path": request.path,
            "status": response.status,
            "ms": round(1e3 * (monotonic() - request.start), 2),
            "address": request.address,
            **request.trace,
        }
        log.info("request", extra=fields)
