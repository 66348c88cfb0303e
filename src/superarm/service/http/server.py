"""Run an application on uvicorn: its connections, signals, systemd.

SIGTERM, SIGINT   finish what has begun, snapshot, end
SIGHUP            read the token file and the certificate again (whether they have changed is looked up
                  every second in any case)
SIGUSR1           a snapshot now
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from superarm._types import JsonObject
from superarm.service import Service
from superarm.service.http.access import OPEN, AccessControl, Tokens
from superarm.service.http.asgi import Application
from superarm.service.http.connection_limits import ConnectionTracker, LimitedProtocol, Limits
from superarm.service.http.json_logging import log_to_stderr
from superarm.service.http.listener import Listener, check_exposure
from superarm.service.http.pages import favicon
from superarm.service.http.request import Response
from superarm.service.http.router import Route, Router
from superarm.service.http.watched_files import WatchedFiles

log = logging.getLogger("superarm.service")

GRACE_SECONDS = 30  # for requests under way, at the end
TICK_SECONDS = 0.5
SPARE_FILES = 100  # beside the connections


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


async def serve_application(
    application: Application,
    listener: Listener,
    limits: Limits,
    bound: socket.socket,
    *,
    on_ready: Callable[[Server], object] = lambda server: None,
) -> None:
    """Serve on a bound socket until the server's ``should_exit`` is set (SIGTERM and SIGINT set it)."""
    server = Server(application, listener, _fit_file_limit(limits), on_ready)
    application.metrics.tracker = server.tracker
    async with application:
        await server.serve([bound])


def serve(
    open_service: Callable[[], Service],
    tokens: Tokens,
    *,
    listener: Listener,
    limits: Limits,
    rate_limit: float = 10_000.0,
    **options: Any,
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what has begun, snapshot, and return.

    The address is bound before the service is opened, so that a start that fails makes no journal. The options are
    those of `AccessControl` and `Router`.
    """
    _ignore(signal.SIGHUP, signal.SIGUSR1)  # until the server is ready there is nothing to do
    check_exposure(listener, tokens)
    listener.tls_context()
    with listener.bind() as bound:
        logs = log_to_stderr()
        try:
            service = open_service()
            any_host = listener.unix_socket is not None  # only this machine's users get there
            access = AccessControl(tokens, rate_limit, any_host=any_host)
            application = Application(lambda: service, access, **options)
            application.metrics.logs = logs
            _tune_interpreter()
            # uvicorn raises the one again that has ended it: no failure
            _ignore(signal.SIGTERM, signal.SIGINT)
            with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
                on_ready = partial(_handle_signals, application)
                runner.run(serve_application(application, listener, limits, bound, on_ready=on_ready))
        finally:
            logs.flush()


def _ignore(*signals: signal.Signals) -> None:
    for one in signals:
        signal.signal(one, lambda *_: None)  # not SIG_IGN: a new process would inherit that


def _tune_interpreter() -> None:
    """Let threads and the garbage collector take their turns as a service needs it."""
    sys.setswitchinterval(0.001)  # the commit thread must go on soon after the disk is done
    # thousands of decisions are kept: a collection after every 700 new objects would take too much time
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _handle_signals(application: Application, server: Server) -> None:
    """On SIGHUP read tokens and certificate again at once; on SIGUSR1 take a snapshot."""

    def reload() -> None:
        application.access.tokens.watched.reload()
        server.certificate.reload()
        log.info("tokens and certificate checked", extra={"because": "SIGHUP"})

    async def snapshot() -> None:
        try:
            if application.context is not None:
                await application.context.service.upkeep.snapshot()
                log.info("snapshot", extra={"because": "SIGUSR1"})
        except Exception as error:
            log.error("snapshot failed", extra={"reason": str(error)})

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    loop.add_signal_handler(signal.SIGUSR1, lambda: server.start_task(snapshot()))


def _fit_file_limit(limits: Limits) -> Limits:
    """Raise the limit of open files; return limits with no more connections than it allows."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS says that there is no limit, and has one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY or files >= limits.max_connections + SPARE_FILES:
        return limits
    log.warning("fewer connections than --max-connections", extra={"open_files": files})
    return replace(limits, max_connections=max(1, files - SPARE_FILES))
