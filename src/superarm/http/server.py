"""Run an application on uvicorn: its connections, its certificate, systemd."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from superarm._types import JsonObject
from superarm.http.access import OPEN, AccessControl, Tokens
from superarm.http.connection_limits import ConnectionTracker, LimitedProtocol, Limits
from superarm.http.listener import Listener
from superarm.http.pages import favicon
from superarm.http.request import Response
from superarm.http.router import Route, Router
from superarm.http.watched_files import WatchedFiles

log = logging.getLogger("superarm.service")

GRACE_SECONDS = 30  # for requests under way, at the end
TICK_SECONDS = 0.5


class Server(uvicorn.Server):
    """uvicorn's server, with connections within limits: ``await server.serve([bound socket])``.

    Attributes:
        port: the port it listens on; 0 for a socket in the file system.
        tracker: its connections.
        certificate: the files of certificate and key, which new connections use.
        on_ready: called with the server when it listens.
    """

    def __init__(
        self,
        application: Router,
        listener: Listener,
        limits: Limits,
        on_ready: Callable[[Server], object] = lambda server: None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                loop="none",
                http=LimitedProtocol,
                ws="none",
                lifespan="off",  # the application is opened before anybody can connect
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=int(limits.idle_seconds) + 1,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self.listener, self.limits, self.on_ready = listener, limits, on_ready
        self.tracker = ConnectionTracker(limits)
        self.tls = listener.tls_context()
        self.certificate = WatchedFiles(
            "certificate", listener.tls_files, listener.owner, self._load_certificate
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.port = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        assert sockets is not None
        (bound,), loop = sockets, asyncio.get_running_loop()
        create = loop.create_server if self.listener.unix_socket is None else loop.create_unix_server
        tls: JsonObject = {}
        if self.tls is not None:  # uvicorn's own startup has no limit for handshakes
            tls = {"ssl": self.tls, "ssl_handshake_timeout": self.limits.head_seconds}
        make_protocol = partial(LimitedProtocol, self.tracker, self.config, self.server_state)
        self.servers = [await create(make_protocol, sock=bound, backlog=self.config.backlog, **tls)]
        self.start_task(self._tick())
        address: JsonObject = {"unix_socket": str(self.listener.unix_socket)}
        if self.listener.unix_socket is None:
            self.port = bound.getsockname()[1]
            address = {"host": self.listener.host, "port": self.port, "tls": self.tls is not None}
        log.info("listening", extra=address)
        self.started = True
        self.on_ready(self)
        notify_systemd("READY=1")

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task beside the requests, until the server shuts down at the latest."""
        self._tasks.append(asyncio.create_task(work))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify_systemd("STOPPING=1")
        await super().shutdown(sockets)
        for connection in tuple(self.tracker.connections):
            connection.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _load_certificate(self, certificate: Path, key: Path) -> None:
        self.listener.tls_context()  # a certificate without its key must not get into the context in use
        assert self.tls is not None
        self.tls.load_cert_chain(certificate, key, password="")

    async def _tick(self) -> None:
        """Close late connections, read a changed certificate, and tell systemd's watchdog that the event loop runs."""
        watchdog_interval = watchdog_seconds()
        while True:
            self.tracker.sweep()
            self.certificate.refresh()
            if watchdog_interval is not None:
                notify_systemd("WATCHDOG=1")
            await asyncio.sleep(min(TICK_SECONDS, watchdog_interval or TICK_SECONDS))


def notify_systemd(state: str) -> None:
    """Notify systemd (of a service of ``Type=notify``) that we are ready, alive or stopping, if it has started us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    # systemd may be gone, or no file be left for the socket: there is nothing to do
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        channel.connect(address)
        channel.send(state.encode())


def watchdog_seconds() -> float | None:
    """Return the interval of the watchdog notifications: half of its timeout; None without a watchdog."""
    microseconds, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not microseconds.isdecimal() or (pid is not None and pid != str(os.getpid())):
        return None
    return int(microseconds) / 2e6


async def serve_page(
    page: Response,
    routes: Iterable[Route],
    context: object,
    listener: Listener,
    on_ready: Callable[[str], object],
    tokens: Tokens | None = None,
) -> None:
    """Serve a page and the routes behind it until cancelled; ``on_ready`` gets its address."""

    def show(context: object) -> Response:
        return page

    access = AccessControl(Tokens() if tokens is None else tokens, rate=1_000.0)
    open_routes = Route("GET", "/", OPEN, show), Route("GET", "/favicon.ico", OPEN, favicon)
    router = Router((*open_routes, *routes), access, context)
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    server = Server(
        router,
        listener,
        Limits(max_connections=500),
        on_ready=lambda server: on_ready(f"http://{host}:{server.port}/"),
    )
    with listener.bind() as bound:
        try:
            await server.serve([bound])
        except asyncio.CancelledError:
            await server.shutdown()
            raise
