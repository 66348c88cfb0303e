"""Service: requests become events of a journal, and events update the model. (http/ puts it behind a port)

    a batch: look up ids ─▶ decide with the model at hand, gather outcomes ─▶ append (durable) ─▶ project ─▶ answer

Nothing moves before the commit: a batch that cannot be written has not happened. While the journal is down, calls that
have nothing to write (a repeated request, the model file) are answered, the others are refused. Where many
processes share a journal, a batch begins with projecting what the others have written.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from superarm._types import JsonObject
from superarm.data.columns import Columns
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.backends import create_journal, is_postgres, journal_exists, journal_name
from superarm.journal.changes import AnyOperatorRequest, Erase
from superarm.journal.create import (
    JournalOptions,
    check_same_options,
    import_user_learner,
    new_journal,
)
from superarm.journal.errors import (
    JournalDamaged,
    JournalMismatch,
    JournalReplaced,
    JournalUnavailable,
    OtherEventsFirst,
)
from superarm.journal.projector import Projector
from superarm.journal.snapshots import learner_from_bytes, model_bytes
from superarm.journal.sqlite import SqliteStore
from superarm.journal.store import JournalStore
from superarm.parameters import check_bool, check_int
from superarm.service.batch import Batch, ColumnWarnings
from superarm.service.commit_queue import Call, CommitQueue
from superarm.service.follower import JournalFollower
from superarm.service.messages import ChangeResponse, DecisionResponse, OutcomeRequest, OutcomeResponse
from superarm.service.requests import DecisionRequest
from superarm.service.settings import OWNER, Settings
from superarm.service.upkeep import Upkeep

T = TypeVar("T")

log = logging.getLogger("superarm.service")

RETRY_SECONDS = 1.0
HUNG_SECONDS = 10.0  # a batch that has been under way for longer than this is stuck
READERS = 4  # threads for views


class Service:
    """One model and its journal. Use `Service.open`.

    ``commit`` and ``call`` belong to one thread at a time; `start` lets batches run in a thread of their own, and
    everything that is awaited needs it.
    """

    def __init__(self, follower: JournalFollower) -> None:
        self.follower, self.settings = follower, follower.settings
        self.store, self.meta = follower.store, follower.store.meta()
        self.outage: JournalUnavailable | None = None
        self.created = False
        self.restart_seconds = 0.0
        self._retry_at = 0.0
        self._readable_in_outage = not self.store.shared
        self.column_warnings = ColumnWarnings()
        self.upkeep = Upkeep(self)
        self.queue: CommitQueue | None = None
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="superarm-read")

    @classmethod
    def open(
        cls,
        journal: str | Path,
        *,
        learner: str | None = None,
        labels: Sequence[str] | None = None,
        n_features: int | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
        seed: int | None = None,
        columns: Columns | JsonObject | str | Path | None = None,
        group: str | None = None,
        model: str | Path | None = None,
        max_journal_mb: int | None = None,
        create: bool = True,
        **settings: Any,
    ) -> Service:
        """Return the service on a journal; a new journal is given its learner, an old one must agree.

        Args:
            journal: a file, or ``postgresql://user@host/name`` without a password.
            learner: ``name:key=value,...`` as on the command line; ``set-logit`` by default.
            labels: their names, needed for a new journal.
            n_features: the length of a row; left out, the first row fixes it (and may have names).
            set_size: how many labels to show.
            coverage: show as few as are needed to have the right one among them so often.
            seed: of the learner.
            columns: what the columns of rows with names are: a file of columns, a model file, or `superarm.Columns`.
                Left out, the kind of each value is guessed from itself.
            group: a column of rows with names, or a name in the context: the coverage is also counted for each of
                its values.
            model: a model file to start a new journal with, instead of all the above.
            max_journal_mb: a limit for the size of the journal, if it is a file.
            create: make a journal if there is none; False refuses.
            settings: see `superarm.service.settings.Settings`.
        """
        began, run_settings = time.perf_counter(), Settings.parse(**settings)
        options = JournalOptions.parse(
            learner=learner,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            coverage=coverage,
            seed=seed,
            columns=columns,
            group=group,
        )
        check_bool("create", OWNER, create)
        if max_journal_mb is not None:
            check_int("max_journal_mb", OWNER, max_journal_mb, 1)
        if max_journal_mb is not None and is_postgres(journal):
            wanted = "left out: the size of a database is limited by the database"
            raise InvalidInput.must("max_journal_mb", OWNER, wanted, max_journal_mb)
        created = create and _create_if_missing(journal, options, run_settings, model)
        if not (created or journal_exists(journal)):
            raise JournalMismatch(f"no such journal: {journal_name(journal)}")
        store, outage = _open_store(journal, run_settings, max_journal_mb)
        try:
            check_same_options(store.name, store.meta(), options)
            import_user_learner(store.meta(), options.learner)
            service = cls(JournalFollower(store, run_settings))
        except BaseException:  # a start that fails holds nothing
            store.close()
            raise
        for warning in store.warnings:
            log.warning(f"journal without a mark: {warning}", extra={"reason": warning})
        service.created, service.outage = created, outage
        service.restart_seconds = time.perf_counter() - began
        return service

    @property
    def projector(self) -> Projector:
        """The model that decides, and its totals."""
        return self.follower.projector

    # ------------------------------------------------------------ batches

    def commit(self, calls: list[Call]) -> list[Call]:
        """Make calls; return them with their results when all that they have written is durable and projected.

        A call that failed with the journal may be durable all the same: where the answer to a commit was lost, or
        projecting it has failed. Sent again, when the journal is up, it is answered as what is there: a decision or
        an outcome by its id; a change has no effect then. (A decision without an id is made anew.)
        """
        self._recover()
        if self.outage is not None and not (self._readable_in_outage and self.projector.is_intact):
            raise self.outage
        waiting = calls
        try:
            while waiting:
                waiting = self._commit_once(waiting)
        except Exception as error:
            failure = error
            if isinstance(error, JournalUnavailable | JournalMismatch | JournalDamaged):
                failure = self.fail(error)
            for call in waiting:  # the others are durable
                call.error = failure
        return calls

    def call(self, request: Any) -> Any:
        """Answer one request in a batch of its own."""
        [call] = self.commit([Call(request)])
        if call.error is not None:
            raise call.error
        return call.result

    def _commit_once(self, calls: list[Call]) -> list[Call]:
        """Commit once; return the calls that must be made again."""
        batch = Batch(self, calls)
        done, retry = batch.make_calls()
        events = batch.staged_events()
        if events:
            try:
                duplicates = {event.id for event in self.store.append(events, only_after=batch.only_after())}
            except OtherEventsFirst:  # of another process: these calls are made again, and find what it wrote
                return retry + done
            self.follower.apply(events)
            retry += [call for call in done if call.id in duplicates]
            done = [call for call in done if call.id not in duplicates]
        for call in done:
            if callable(call.result):
                try:
                    call.result = call.result()
                except Exception as error:  # what the batch itself wrote is durable
                    call.error = error
                    if isinstance(error, JournalUnavailable | JournalMismatch) and error is not self.outage:
                        call.error = self.fail(error)
        return retry

    def fail(self, error: SuperarmError, *, readable: bool | None = None) -> JournalUnavailable:
        """Begin an outage, or go on with it: the journal cannot be written, and is tried again in a moment."""
        if self.outage is None:
            log.error(f"journal down: {error}", extra={"reason": str(error)})
        self.outage = error if isinstance(error, JournalUnavailable) else JournalUnavailable(str(error))
        self._retry_at = time.monotonic() + RETRY_SECONDS
        # a database may be gone altogether
        self._readable_in_outage = not self.store.shared if readable is None else readable
        return self.outage

    def check_readable(self) -> None:
        """Raise why the journal cannot be read, if it is known that its file is another one."""
        if isinstance(self.outage, JournalReplaced):
            raise self.outage.with_traceback(None)

    def check_writable(self) -> None:
        """Raise why the journal cannot be written, if it is known that it cannot be."""
        if self.outage is not None:
            raise self.outage.with_traceback(None)

    def _recover(self) -> None:
        """End an outage if the journal can be written again; it is tried now and then."""
        if self.outage is None or time.monotonic() < self._retry_at:
            return
        readable = not self.store.shared
        try:
            if self.store.shared:  # what cannot be written may still be read
                self.follower.recover()
                readable = True
                self.store.reopen()
            else:
                self.store.reopen()
                self.follower.recover()
        except SuperarmError as error:
            self.fail(error, readable=readable)
            return
        self.outage = None
        log.info("journal up")

    # ------------------------------------------------------------ what is awaited

    async def start(self) -> None:
        self.queue = CommitQueue(self.commit)
        self.upkeep.start()

    async def stop(self) -> None:
        """Finish what has begun, keep a snapshot, and close the journal."""
        await self.upkeep.stop()
        if self.queue is not None:
            await self.queue.close()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Keep a snapshot, if it can be written, and close the journal."""
        try:
            if self.outage is None:
                self.store.check()
                self.follower.snapshot()
        except SuperarmError as error:
            log.error(f"the last snapshot was not kept: {error}", extra={"reason": str(error)})
        finally:
            self._readers.shutdown(wait=False, cancel_futures=True)
            self.store.close()

    def submit(self, request: Any) -> asyncio.Future[Any]:
        """Answer a request in the next batch; see `Call`."""
        assert self.queue is not None
        return self.queue.submit(request)

    def decide(self, request: DecisionRequest) -> asyncio.Future[DecisionResponse]:
        """Return a set to show, when it is on the disk."""
        return self.submit(request)

    def outcome(self, request: OutcomeRequest) -> asyncio.Future[OutcomeResponse]:
        """Return the recorded outcome, when it is on the disk."""
        return self.submit(request)

    async def read(self, view: Callable[..., T], *arguments: Any) -> T:
        """Return one of the views (views.py) of this service, without a batch, and while the loop goes on."""
        work = asyncio.get_running_loop().run_in_executor(self._readers, view, self, *arguments)
        try:  # a database or a disk that hangs may block a thread, and no caller
            return await asyncio.wait_for(work, self.settings.patience)
        except TimeoutError as error:
            silent = f"journal {self.store.name} has not answered for {self.settings.patience:g} s"
            raise JournalUnavailable(silent) from error

    async def catch_up(self) -> None:
        """Project what other processes have written, as every batch does; do nothing in an outage."""
        if self.store.shared and self.outage is None:
            await self.submit(lambda: None)

    async def change(self, request: AnyOperatorRequest) -> ChangeResponse:
        """Make a change by an operator: an event, which has taken effect when this returns."""
        seq = await self.submit(request)
        projector = self.projector
        settings, refused = projector.totals.settings, projector.totals.refusals.get(seq)
        if refused is not None:
            raise InvalidInput(refused.reason, field=refused.field)
        erases = isinstance(request, Erase)
        return ChangeResponse(
            what=request.what,
            seq=seq or projector.seq,
            labels=list(projector.labels),
            disabled=sorted(settings.disabled),
            frozen=settings.frozen,
            erased=await self.read(lambda service: service.follower.n_erased(seq)) if erases else 0,
            finished=not erases or self.follower.erasure_problem is None,
        )

    # ------------------------------------------------------------ for people on call

    async def model_file(self) -> bytes:
        """Return the model as it is now, as `Learner.save` writes it."""
        learner = await self.submit(lambda: copy.deepcopy(self.projector.learner))
        return await asyncio.to_thread(model_bytes, learner)

    @property
    def batch_age(self) -> float:
        """The age of the batch that is under way; 0 if there is none."""
        return 0.0 if self.queue is None else self.queue.batch_age

    @property
    def ready(self) -> bool:
        """Whether requests that write should be sent here."""
        return self.outage is None and self.batch_age <= HUNG_SECONDS

    def problems(self, *, for_strangers: bool = False) -> tuple[str, ...]:
        """Return the problems, worst first, a sentence each; of the model's, strangers learn only that there are."""
        follower, projector, age = self.follower, self.projector, self.batch_age
        stats, promise = projector.totals.stats, projector.learner.coverage
        sentences = [] if self.outage is None else [str(self.outage)]
        if age > HUNG_SECONDS:
            sentences.append(f"a commit has been waiting for the disk for {age:.0f} s")
        if follower.erasure_problem is not None:
            sentences.append(follower.erasure_problem)
        of_model = [] if promise is None or promise.trouble is None else [promise.trouble]
        if stats.falling:
            of_model.append(
                f"the hit rate has fallen: {stats.recent_rate:.3f} lately, {stats.long_run_rate:.3f} in the long run"
            )
        sentences += of_model[:1] and ["the model: see GET /v1/stats"] if for_strangers else of_model
        if follower.broken_snapshots:
            broken = ", ".join(map(str, follower.broken_snapshots))
            sentences.append(f"snapshots are damaged: after events {broken}")
        if self.upkeep.error is not None:
            sentences.append(f"upkeep fails: {self.upkeep.error}")
        clock_problems = [] if follower.clock_problem is None else [follower.clock_problem]
        return (*sentences, *self.store.damage, *clock_problems, *self.store.warnings)


def _create_if_missing(
    journal: str | Path, options: JournalOptions, settings: Settings, model: str | Path | None
) -> bool:
    """Make a journal, with a model file or a new learner, if there is none; return whether this process made it."""
    if journal_exists(journal):
        return False
    meta, first = new_journal(options, model)
    settings.check(learner_from_bytes(first.parts["model"]))  # before anything is made
    created = create_journal(journal, meta, first)
    if created:  # and no other process was faster
        log.warning("new journal created", extra={"journal": journal_name(journal)})
    return created


def _open_store(
    journal: str | Path, settings: Settings, max_mb: int | None
) -> tuple[JournalStore, JournalUnavailable | None]:
    """Open a journal; also return why it cannot be written (say, a read-only disk) if it can only be read."""
    if is_postgres(journal):
        from superarm.journal.postgres import PostgresStore, new_application_name

        database = PostgresStore(
            str(journal), statement_timeout=settings.patience, application=new_application_name()
        )
        try:
            database.check()
        except (JournalUnavailable, JournalMismatch) as error:  # say, a role that may only read
            return database, JournalUnavailable(str(error))
        return database, None
    try:
        return SqliteStore(journal, max_mb=max_mb), None
    except JournalUnavailable as error:
        return SqliteStore(journal, read_only=True, max_mb=max_mb), error
