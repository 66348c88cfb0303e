"""The service as an application: its session from start to end, and its routes behind the wire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from superarm.service.core.session import Session
from superarm.service.http import pages
from superarm.service.http.admission import Admission
from superarm.service.http.metrics import Metrics
from superarm.service.http.router import Router
from superarm.service.http.routes import Service

__all__ = ["App"]

log = logging.getLogger("superarm.service")

REFRESH_SECONDS = 1.0


class App(Router):
    """See `wire.Application`.

    Args:
        open_session: gives the session, when the application starts.
        admission: who may come in.
    """

    service: Service

    def __init__(self, open_session: Callable[[], Session], admission: Admission) -> None:
        super().__init__(pages.ROUTES, admission)
        self.open_session = open_session
        self.metrics = Metrics()
        self.saw = self.metrics.saw  # type: ignore[method-assign]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        session = self.open_session()
        self.service = Service(*session.parts(), self.metrics)
        for work in (self.service.upkeep.run(), self._refresh()):
            self._tasks.append(asyncio.create_task(work))
        log.info("ready", extra={"event_no": session.seq, "replayed": session.replayed})
        for sentence in session.health().trouble:
            log.warning("trouble", extra={"reason": sentence})

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.service.group.close()
        session = self.service.session
        session.close()
        log.info("closed", extra={"event_no": session.seq})

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self.admission.tokens.refresh()
