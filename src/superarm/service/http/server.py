"""Run the service: uvicorn, structured logs, and rules about who may reach it."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from superarm.errors import InvalidInput, MissingExtra
from superarm.service.core.session import Session

__all__ = ["check_exposure", "serve"]

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


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


def check_exposure(host: str, token: str | None) -> None:
    """Anything but the loopback address needs a token."""
    if token is not None and (
        len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise InvalidInput.must(
            "token", "superarm serve", "at least 16 visible ASCII characters", "a weaker one"
        )
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and token is None:
        wanted = "given (or SUPERARM_TOKEN set) to listen where others can reach it"
        raise InvalidInput.must("--token-file", "superarm serve", wanted, f"none, with --host {host}")


def serve(
    open_session: Callable[[], Session],
    *,
    host: str = "127.0.0.1",
    port: int = 8800,
    token: str | None = None,
    max_body: int = 1 << 20,
    rate: float = 10_000.0,
    log_requests: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT; then finish what has begun, snapshot, and return."""
    check_exposure(host, token)
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("the service needs uvicorn: pip install 'superarm[serve]'") from error
    from superarm.service.http.app import make_app

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    # the commit thread must get its turn soon after the disk is done
    sys.setswitchinterval(0.001)
    app = make_app(open_session, token=token, max_body=max_body, rate=rate)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=log_requests,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=30,
        lifespan="on",
        ws="none",
    )
    uvicorn.Server(config).run()
