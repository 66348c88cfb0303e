"""The model of a service that shares its journal with others: it decides with the newest published model.

Beside the turns two threads: one listens for new models and says that this process is alive, and one tries to get
the lease, and learns while it has it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import monotonic, thread_time
from typing import Any

from superarm._types import JsonObject
from superarm.errors import SuperarmError
from superarm.journal.clock import NOW, DatabaseClock
from superarm.journal.erase import ERASED
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.journal.events import DECISION, OUTCOME, Event, dumps
from superarm.journal.lease import Lease, LeaseLost, try_acquire
from superarm.journal.postgres import PostgresStore, send_heartbeat
from superarm.journal.postgres_address import database_errors, psycopg
from superarm.journal.postgres_schema import BLOCK, check_database
from superarm.journal.projector import Projector
from superarm.journal.records import DecisionRecord, Records
from superarm.journal.snapshots import learner_from, take_snapshot
from superarm.journal.store import READ_AT_ONCE, Snapshot
from superarm.journal.totals import Totals
from superarm.learners import Learner
from superarm.service.learning import Learning
from superarm.service.model import ServedModel
from superarm.service.settings import UPKEEP_EVERY, Settings

log = logging.getLogger("superarm.service")

RETRY_SECONDS = 0.5
FRESH_SECONDS = 0.2  # totals for views may be this old
READERS = 4  # threads for views
BYTES_PER_SECOND = 50e6  # of models, on their way to all processes


@dataclass(slots=True)
class Published:
    """A published model and its totals."""

    seq: int
    learner: Learner
    totals: Totals
    extra: JsonObject  # reports, erased, last_erasure, clock_problem

    @classmethod
    def of(cls, snapshot: Snapshot) -> Published:
        learner = learner_from(snapshot.parts["model"])
        totals = Totals.of([str(label) for label in learner.labels or ()], snapshot.totals)
        return cls(snapshot.seq, learner, totals, snapshot.totals)


class SharedLearning(Learning):
    """Of a journal that many share, while the lease lasts: what was projected is published."""

    store: PostgresStore

    def __init__(self, lease: Lease, store: PostgresStore, clock: DatabaseClock, settings: Settings) -> None:
        self.lease = lease
        super().__init__(store, settings, clock)
        self._upkeep_at = self._published_at = self._cost = 0.0
        self._publish()

    def tick(self, _: object = None) -> None:
        self.lease.renew()

    def _newest(self) -> tuple[Projector, list[int]]:
        """From what was published, if it is whole; else from a snapshot: the events after it give the same bits."""
        published = self.store.published()
        if published is not None:
            try:
                return Projector(self.store, published, self.settings.shadows), []
            except Exception as error:  # it is not kept as carefully as the rest
                log.warning("the published model cannot be used", extra={"reason": str(error)})
        return super()._newest()

    def turn(self) -> float:
        """Take what has come; how many seconds to wait before the next turn."""
        self.lease.renew()
        events = list(islice(self.store.events(self.projector.seq), READ_AT_ONCE))
        if events:
            self.projector.project(events)
            self.lease.renew()
            self._publish()
        if monotonic() >= self._upkeep_at:
            self._upkeep_at = monotonic() + UPKEEP_EVERY
            while self.upkeep():
                self.lease.renew()
            if self.snapshot_is_due():
                self.snapshot()
        if len(events) == READ_AT_ONCE:
            return 0.0
        pause = max(self.settings.publish_every, 5.0 * self._cost)
        return max(0.0, min(self._published_at + pause - monotonic(), self.lease.seconds / 4.0))

    def _publish(self) -> None:
        began, projector = thread_time(), self.projector
        snapshot = take_snapshot(projector, self.clock())
        erased = {str(seq): count for seq, count in list(self.eraser.counts.items())[-20:]}
        extra = {"erased": erased, "last_erasure": self.store.progress(ERASED)}
        extra |= {"reports": projector.reports(), "clock_problem": self.clock_problem}
        self.store.publish(snapshot, dumps(snapshot.totals | extra))
        # what a publication costs: the processor here, and the bytes that all processes fetch
        self._cost = thread_time() - began + sum(map(len, snapshot.parts.values())) / BYTES_PER_SECOND
        self._published_at = monotonic()


class SharedModel(ServedModel):
    """The model of one process among many."""

    shared = True
    store: PostgresStore
    clock: DatabaseClock
    processes: list[JsonObject]

    def __init__(self, store: PostgresStore, settings: Settings) -> None:
        self.store, self.address, self.settings = store, store.address, settings
        self.process = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.records = Records(store)
        self.learning: SharedLearning | None = None
        self.learner_error: str | None = None
        self.processes = []
        self._rounds: Iterator[int] = iter(())
        self._next_model: Published | None = None
        self._fetch_lock = threading.Lock()  # `_newest_version`: the event and the time of the newest model
        self._refreshed_at = 0.0
        self._lease_renewed_at: float | None = None
        self._stop = threading.Event()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="superarm-read")
        with database_errors(self.address), self.address.connect("superarm clock") as connection:
            self.clock = DatabaseClock(connection)
        first = self._initial_snapshot()
        self._serving, self._newest_version = Published.of(first), (first.seq, first.time)
        settings.check(self._serving.learner)
        self.refresh()
        jobs = [self._listen] + [self._learn] * settings.may_learn
        self._threads = [
            threading.Thread(target=job, name=job.__name__.strip("_"), daemon=True) for job in jobs
        ]
        for thread in self._threads:
            thread.start()

    # ------------------------------------------------------------ the model that decides

    def _initial_snapshot(self) -> Snapshot:
        published = self.store.published()
        if published is not None:
            return published
        projector, _ = Projector.newest(self.store)  # no process has learnt since the database was started
        projector.catch_up()
        snapshot = take_snapshot(projector, self.clock())
        return snapshot._replace(totals=snapshot.totals | {"reports": projector.reports()})

    def _fetch_published(self) -> None:
        """Have a newer model for the next turn, if there is one."""
        snapshot = self.store.published(*self._newest_version)
        if snapshot is not None:
            with self._fetch_lock:
                if (snapshot.seq, snapshot.time) > self._newest_version:  # no other thread was faster
                    self._next_model = Published.of(snapshot)
                    self._newest_version = snapshot.seq, snapshot.time

    def serving(self) -> Published:
        newer, self._next_model = self._next_model, None
        if newer is not None:
            if newer.extra.get("last_erasure") != self._serving.extra.get("last_erasure"):
                self.records.clear()  # what is in memory may be what was erased
            self._serving = newer
        return self._serving

    @property
    def seq(self) -> int:
        return (self._next_model or self._serving).seq

    def apply(self, events: Sequence[Event]) -> None:
        """Put durable events into the records; the process that learns projects them."""
        for event in events:
            if event.kind == DECISION:
                self.records.put(DecisionRecord(event))
            elif event.kind == OUTCOME:
                record = self.records.get(event.id)
                if record is not None:
                    record.outcome = event
        self.records.trim()

    def load(self) -> None:
        self.records.clear()  # what a failed turn may have written is looked up

    def erased(self, seq: int) -> tuple[int, bool]:
        return int(self.serving().extra.get("erased", {}).get(str(seq), 0)), True

    def next_round(self) -> int:
        round_ = next(self._rounds, None)
        if round_ is None:
            start = self.store.next_rounds()
            self._rounds = iter(range(start, start + BLOCK))
            round_ = next(self._rounds)
        return round_

    # ------------------------------------------------------------ for views

    async def read(self, view: Callable[[], Any]) -> Any:
        """The result of a view, or JournalUnavailable: a database that hangs may block a thread, and no caller."""
        try:
            work = asyncio.get_running_loop().run_in_executor(self._readers, view)
            return await asyncio.wait_for(work, self.settings.patience)
        except TimeoutError as error:
            silent = f"the database {self.address} has not answered for {self.settings.patience:g} s"
            raise JournalUnavailable(silent) from error

    def refresh(self) -> None:
        """Totals as the learner published them last, and who else serves."""
        if monotonic() - self._refreshed_at < FRESH_SECONDS:
            return
        self._fetch_published()
        self.processes = self.store.processes()
        self._refreshed_at = monotonic()

    def reports(self) -> list[JsonObject]:
        return list(self.serving().extra["reports"])

    @property
    def learner_age(self) -> float | None:
        """Seconds since the lease was renewed; None if no process has ever learnt."""
        return None if self._lease_renewed_at is None else monotonic() - self._lease_renewed_at

    def trouble(self) -> tuple[str, ...]:
        problem = self._serving.extra.get("clock_problem")
        sentences = [] if problem is None else [str(problem)]
        age = self.learner_age
        if age is not None and age > 2.0 * self.settings.lease + 1.0:
            sentences.append(f"no process has learnt for {age:.0f} s")
        if self.learner_error is not None:
            sentences.append(f"learning fails: {self.learner_error}")
        return tuple(sentences)

    # ------------------------------------------------------------ threads

    def _listen(self) -> None:
        """Listen for new models, and show that this process is alive; until the end, whatever fails."""
        while not self._stop.is_set():
            try:
                with self.address.connect("superarm listens") as connection:
                    connection.execute("LISTEN superarm")
                    while not self._stop.is_set():
                        self.clock.update(connection)
                        age = connection.execute(f"SELECT {NOW} - beat FROM lease").fetchone()
                        self._lease_renewed_at = None if age is None else monotonic() - float(age[0])
                        self._fetch_published()
                        with suppress(psycopg.errors.InsufficientPrivilege):  # a role that may only read
                            send_heartbeat(connection, self.process, self.clock(), self.seq)
                        until = monotonic() + 1.0
                        while (left := until - monotonic()) > 0.0 and not self._stop.is_set():
                            if list(connection.notifies(timeout=min(left, 0.25), stop_after=1)):
                                self._fetch_published()
            except (psycopg.Error, SuperarmError):
                self._stop.wait(RETRY_SECONDS)
            except Exception:  # whatever it is: listen again
                log.exception("listening failed")
                self._stop.wait(RETRY_SECONDS)

    def _learn(self) -> None:
        """Try to get the lease again and again; learn while it lasts."""
        was_reported = False
        while not self._stop.is_set():
            try:
                with self.address.connect("superarm learns", patience=60.0) as connection:
                    lease = None
                    while lease is None and not self._stop.is_set():
                        check_database(connection, self.address)
                        was_reported = False
                        lease = try_acquire(connection, self.process, self.settings.lease)
                        if lease is None:
                            self._stop.wait(self.settings.lease / 4.0)
                    if lease is not None:
                        self._learn_with(lease)
            except LeaseLost:
                log.warning("the lease was lost: another process learns", extra={"process": self.process})
            except (psycopg.Error, JournalUnavailable, JournalMismatch) as error:
                if not was_reported and not self._stop.is_set():  # once, until it is back
                    log.warning("learning failed", extra={"reason": str(error).splitlines()[0]})
                was_reported = True
            except Exception as error:  # a bug must not end learning for ever
                self.learner_error = f"{type(error).__name__}: {error}"
                log.exception("learning failed")
            finally:
                self.learning = None
            self._stop.wait(min(RETRY_SECONDS, self.settings.lease / 4.0))

    def _learn_with(self, lease: Lease) -> None:
        store = PostgresStore(self.address)
        try:
            self.learning = SharedLearning(lease, store, self.clock, self.settings)
            fields = {"process": self.process, "term": lease.term, "event_no": self.learning.projector.seq}
            log.info("learning", extra=fields)
            self.learner_error = None
            while not self._stop.is_set():
                self._stop.wait(self.learning.turn())
            lease.release()
        finally:
            store.close()

    def close(self) -> None:
        """Release the lease, and leave."""
        self._stop.set()
        for thread in self._threads:
            thread.join(self.settings.patience)
        self._readers.shutdown(wait=False, cancel_futures=True)
        with suppress(SuperarmError):
            self.store.remove_process(self.process)
