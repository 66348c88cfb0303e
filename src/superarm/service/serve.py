"""Run a service on the server: `superarm serve` without its command line.

SIGTERM, SIGINT   finish what has begun, snapshot, end
SIGHUP            read the token file and the certificate again (whether they have changed is looked up
                  every second in any case)
SIGUSR1           a snapshot now
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from superarm._extras import require_extra
from superarm.http.access import AccessControl, Tokens
from superarm.http.connection_limits import Limits
from superarm.http.json_logging import log_to_stderr
from superarm.http.listener import Listener, check_exposure
from superarm.http.server import Server
from superarm.service.application import Application
from superarm.service.service import Service

require_extra("serve")
from uvicorn.loops.auto import auto_loop_factory  # noqa: E402

log = logging.getLogger("superarm.service")

SPARE_FILES = 100  # beside the connections


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
            log.error(f"snapshot failed: {error}", extra={"reason": str(error)})

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
