"""Three processes under load, and what can happen to them: used by the tests and by benchmarks/soak.py."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Any

from postgres_history import Load, check
from postgres_kit import Database
from service_kit import LABELS, D, ForkServer, soon

__all__ = ["KINDS", "Cluster"]

KINDS = ("kill a process", "pause a process", "restart the database", "pause the database")
PAUSE = 1.0  # seconds


class Cluster:
    """Three serving processes on one database."""

    def __init__(self, fork_server: ForkServer, database: Database) -> None:
        from superarm.journal.postgres_connection import Address

        self.fork_server, self.database = fork_server, database
        self.url = database.fresh()
        self.address = Address(self.url)
        self.options: dict[str, Any] = {"patience": 2.0, "snapshot_every": 500}
        self.members: dict[int, int] = {}  # process id: port
        self.ports: list[int] = []
        new = {"labels": LABELS, "n_features": D, "set_size": 2}
        self.start(**new).wait(120.0)  # it may have to compile
        for _ in range(2):
            self.start()
        for web in self.webs:
            web.wait()

    def start(self, **more: Any) -> Any:
        pid, web = self.fork_server.start(self.url, **self.options, **more)
        self.members[pid] = web.port
        self.ports.append(web.port)
        self.webs = [*getattr(self, "webs", ()), web]
        return web

    def lose(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.ports.remove(self.members.pop(pid))

    def happen(self, kind: str) -> None:
        """One accident, and the recovery from it."""
        pid = next(iter(self.members))
        if kind == "kill a process":
            self.lose(pid)
            self.start().wait()
        elif kind == "restart the database":
            self.database.kill()
            time.sleep(0.3)
            self.database.start()
        elif kind == "pause the database":
            self.database.pause()
            try:
                time.sleep(PAUSE)
            finally:
                self.database.resume()
        else:
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(PAUSE)
            finally:
                os.kill(pid, signal.SIGCONT)

    def rounds(self, kinds: list[str], *, seed: int = 0, calm: float = 0.4) -> dict[str, Any]:
        """Let these happen under load, then check the whole history."""
        load = Load(self.ports, seed=seed)
        try:
            for kind in kinds:
                time.sleep(calm)
                self.happen(kind)
            time.sleep(calm)
        finally:
            history = load.stop()
        ports = [web.port for web in self.webs if web.port in self.ports]
        models = soon(lambda: self._same_models(ports), 20.0)
        return {"accidents": len(kinds), **check(history, self.url, models[0])}

    def _same_models(self, ports: list[int]) -> list[bytes] | None:
        """The model file that all processes have, each once; None while they differ."""
        webs = [web for web in self.webs if web.port in ports]
        answers = [web.get("/v1/model") for web in webs]
        if any(status != 200 for status, _ in answers) or len({data for _, data in answers}) > 1:
            return None
        return [answers[0][1]]

    def close(self) -> None:
        for pid in list(self.members):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                self.lose(pid)
