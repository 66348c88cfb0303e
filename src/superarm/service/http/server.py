"""Run the service: a socket, TLS, signals, structured logs, and rules about who may reach it."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import ssl
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput
from superarm.service.core.session import Session
from superarm.service.http.admission import Admission, Tokens
from superarm.service.http.app import App
from superarm.service.http.wire import Answer, Limits, Request, Wire

__all__ = ["Listener", "check_exposure", "run", "serve"]

log = logging.getLogger("superarm.service")
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8800
    unix_socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def context(self) -> ssl.SSLContext | None:
        """For TLS, if it was asked for."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise InvalidInput.must("--tls-cert", "superarm serve", "given together with --tls-key", None)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            wanted = "PEM files of a certificate and its key"
            raise InvalidInput.must("--tls-cert", "superarm serve", wanted, str(error)) from error
        return context


def check_exposure(listener: Listener, tokens: Tokens) -> None:
    """Anything but the loopback address or a socket in the file system needs a token."""
    if listener.unix_socket is not None or tokens:
        return
    try:
        local = ip_address(listener.host).is_loopback
    except ValueError:
        local = listener.host == "localhost"
    if not local:
        wanted = "given (or SUPERARM_TOKEN set) to listen where others can reach it"
        raise InvalidInput.must(
            "--token-file", "superarm serve", wanted, f"none, with --host {listener.host}"
        )


def serve(
    open_session: Callable[[], Session],
    *,
    listener: Listener | None = None,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    rate: float = 10_000.0,
    log_requests: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what has begun, snapshot, and return."""
    listener, tokens = listener or Listener(), tokens or Tokens()
    check_exposure(listener, tokens)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    # the commit thread must get its turn soon after the disk is done
    sys.setswitchinterval(0.001)
    # thousands of kept decisions are no garbage: look for some less often than after every 700 objects
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop.set)
        await run(
            open_session,
            listener,
            tokens,
            limits or Limits(),
            rate=rate,
            stop=stop,
            log_requests=log_requests,
        )

    _runner()(main())


def _runner() -> Callable[[Any], None]:
    try:
        import uvloop
    except ImportError:  # it is not made for every system; asyncio's own loop will do
        return asyncio.run
    return uvloop.run


async def run(
    open_session: Callable[[], Session],
    listener: Listener,
    tokens: Tokens,
    limits: Limits,
    *,
    rate: float,
    stop: asyncio.Event,
    log_requests: bool = False,
    on_ready: Callable[[Wire], object] = lambda wire: None,
) -> None:
    """Serve until ``stop`` is set."""
    tls = listener.context()
    app = App(open_session, Admission(tokens, rate, trusted=listener.unix_socket is not None))
    wire = Wire(app, limits, _log_request if log_requests else None)
    app.metrics.wire = wire
    await app.start()
    try:
        await _listen(wire, listener, tls)
        on_ready(wire)
        await stop.wait()
    finally:
        await wire.stop()
        await app.stop()


async def _listen(wire: Wire, listener: Listener, tls: ssl.SSLContext | None) -> None:
    path = listener.unix_socket
    if path is not None:
        if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
            raise InvalidInput.must("--unix-socket", "superarm serve", "a new path, or a socket", str(path))
        path.unlink(missing_ok=True)  # left over by a process that was killed
        before = os.umask(0o117)  # for this user and this group
        try:
            await wire.listen(unix_socket=str(path), tls=tls)
        finally:
            os.umask(before)
        log.info("listening", extra={"unix_socket": str(path)})
        return
    try:
        await wire.listen(listener.host, listener.port, tls=tls)
    except OSError as error:
        where = f"{listener.host}:{listener.port}"
        raise InvalidInput.must("--port", "superarm serve", f"free, on {where}", str(error)) from error
    log.info("listening", extra={"host": listener.host, "port": wire.port, "tls": tls is not None})


def _log_request(request: Request, answer: Answer) -> None:
    told = {
        "request": request.id,
        "method": request.method,
        "path": request.path,
        "status": answer.status,
        "ms": round(1e3 * (time.monotonic() - request.began), 2) if request.began else None,
        "address": request.address,
    }
    log.info("request", extra=told)
