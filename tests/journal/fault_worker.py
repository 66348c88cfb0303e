"""A scripted workload on a disk that fails at its n-th operation, for every n until none fails.

Run by test_disk.py, in a process with failing_disk.c loaded before all others. Each case ends in a
recovery, or, where the process was ended, in a new start, and then in the same list of invariants:

    whatever was acknowledged is there, as it was acknowledged
    the events have one order, without holes, and each decision is answered once
    a replay, from the oldest snapshot and from the first event, gives the same bits as the running model
    verify finds nothing
    what was erased, and acknowledged as erased, is in no file
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from journal_kit import Driver, replayed

from superarm.journal.errors import JournalError
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest

HOWS = {"full": (1, 1), "full once": (1, 0), "broken": (2, 0), "stays broken": (2, 1), "short": (3, 0)}
ENDS = {"kill": (4, 0), "power": (5, 0)}
LABELS = [f"label-{i}" for i in range(6)]
SECRET = np.array([0.12345, 6.789, -3.25, 1.5, 77.125], np.float32)
disk: Any = ctypes.CDLL(os.environ["LD_PRELOAD"])
disk.disk_count.restype = ctypes.c_long
disk.disk_arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Work:
    """The workload, and what of it was acknowledged."""

    def __init__(self, folder: Path, tell: Callable[[dict[str, Any]], None]) -> None:
        self.path, self.tell, self.clock = folder / "events.db", tell, Clock()
        self.driver: Driver | None = None
        self.rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)

    def open(self) -> Driver:
        options: dict[str, Any] = {"timeout": 50.0, "default_outcome": False, "keep_snapshots": 1}
        opened = Driver.open(self.path, labels=LABELS, n_features=5, set_size=2, clock=self.clock, **options)
        if opened.outage is not None:
            opened.store.close()
            raise opened.outage
        return opened

    def decide(self, name: str, row: int) -> None:
        assert self.driver is not None
        x = SECRET if name == "secret" else self.rows[row]
        entry = self.driver.decide(DecisionRequest(x, name, context={"row": row}))
        self.tell({"decided": name, "labels": entry.labels})

    def answer(self, name: str, hit: bool) -> None:
        assert self.driver is not None
        self.driver.outcome(OutcomeRequest(name, hit=hit))
        self.tell({"answered": name, "hit": hit})

    def expire(self) -> None:
        assert self.driver is not None
        self.clock.now += 60.0
        self.driver.expire()

    def change(self, name: str, *given: Any) -> None:
        assert self.driver is not None
        getattr(self.driver, name)(*given)
        self.tell({"changed": name})

    def snapshot(self) -> None:
        assert self.driver is not None
        self.driver.snapshot()

    def erase(self) -> None:
        assert self.driver is not None
        if self.driver.find("secret") is not None:
            self.driver.erase(ids=["secret"])
            if self.driver.service.follower.erasure_problem is None:
                self.tell({"erased": "secret"})

    def close(self) -> None:
        assert self.driver is not None
        self.driver.close()
        self.driver = self.open()

    def steps(self) -> list[Callable[[], None]]:
        def do(method: Callable[..., None], *given: Any) -> Callable[[], None]:
            return lambda: method(*given)

        pairs = [do(self.decide, f"d{i}", i) for i in range(4)] + [do(self.answer, "d0", True)]
        return [
            do(self.decide, "secret", 0),
            do(self.answer, "secret", True),
            *pairs,
            do(self.change, "add_labels", ["new"]),
            self.snapshot,
            *(do(self.decide, f"e{i}", 10 + i) for i in range(3)),
            do(self.answer, "e1", False),
            self.expire,
            self.snapshot,
            do(self.answer, "e1", False),
            do(self.change, "disable_labels", ["label-5"]),
            do(self.decide, "f0", 20),
            self.erase,
            do(self.answer, "f0", True),
            self.close,
            do(self.answer, "d1", True),
        ]

    def run(self) -> None:
        """Each step once; after a failure the disk is whole again, and the driver recovers."""
        for step in [lambda: None, *self.steps()]:
            try:
                if self.driver is None:
                    self.driver = self.open()
                step()
            except JournalError:
                disk.disk_arm(0, 0, 0)
                if self.driver is not None and self.driver.store._lock is None:  # it was being closed
                    self.driver = None
                elif self.driver is not None and self.driver.outage is not None:
                    self.driver.recover()
            except ValueError:  # a decision that was refused cannot be answered
                pass


def check(folder: Path, acknowledged: list[dict[str, Any]], live: bytes | None) -> None:
    """The invariants."""
    found = verify(folder / "events.db")
    assert found.ok, found.problems
    opened = Driver.open(folder / "events.db", clock=Clock())
    try:
        journal = opened.store
        for fact in acknowledged:
            if "decided" in fact:
                entry = opened.find(fact["decided"])
                assert entry is not None, f"{fact} was acknowledged and is lost"
                assert entry.labels == fact["labels"]
            elif "answered" in fact:
                entry = opened.find(fact["answered"])
                assert entry is not None
                assert entry.outcome is not None, f"{fact} was acknowledged and is lost"
                assert entry.outcome["hit"] == fact["hit"]
            elif "erased" in fact:
                for file in folder.rglob("*"):
                    assert not file.is_file() or SECRET.tobytes() not in file.read_bytes(), file
            else:
                assert fact["changed"] in [change["what"] for change in opened.changes()]
        events = list(journal.events())
        assert [event.seq for event in events] == list(range(1, opened.seq + 1))
        closed = [event.id for event in events if event.kind == 2]
        assert len(closed) == len(set(closed)), "answered twice"
        for from_start in (False, True):
            done = replayed(opened, from_start=from_start)
            facts = (done.different, done.snapshots_near, done.snapshots_different)
            assert done.same or not done.compared, facts  # a journal may hold nothing to compare yet
        if live is not None:
            assert opened.model_file() == live, "the running model was not the journal's"
        assert not list(folder.glob(".*part*"))
    finally:
        opened.store.close()


class Nest:
    """A process of its own that forks one for each case: threads, once begun, survive no fork."""

    def __init__(self, folder: Path) -> None:
        self._orders, orders = os.pipe()
        results, self._results = os.pipe()
        if os.fork() == 0:
            os.close(orders)
            self._serve(folder)
        os.close(self._orders)
        self._out, self._in = os.fdopen(orders, "w"), os.fdopen(results)
        assert self._in.readline() == "ready\n"

    def run(self, n: int, how: str) -> tuple[list[dict[str, Any]], int]:
        """What was acknowledged, and how the process ended."""
        print(json.dumps([n, how]), file=self._out, flush=True)
        acknowledged, code = json.loads(self._in.readline())
        return acknowledged, code

    def _serve(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        work = Work(folder, lambda fact: None)
        work.driver = work.open()  # compile what the cases will need
        for step in work.steps()[:8]:
            step()
        work.driver.store.close()
        os.write(self._results, b"ready\n")
        for line in os.fdopen(self._orders):
            n, how = json.loads(line)
            answer = json.dumps(self._one(folder, n, how))
            os.write(self._results, answer.encode() + b"\n")
        os._exit(0)

    def _one(self, folder: Path, n: int, how: str) -> tuple[list[dict[str, Any]], int]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                disk.disk_arm(n, *ENDS[how])
                Work(folder, lambda fact: os.write(writing, json.dumps(fact).encode() + b"\n")).run()
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as lines:
            acknowledged = [json.loads(line) for line in lines]
        return acknowledged, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


nest: Nest | None = None


def case(folder: Path, n: int, how: str) -> bool:
    """One fault; whether there was one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    acknowledged: list[dict[str, Any]] = []
    if how in HOWS:
        work = Work(folder, acknowledged.append)
        disk.disk_arm(n, *HOWS[how])
        work.run()
        fired = bool(disk.disk_fired())
        disk.disk_arm(0, 0, 0)
        assert work.driver is not None
        live = work.driver.model_file()
        work.driver.store.close()
        check(folder, acknowledged, live)
        return fired
    assert nest is not None
    acknowledged, code = nest.run(n, how)
    for saved in folder.parent.glob(f"{folder.name}.saved.*"):
        saved.unlink()
    if (folder / "events.db").exists():
        check(folder, acknowledged, None)
    else:
        assert acknowledged == [], "acknowledged, and there is no journal"
    return code == 137


def main(folder: Path, hows: list[str], every: int) -> None:
    logging.disable(logging.CRITICAL)
    global nest
    nest = Nest(folder) if set(hows) & ENDS.keys() else None
    counts = {}
    for how in hows:
        n = 1
        while case(folder, n, how):
            n += every
        counts[how] = len(range(1, n, every))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(os.environ["DISK_FOLDER"]), sys.argv[2:], int(sys.argv[1]))
