"""Forks a service for each line on standard input; see service_kit.ForkServer."""

import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import Any


def child(order: dict[str, Any], log: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # a group of its own
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    from superarm.http.access import Tokens
    from superarm.http.connection_limits import Limits
    from superarm.http.listener import Listener
    from superarm.service import Service
    from superarm.service.serve import serve

    journal, port = order.pop("journal"), order.pop("port")
    open_service = partial(Service.open, journal, **order)
    serve(open_service, Tokens(), listener=Listener(port=port), limits=Limits(), rate_limit=1e9)


def main() -> None:
    import superarm.service.serve  # noqa: F401  imported once, here
    from superarm import SetLogit  # noqa: F401

    children = []
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                child(json.loads(line), sys.argv[1])
            finally:
                os._exit(1)
        children.append(pid)
        print(json.dumps({"pid": pid}), flush=True)
    for pid in children:  # our own, by their ids
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    main()
