"""`live`: a whole service in a thread of this process, on the real server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from service_kit import Web

from superarm.http.access import AccessControl, Tokens
from superarm.http.connection_limits import Limits
from superarm.http.listener import Listener
from superarm.http.server import Server
from superarm.service.application import Application
from superarm.service.serve import serve_application


@pytest.fixture
def live(open_service: Callable[..., Any]) -> Iterator[Callable[..., Web]]:
    """Starts it, and stops it gracefully at the end.

    What it gives talks to the service: ``web.application``, ``web.server``, ``web.service`` and ``web.stop``
    are what is behind it.
    """
    stops = []

    def start(
        service: Any = None,
        *,
        token: str | None = None,
        tokens: Tokens | None = None,
        rate: float = 10_000.0,
        listener: Listener | None = None,
        max_body: int = 1 << 20,
        log_requests: bool = False,
        **limits: Any,
    ) -> Web:
        service = service or open_service()
        listener = listener or Listener(port=0)
        tokens = tokens or Tokens(master_token=token)
        access = AccessControl(tokens, rate, any_host=listener.unix_socket is not None)
        application = Application(lambda: service, access, max_body=max_body, log_requests=log_requests)
        ready: Future[Server] = Future()

        def work() -> None:
            try:
                with listener.bind() as bound:
                    served = serve_application(
                        application, listener, Limits(**limits), bound, on_ready=ready.set_result
                    )
                    asyncio.run(served)
            except BaseException as error:
                if ready.done():
                    raise
                ready.set_exception(error)

        thread = threading.Thread(target=work)
        thread.start()
        server = ready.result(30)

        def stop() -> None:
            server.should_exit = True
            thread.join()

        stops.append(stop)
        web = Web(server.port, token)
        web.stop, web.server, web.application, web.service = stop, server, application, service
        return web

    yield start
    for stop in stops:
        stop()
