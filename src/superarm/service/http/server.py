"""Run an application on uvicorn: a socket, TLS, signals, and where it may be reached from.

SIGTERM, SIGINT   finish what has begun, snapshot, end
SIGHUP            read the token file and the certificate again
SIGUSR1           a snapshot now

They are also checked for changes every second.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from superarm._types import JsonObject
from superarm.errors import InvalidInput
from superarm.service import Service
from superarm.service.http.access import AccessControl, Tokens
from superarm.service.http.asgi import Application
from superarm.service.http.connection_limits import ConnectionTracker, LimitedProtocol, Limits
from superarm.service.http.json_logging import log_to
from superarm.service.http.router import Route, Router
from superarm.service.http.watched_files import REFRESH_SECONDS, WatchedFiles, check_files

log = logging.getLogger("superarm.service")

GRACE_SECONDS = 30  # for requests under way, at the end
SPARE_FILES = 100  # beside the connections


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen: an address, or a socket in the file system; with TLS or without."""

    host: str = "127.0.0.1"
    port: int = 8800
    unix_socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    owner: str = field(default="superarm serve", kw_only=True)  # for messages

    def tls_context(self) -> ssl.SSLContext | None:
        """Return a context with certificate and key; None without TLS."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise InvalidInput(f"{self.owner} needs --tls-cert and --tls-key together, or neither")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            check_files(self.tls_files, self.owner)
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            wanted = "PEM files of a certificate and its key"
            raise InvalidInput.must("--tls-cert", self.owner, wanted, error) from error
        return context

    @property
    def tls_files(self) -> dict[str, Path]:
        """The files of certificate and key, by option; empty without TLS."""
        options = {"--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        return {option: path for option, path in options.items() if path is not None}

    @contextmanager
    def bind(self) -> Iterator[socket.socket]:
        """Bind a socket, which does not listen yet; at the end it is closed, and gone from the file system."""
        path = self.unix_socket
        with self._bind_address() if path is None else self._bind_unix(path) as bound:
            inode = None if path is None else path.lstat().st_ino
            try:
                yield bound
            finally:
                with suppress(OSError):
                    # unless another process has taken the path
                    if path is not None and path.lstat().st_ino == inode:
                        path.unlink()

    def _bind_address(self) -> socket.socket:
        bound: socket.socket | None = None
        try:
            family, _, _, _, address = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            # named, or asyncio (where there is no uvloop) leaves Nagle's algorithm on: 40 ms a request
            bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError as error:
            if bound is not None:
                bound.close()
            wanted = f"free, on {self.host}:{self.port}"
            raise InvalidInput.must("--port", self.owner, wanted, error) from error
        return bound

    def _bind_unix(self, path: Path) -> socket.socket:
        if path.exists() or path.is_symlink():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise InvalidInput.must("--unix-socket", self.owner, "a new path, or a socket", str(path))
            if _is_listening(path):
                raise InvalidInput.must("--unix-socket", self.owner, "used by no other process", str(path))
            path.unlink(missing_ok=True)  # left over by a process that was killed
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old_umask = os.umask(0o117)  # for this user and this group
        try:
            bound.bind(str(path))
        except OSError as error:
            bound.close()
            raise InvalidInput.must("--unix-socket", self.owner, "a path to bind", error) from error
        finally:
            os.umask(old_umask)
        return bound


def _is_listening(path: Path) -> bool:
    """Return whether a process listens on a socket in the file system."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # it is busy, or not ours to ask
            return True
        return True


def check_exposure(listener: Listener, tokens: Tokens) -> None:
    """Refuse to listen without a token anywhere but on the loopback address or a socket in the file system."""
    if listener.unix_socket is not None or tokens.required:
        return
    try:
        local = ip_address(listener.host).is_loopback
    except ValueError:
        local = listener.host == "localhost"
    if not local:
        needs = "needs --token-file (or SUPERARM_TOKEN), since others can reach it there"
        raise InvalidInput(f"{listener.owner} --host {listener.host} {needs}")


class Server(uvicorn.Server):
    """uvicorn's server, with connections within limits: ``await server.serve([bound socket])``.

    Attributes:
        port: the port it listens on; 0 for a socket in the file system.
        on_ready: called when it listens.
        certificate: the files of certificate and key, which new connections use.
    """

    def __init__(self, application: Router, listener: Listener, limits: Limits) -> None:
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
        self.listener, self.limits = listener, limits
        self.tracker = ConnectionTracker(limits)
        self.tls = listener.tls_context()
        self.certificate = WatchedFiles(
            "certificate", listener.tls_files, listener.owner, self._load_certificate
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.port = 0
        self.on_ready: Callable[[], object] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        assert sockets is not None
        (bound,), loop = sockets, asyncio.get_running_loop()
        create = loop.create_server if self.listener.unix_socket is None else loop.create_unix_server
        tls: JsonObject = {}
        if self.tls is not None:  # uvicorn's own startup has no limit for handshakes
            tls = {"ssl": self.tls, "ssl_handshake_timeout": self.limits.head_seconds}
        make_protocol = partial(LimitedProtocol, self.tracker, self.config, self.server_state)
        self.servers = [await create(make_protocol, sock=bound, backlog=self.config.backlog, **tls)]
        for work in (self.tracker.sweep(), self._watch_certificate(), _notify_watchdog()):
            self.start_task(work)
        address: JsonObject = {"unix_socket": str(self.listener.unix_socket)}
        if self.listener.unix_socket is None:
            self.port = bound.getsockname()[1]
            address = {"host": self.listener.host, "port": self.port, "tls": self.tls is not None}
        log.info("listening", extra=address)
        self.started = True
        self.on_ready()
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
        self.tls.load_cert_chain(certificate, key)

    async def _watch_certificate(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            self.certificate.refresh(at_once=True)


def notify_systemd(state: str) -> None:
    """Notify systemd (of a service of ``Type=notify``) that we are ready, alive or stopping, if it has started us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.connect(address)
            channel.send(state.encode())
        except OSError:  # systemd is gone: nothing to do
            return


def watchdog_seconds() -> float | None:
    """Return the interval of the watchdog notifications: half of its timeout; None without a watchdog."""
    microseconds, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not microseconds.isdecimal() or (pid is not None and pid != str(os.getpid())):
        return None
    return int(microseconds) / 2e6


async def _notify_watchdog() -> None:
    """Notify systemd's watchdog, from the event loop itself: while that hangs, no request is served."""
    interval = watchdog_seconds()
    while interval is not None:
        notify_systemd("WATCHDOG=1")
        await asyncio.sleep(interval)


async def serve_page(
    routes: Iterable[Route],
    context: object,
    listener: Listener,
    on_ready: Callable[[str], object],
    tokens: Tokens | None = None,
) -> None:
    """Serve a page and the routes behind it until cancelled; ``on_ready`` gets its address."""
    router = Router(routes, AccessControl(Tokens() if tokens is None else tokens, rate=1_000.0))
    router.context = context
    server = Server(router, listener, Limits(max_connections=500))
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    server.on_ready = lambda: on_ready(f"http://{host}:{server.port}/")
    with listener.bind() as bound:
        try:
            await server.serve([bound])
        except asyncio.CancelledError:
            await server.shutdown()
            raise


async def run(
    application: Application,
    listener: Listener,
    limits: Limits,
    bound: socket.socket,
    *,
    on_ready: Callable[[Server], object] = lambda server: None,
) -> None:
    """Serve on a bound socket until the server's ``should_exit`` is set (SIGTERM and SIGINT set it)."""
    server = Server(application, listener, _fit_file_limit(limits))
    server.on_ready = lambda: on_ready(server)
    application.metrics.tracker = server.tracker
    async with application:
        await server.serve([bound])


def serve(
    open_service: Callable[[], Service], tokens: Tokens, *, listener: Listener, limits: Limits, **options: Any
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what has begun, snapshot, and return.

    The address is bound before the service is opened, so that a start that fails makes no journal.

    Args:
        open_service: gives the service.
        tokens: with their roles.
        listener: where to listen.
        limits: of connections.
        options: see `Application`.
    """
    for name in (signal.SIGHUP, signal.SIGUSR1):
        signal.signal(name, lambda *_: None)  # until the server is ready there is nothing to do
    check_exposure(listener, tokens)
    listener.tls_context()
    with listener.bind() as bound:
        logs = log_to(2)
        try:
            service = open_service()
            any_host = listener.unix_socket is not None  # only this machine's users get there
            application = Application(lambda: service, tokens, any_host=any_host, **options)
            application.metrics.logs = logs
            # the commit thread must get its turn soon after the disk is done
            sys.setswitchinterval(0.001)
            # thousands of decisions are kept: a collection after every 700 new objects would take too much time
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 100)
            # uvicorn raises the signal again that has ended it: that is no failure
            for name in (signal.SIGTERM, signal.SIGINT):
                signal.signal(name, lambda *_: None)
            with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
                on_ready = partial(_handle_signals, application)
                runner.run(run(application, listener, limits, bound, on_ready=on_ready))
        finally:
            logs.flush()


def _handle_signals(application: Application, server: Server) -> None:
    """On SIGHUP read tokens and certificate again at once; on SIGUSR1 take a snapshot."""

    def reload() -> None:
        application.tokens.watched.reload()
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
