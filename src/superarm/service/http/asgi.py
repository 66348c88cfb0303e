"""The service as an ASGI application: for `superarm serve`, or mounted in an application that you have.

app.mount("/arms", superarm.service.asgi("events.db", labels=["ads", "billing", "login"], set_size=2))
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from superarm.errors import SuperarmError
from superarm.journal.errors import JournalDown
from superarm.service import Service
from superarm.service.http import pages
from superarm.service.http.admission import Admission
from superarm.service.http.exchange import Receive, Send
from superarm.service.http.request_metrics import RequestMetrics
from superarm.service.http.router import Router
from superarm.service.http.routes import Context
from superarm.service.http.tokens import Tokens

log = logging.getLogger("superarm.service")

REFRESH_SECONDS = 1.0
RETRY_SECONDS = 1.0  # after it could not be opened


class Application(Router):
    """A service behind its routes.

    It opens with ``async with``, with the server's lifespan, or with the first request, whichever comes first
    (a mounted application gets no lifespan events), and belongs to that event loop. What was opened is
    closed at the end of ``async with`` or of the lifespan; or else when the process ends.

    Args:
        open_service: gives the service, when the application opens.
        tokens: with their roles.
        rate: requests a second from one address.
        any_host: without tokens, answer to any host name (see `Admission`).
        options: see `Router`.
    """

    context: Context | None

    def __init__(
        self,
        open_service: Callable[[], Service],
        tokens: Tokens | None = None,
        *,
        rate: float = 10_000.0,
        any_host: bool = False,
        **options: Any,
    ) -> None:
        self.tokens = tokens or Tokens()
        super().__init__(pages.ROUTES, Admission(self.tokens, rate, any_host=any_host), **options)
        self.open_service = open_service
        self.metrics = RequestMetrics(self.tokens)
        self.on_response = self.metrics.count  # type: ignore[method-assign]
        self._opening: asyncio.Future[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._failed: tuple[float, str] | None = None

    async def open(self) -> None:
        """Open the service; callers that come meanwhile wait for the same."""
        if self.loop is not None and self.loop is not asyncio.get_running_loop():
            self._leave_loop()
        if self.context is not None:
            return
        if self._failed is not None and monotonic() < self._failed[0]:
            raise JournalDown(self._failed[1])
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        opening = self._opening
        try:
            await asyncio.shield(opening)
        except SuperarmError as error:
            sentence = f"the service could not be opened: {error}"
            self._failed = monotonic() + RETRY_SECONDS, sentence
            raise
        finally:
            if opening.done() and self._opening is opening:
                self._opening = None

    async def _open(self) -> None:
        service = await asyncio.to_thread(self.open_service)
        await service.start()
        self.loop, self._failed = asyncio.get_running_loop(), None
        self.context = Context(service, self.metrics, self.tokens)
        self._refreshing = asyncio.create_task(self._refresh())
        atexit.register(self._at_exit)
        log.info("ready", extra={"event_no": service.model.seq, "replayed": service.model.replayed})
        for sentence in self.context.trouble():
            log.warning("trouble", extra={"reason": sentence})

    async def close(self) -> None:
        """Finish what has begun, keep a snapshot, and close the journal. It may be opened again."""
        context, self.context = self.context, None
        if context is None:
            return
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        await context.service.stop()
        atexit.unregister(self._at_exit)
        self.loop = None
        log.info("closed")

    async def __aenter__(self) -> Application:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self.tokens.refresh()

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

    def _leave_loop(self) -> None:
        """The loop that it was opened in has ended, or it must not be used in two at once."""
        assert self.loop is not None
        if not self.loop.is_closed():
            raise RuntimeError("this application belongs to another event loop, which still runs")
        self._at_exit()

    def _at_exit(self) -> None:
        """Close without having been told to, so that the next start need not catch up."""
        context, self.context = self.context, None
        self.loop = None
        atexit.unregister(self._at_exit)
        if context is not None:
            context.service.close()


def asgi(
    journal: str | Path,
    *,
    labels: Sequence[str] | None = None,
    features: int | None = None,
    set_size: int | None = None,
    coverage: float | None = None,
    learner: str | None = None,
    model: str | Path | None = None,
    seed: int | None = None,
    create: bool = True,
    shadow: Sequence[str] = (),
    timeout: float | None = None,
    retain: float | None = None,
    default_outcome: bool | None = None,
    snapshot_every: int = 50_000,
    keep_snapshots: int = 3,
    max_journal_mb: int | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    any_host: bool = False,
    max_body: int = 1 << 20,
    rate_limit: float = 10_000.0,
    log_requests: bool = False,
    **more: Any,
) -> Application:
    """The service as an ASGI application, to be mounted in Starlette, FastAPI or the like.

    Args:
        journal: what keeps everything: a SQLite file, or ``postgresql://…`` for many processes.
        labels: what may be shown (for a new journal).
        features: the length of a row (for a new journal); left out, the first row fixes it.
        set_size: how many labels to show.
        coverage: how often the right one shall be among them; then ``set_size`` is the most.
        learner: ``name:key=value,…`` as on the command line.
        model: a model file to start a new journal with.
        seed: of the learner.
        create: make the journal if it is missing.
        shadow: other learners that learn the same and are never shown.
        timeout: seconds after which an unanswered decision is closed.
        retain: seconds after which features and context are erased.
        default_outcome: what a timeout counts as: True (hit), False (miss), None (nothing is learnt).
        snapshot_every: events between snapshots.
        keep_snapshots: how many to keep.
        max_journal_mb: refuse to write beyond this size of the journal.
        token: a token that may do everything.
        token_file: tokens with their roles, one a line.
        any_host: without tokens, answer to any host name: your application checks who may use it.
        max_body: bytes of a request.
        rate_limit: requests a second from one address.
        log_requests: write a log line for each request.
        more: further options of the service (`superarm.service.Service.open`).
    """

    def open_service() -> Service:
        return Service.open(
            journal, labels=None if labels is None else list(labels), n_features=features, set_size=set_size,
            coverage=coverage, learner=learner, model=model, seed=seed, create=create, shadows=tuple(shadow),
            timeout=timeout, retain=retain, default_outcome=default_outcome, snapshot_every=snapshot_every,
            keep_snapshots=keep_snapshots, max_journal_mb=max_journal_mb, **more,
        )  # fmt: skip

    tokens = Tokens(None if token_file is None else Path(token_file), token)
    return Application(
        open_service, tokens, rate=rate_limit, any_host=any_host, max_body=max_body, log_requests=log_requests
    )
