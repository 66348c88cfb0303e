"""A table of routes behind the wire: finds the route, checks who asks, reads, runs, and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from time import monotonic
from typing import Any
from urllib.parse import unquote

import msgspec

from superarm.errors import SuperarmError
from superarm.service.http.admission import OPEN, Admission
from superarm.service.http.messages import Error, Fault
from superarm.service.http.reading import check_id, read, read_query
from superarm.service.http.statuses import (
    FIELDS,
    MEANINGS,
    MethodNotAllowed,
    UnknownPath,
    WrongType,
    error_of,
)
from superarm.service.http.wire import Answer, Request, parse_query

__all__ = ["Handler", "Route", "Router"]

log = logging.getLogger("superarm.service")

encode = msgspec.json.Encoder().encode

Handler = Callable[..., Any]  # an answer, or something to wait for


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table.

    Attributes:
        method, path: ``{id}`` stands for a decision's id.
        roles: of the tokens that may use it; empty: everybody.
        takes: the type of the body, or for a GET of the query.
        gives: the type of the answer; a content type where it is not JSON.
        told: what statuses mean here that the table of statuses does not tell.
        examples: bodies for the document, by what they show.
        listed: whether it is in the document.
        run: what it does; called with the service, then the id if the path has one, then what it takes.
    """

    method: str
    path: str
    roles: frozenset[str]
    run: Handler
    takes: Any = None
    gives: Any = None
    told: tuple[tuple[int, str], ...] = ()
    examples: tuple[tuple[str, Any], ...] = ()
    listed: bool = True
    decoder: Any = field(init=False)

    def __post_init__(self) -> None:
        takes_body = self.takes is not None and self.method == "POST"
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.takes) if takes_body else None)

    @property
    def name(self) -> str:
        """For logs and metrics."""
        return self.run.__name__


class Router:
    """See `wire.Application`.

    Args:
        routes: the table.
        admission: who may come in.
    """

    service: Any = None  # what the routes work with

    def __init__(self, routes: Iterable[Route], admission: Admission) -> None:
        self.admission = admission
        self._table: dict[str, dict[str, Route]] = {}
        for one in routes:
            self._table.setdefault(one.path, {})[one.method] = one
        self._waiting: set[asyncio.Future[Any]] = set()

    def saw(self, route: str, status: int, seconds: float) -> None:
        """Called for each answer; for those who count them."""

    def find(self, method: str, path: str) -> tuple[Route, str | None]:
        """The route for a request, and the id in its path. The only part that varies is the third."""
        methods, id_ = self._table.get(path), None
        if methods is None:
            parts = path.split("/")
            if len(parts) > 3:
                id_, parts[3] = unquote(parts[3]), "{id}"
                methods = self._table.get("/".join(parts))
        if methods is None:
            raise UnknownPath.must("path", "request", "one of those in /docs", path)
        found = methods.get("GET" if method == "HEAD" else method)
        if found is None:
            error = MethodNotAllowed.must("method", "request", " or ".join(methods), method)
            error.allowed = ", ".join(methods)
            raise error
        return found, id_

    def admit(self, request: Request) -> Answer | None:
        try:
            try:
                request.target = target, _ = self.find(request.method, request.path)
                roles = target.roles
            except SuperarmError:
                # strangers count, and learn nothing of what is here
                self.admission.check(request, OPEN)
                raise
            self.admission.check(request, roles)
            if request.method == "POST":
                kind = request.headers.get(b"content-type", b"")
                if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != (
                    b"application/json"
                ):
                    raise WrongType.must(
                        "content-type", "request", "application/json", kind.decode("latin-1")
                    )
        except SuperarmError as error:
            return self.failed(request, error)
        return None

    def refuse(self, status: int, request: Request) -> Answer:
        field = FIELDS[status]
        return self._said(request, Error(Fault(status, field, f"{field} refused: {MEANINGS[status]}")))

    def answer(self, request: Request, send: Callable[[Answer], None]) -> None:
        target, id_ = request.target
        try:
            given: list[Any] = [] if id_ is None else [check_id(id_)]
            if target.decoder is not None:
                given.append(read(target.decoder, request.body))
            elif target.takes is not None:
                given.append(read_query(target.takes, parse_query(request.query)))
            told = target.run(self.service, *given)
        except Exception as error:
            send(self.failed(request, error))
            return
        if isawaitable(told):
            waiting = asyncio.ensure_future(told)  # the hot routes give a future: no task is made for them
            self._waiting.add(waiting)
            waiting.add_done_callback(partial(self._finish, request, send))
        else:
            send(self.done(request, told))

    def _finish(self, request: Request, send: Callable[[Answer], None], waited: asyncio.Future[Any]) -> None:
        self._waiting.discard(waited)
        error = asyncio.CancelledError() if waited.cancelled() else waited.exception()
        if error is None:
            send(self.done(request, waited.result()))
        else:
            send(self.failed(request, error if isinstance(error, Exception) else RuntimeError(repr(error))))

    def done(self, request: Request, told: Any) -> Answer:
        """The answer that a route's function has given, as bytes."""
        try:
            answer = told if type(told) is Answer else Answer(200, encode(told))
        except Exception as error:
            return self.failed(request, error)
        self.saw(request.target[0].name, answer.status, monotonic() - request.began)
        return answer

    def failed(self, request: Request, error: Exception) -> Answer:
        """The refusal that says what was wrong."""
        said = error_of(error)
        if said.error.status == 500:
            log.error("bug", exc_info=error, extra={"request": request.id, "path": request.path})
        answer = self._said(request, said)
        if isinstance(error, MethodNotAllowed):
            answer = answer._replace(headers=(("allow", error.allowed),))
        return answer

    def _said(self, request: Request, said: Error) -> Answer:
        status = said.error.status
        name = request.target[0].name if request.target else "other"
        self.saw(name, status, monotonic() - request.began if request.began else 0.0)
        headers: tuple[tuple[str, str], ...] = ()
        if status in (429, 503, 507):
            headers = (("retry-after", "1"),)
        elif status == 401:
            headers = (("www-authenticate", "Bearer"),)
        return Answer(status, encode(said), headers=headers)
