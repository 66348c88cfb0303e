"""Three processes under load, and what can happen to them: used by the tests and by benchmarks/soak.py."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Any

from postgres_history import Load, check
from postgres_kit import Database
from service_kit import LABELS, D, Nursery, soon

__all__ = ["KINDS", "Cluster"]

KINDS = ("kill the learner", "kill a server", "pause the learner", "restart the database", "pause a server")
LEASE = 0.5


class Cluster:
    """Three serving processes on one database."""

    def __init__(self, nursery: Nursery, database: Database) -> None:
        from superarm.journal.postgres_address import Address

        self.nursery, self.database = nursery, database
        self.url = database.fresh()
        self.address = Address(self.url)
        self.options: dict[str, Any] = {"lease": LEASE, "patience": 2.0, "snapshot_every": 3_000}
        self.members: dict[int, int] = {}  # process id: port
        self.ports: list[int] = []
        self.take_overs: list[float] = []  # seconds until somebody else learnt
        new = {"labels": LABELS, "n_features": D, "set_size": 2}
        self.start(**new).wait(120.0)  # it may have to compile
        for _ in range(2):
            self.start()
        for web in self.webs:
            web.wait()

    def start(self, **more: Any) -> Any:
        pid, web = self.nursery.start(self.url, **self.options, **more)
        self.members[pid] = web.port
        self.ports.append(web.port)
        self.webs = [*getattr(self, "webs", ()), web]
        return web

    def lose(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.ports.remove(self.members.pop(pid))

    def learner(self) -> int:
        """The process id of the one that learns."""

        def found() -> int | None:
            with (
                suppress(Exception),
                self.database.connect(self.url.split("/")[3].split("?")[0]) as connection,
            ):
                row = connection.execute("SELECT process, term FROM superarm.lease").fetchone()
                pid = int(row[0].split("-")[-2]) if row and row[0] else 0
                return pid if pid in self.members else None
            return None

        return int(soon(found, 20.0))

    def learns_again(self, was: int) -> None:
        began = time.monotonic()
        soon(lambda: self.learner() != was, 20.0)
        self.take_overs.append(time.monotonic() - began)

    def happen(self, kind: str) -> None:
        """One accident, and the recovery from it."""
        learner = self.learner()
        other = next(pid for pid in self.members if pid != learner)
        if kind == "kill the learner":
            self.lose(learner)
            self.learns_again(learner)
            self.start().wait()
        elif kind == "kill a server":
            self.lose(other)
            self.start().wait()
        elif kind == "restart the database":
            self.database.kill()
            time.sleep(0.3)
            self.database.start()
        else:
            pid = learner if kind == "pause the learner" else other
            os.kill(pid, signal.SIGSTOP)
            try:
                if pid == learner:
                    self.learns_again(learner)
                time.sleep(2.0 * LEASE)
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
        soon(self._all_taken, 20.0)
        return {"accidents": len(kinds), **check(history, self.address)}

    def _all_taken(self) -> bool:
        with self.address.connect() as connection:
            sql = "SELECT h.seq = p.seq FROM head h, published p WHERE p.part = 'model'"
            row = connection.execute(sql).fetchone()
        return row is not None and bool(row[0])

    def close(self) -> None:
        for pid in list(self.members):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                self.lose(pid)
