"""The service as an ASGI application: for `superarm serve`, or mounted in an application that you have.

app.mount("/arms", superarm.service.asgi("events.db", labels=["ads", "billing", "login"], set_size=2))
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput, SuperarmError
from superarm.http.access import AccessControl, Tokens
from superarm.http.http_errors import HttpError, status_of
from superarm.http.request import Receive, Request, Send
from superarm.http.router import Route, Router
from superarm.journal.create import JournalOptions, new_learner
from superarm.parameters import check_bool, check_int, check_number
from superarm.service import Service
from superarm.service.metrics import RequestMetrics
from superarm.service.routes import ROUTES, TOKEN_FILE_METRICS, Context
from superarm.service.settings import Settings

log = logging.getLogger("superarm.service")


class Application(Router):
    """A service behind its routes.

    It opens with ``async with``, with the server's lifespan, or with the first request, whichever comes first
    (a mounted application gets no lifespan events), and belongs to that event loop. What was opened is
    closed at the end of ``async with`` or of the lifespan; or else when the process ends.

    Args:
        open_service: gives the service, when the application opens.
        access: checks who may use which route.
        options: ``max_body`` and ``log_requests``, as of `Router`.
    """

    context: Context | None
    loop: asyncio.AbstractEventLoop | None = None  # that the context belongs to

    def __init__(self, open_service: Callable[[], Service], access: AccessControl, **options: Any) -> None:
        super().__init__(ROUTES, access, **options)
        self.open_service = open_service
        self.metrics = RequestMetrics(access.tokens, [route.name for route in ROUTES])
        self._opening: asyncio.Task[None] | None = None

    def on_response(self, route: str, status: int, seconds: float) -> None:
        self.metrics.count(route, status, seconds)

    def match_route(self, request: Request) -> tuple[Route, str | None]:
        route, id_ = super().match_route(request)
        if route.path == TOKEN_FILE_METRICS.path and self.access.tokens.problem is not None:
            route = TOKEN_FILE_METRICS
        return route, id_

    async def open(self) -> None:
        """Open the service; concurrent calls wait for the same opening."""
        if self.loop is not None and self.loop is not asyncio.get_running_loop():
            if not self.loop.is_closed():
                raise RuntimeError("this application belongs to another event loop, which still runs")
            self._close_now()
        if self.context is None:
            if self._opening is None:
                self._opening = asyncio.create_task(self._open())
            await asyncio.shield(self._opening)

    async def _open(self) -> None:
        try:
            service = await asyncio.to_thread(self.open_service)
            await service.start()
        except SuperarmError as error:
            log.error(f"not opened: {error}", extra={"reason": str(error)})
            if status_of(error) < 500:  # the options are at fault, and not the request
                raise HttpError(str(error), status=503) from error
            raise
        finally:
            self._opening = None
        self.loop = asyncio.get_running_loop()
        self.context = Context(service, self.metrics, self.access.tokens)
        atexit.register(self._close_now)
        log.info("ready", extra={"event_no": service.projector.seq, "replayed": service.follower.replayed})
        for sentence in self.context.problems():
            log.warning(f"trouble: {sentence}", extra={"reason": sentence})

    async def close(self) -> None:
        """Finish requests, keep a snapshot, and close the journal. It may be opened again."""
        context, self.context, self.loop = self.context, None, None
        if context is not None:
            atexit.unregister(self._close_now)
            await context.service.stop()
            log.info("closed")

    def _close_now(self) -> None:
        """Close outside of the event loop, which has ended, so that the next start need not catch up."""
        context, self.context, self.loop = self.context, None, None
        atexit.unregister(self._close_now)
        if context is not None:
            context.service.close()

    async def __aenter__(self) -> Application:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})


def asgi(
    journal: str | Path,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    any_host: bool = False,
    max_body: int = 1 << 20,
    rate_limit: float = 10_000.0,
    log_requests: bool = False,
    **options: Any,
) -> Application:
    """Return the service as an ASGI application, to be mounted in Starlette, FastAPI or the like.

    Args:
        journal: what keeps everything: a SQLite file, or ``postgresql://…`` for many processes.
        token: a token that may do everything.
        token_file: tokens with their roles, one a line.
        any_host: without tokens, answer to any host name: your application checks who may use it.
        max_body: bytes of a request.
        rate_limit: requests a second from one address.
        log_requests: write a log line for each request.
        options: those of `superarm serve`, by the names of `superarm.service.Service.open` and
            `superarm.service.settings.Settings`: ``labels``, ``set_size``, ``timeout``, ``shadows`` …
    """
    settings = {field.name for field in fields(Settings)}
    names = (signature(Service.open).parameters.keys() | settings) - {"journal", "settings"}
    for name in options.keys() - names:
        raise InvalidInput.must("option", "asgi", f"one of {', '.join(sorted(names))}", name, choices=names)
    # refused now, and not with the first request
    Settings.parse(**{name: options[name] for name in options.keys() & settings})
    made_for = {field.name: options[field.name] for field in fields(JournalOptions) if field.name in options}
    journal_options = JournalOptions.parse(**made_for)
    if journal_options.labels is not None and options.get("model") is None:
        new_learner(journal_options)
    for name, value in {"any_host": any_host, "log_requests": log_requests}.items():
        check_bool(name, "asgi", value)
    check_int("max_body", "asgi", max_body, 1)
    check_number("rate_limit", "asgi", rate_limit, 0.0)
    tokens = Tokens(None if token_file is None else Path(token_file), token)
    return Application(
        lambda: Service.open(journal, **options),
        AccessControl(tokens, rate_limit, any_host=any_host),
        max_body=max_body,
        log_requests=log_requests,
    )
