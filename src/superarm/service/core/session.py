"""A learner behind a journal. No HTTP in here.

Every call that changes something also writes its event into the transaction under way; nothing may
be acknowledged before `commit` has returned. The order of the events is the order of the learner's
calls, so replaying them gives the same bits. If a commit fails, the learner has seen what the
journal has not: the session stays down until `recover` has loaded the journal's own state.

For http/ (names agreed; what is not there yet comes in the next commits):

    Session.open(..., create=True, shadows=(), retain=None)     create=False: a missing journal is refused
    session.founded            whether open() has made a new journal
    session.labels, .known, .retired, .frozen                   labels may be added while it runs: ask each time
    session.add_labels(names), retire_labels(names), freeze(), resume(),
    session.set_explore(explore=None, uniform=None), go_back(seq)
                               each is an event: call them through Group.submit, like decide
    session.changes()          [{"seq", "time", "what", ...}, ...], oldest first
    session.snapshots()        [{"seq", "time", "superarm", "numba", "cpu"}, ...]: where go_back can go to
    session.shadows            (ShadowReport, ...): the model itself first; .spec, .rate, .low, .high, .rows,
                               .problem
    session.erase(ids=None, before=None) -> int                 how many decisions lost features and context
    session.health() -> Health (health.py); Health.ready, .trouble
    session.model_file()       raises session.down while the journal is down
    Entry.shown(), .full()     features and context are None once erased; state then ends in ", erased"
    Group.submit(method, argument), Group.close(), Group.waiting (how many wait)
    Upkeep(group).run()        upkeep.py: expiry, snapshots, compaction, retention; run it as a task
    faults.py                  no status codes: Refused, UnknownDecision, Erased, Conflict, Overloaded,
                               JournalDown, JournalFull, JournalDamaged
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm.decision import Decision
from superarm.errors import WeightsOverflow
from superarm.rows import Row
from superarm.service.core.entries import Ask, Entry, Reply, outcome_of
from superarm.service.core.events import DECISION, OUTCOME, TIMEOUT, decision_body, pack_row, to_decision
from superarm.service.core.fastjson import dumps
from superarm.service.core.faults import Conflict, JournalDown, Refused, UnknownDecision
from superarm.service.core.founding import check, found
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Journal, Place
from superarm.service.core.replay import Model, learner_from, model_bytes

__all__ = ["Ask", "Entry", "Reply", "Session"]

CACHED = 20_000  # decisions kept in memory; older ones are read from the journal
EXPIRED_AT_ONCE = 500
RETRY_SECONDS = 1.0
INDEX_EVERY = 2_000  # events


class Session:
    """One model and its journal.

    Use `Session.open`. A session belongs to one thread at a time; the process that has it is the
    only one that may write the journal.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        timeout: float | None = None,
        default: bool | None = None,
        snapshot_every: int = 50_000,
        keep_snapshots: int = 3,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.journal, self.timeout, self.default, self.clock = journal, timeout, default, clock
        self.snapshot_every, self.keep_snapshots = snapshot_every, keep_snapshots
        self.down: JournalDown | None = None  # why nothing can be written at the moment
        self._retry_at = 0.0
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._stamp, self._count = 0, 0
        self.load_model()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        learner: str | None = None,
        labels: Sequence[str] | None = None,
        n_features: int | None = None,
        set_size: int | None = None,
        seed: int | None = None,
        model: str | Path | None = None,
        max_mb: int | None = None,
        **settings: Any,
    ) -> Session:
        """The session on a journal; a new journal is given its learner, an old one must agree.

        Args:
            path: the journal.
            learner: ``name:key=value,...`` as on the command line; ``set-logit`` by default.
            labels: their names; with ``n_features``, needed for a new journal.
            n_features: the length of a row.
            set_size: how many labels to show.
            seed: of the learner.
            model: a model file to start a new journal with, instead of all the above.
            max_mb: a limit for the size of the journal.
            settings: ``timeout`` in seconds and ``default`` outcome (True, False, or None: none);
                ``snapshot_every`` events; ``keep_snapshots``.
        """
        down = None
        try:
            journal = Journal(path, max_mb=max_mb)
        except JournalDown as error:  # say, a read-only disk: what is there can still be looked at
            if not Path(path).is_file():
                raise
            journal, down = Journal(path, read_only=True, max_mb=max_mb), error
        try:
            meta = journal.meta()
            asked: dict[str, Any] = {
                "learner": learner,
                "labels": labels,
                "n_features": n_features,
                "set_size": set_size,
                "seed": seed,
            }
            if meta:
                check(journal, meta, asked)
            else:
                found(journal, asked, model)
            session = cls(journal, **settings)
            session.down = down
            return session
        except BaseException:
            journal.close()
            raise

    # ------------------------------------------------------------ the model

    def load_model(self) -> None:
        """The newest snapshot, and all events since."""
        self._entries.clear()
        newest = self.journal.snapshots()[-1]
        model = Model(self.journal, self.journal.snapshot(newest))
        model.catch_up()
        self.learner, self.stats = model.learner, model.stats
        self.replayed, self.different = model.seq - newest, model.different
        self.snapshot_seq = newest
        self.labels: tuple[str, ...] = self.stats.labels
        self.known = frozenset(self.labels)

    def warm_up(self) -> None:
        """Compile what the first request would have to wait for, on a copy that nobody sees."""
        copy = learner_from(self.model_file())
        row = np.zeros(copy.n_features, np.float32)
        decision = copy.decide(row)
        copy.update(decision, **({"hit": False} if "hit" in copy.feedback else {"label": self.labels[0]}))

    def model_file(self) -> bytes:
        """The model as `Learner.save` writes it."""
        return model_bytes(self.learner)

    def snapshot(self) -> None:
        """Keep the whole model, so that a restart needs only the events after it."""
        if self.snapshot_seq < self.journal.seq:
            self.journal.put_snapshot(self.model_file(), self.stats.to_dict())
            self.snapshot_seq = self.journal.seq

    def snapshot_due(self) -> bool:
        return self.journal.seq - self.snapshot_seq >= self.snapshot_every

    # ------------------------------------------------------------ what a service does

    def decide(self, ask: Ask) -> Entry:
        """Choose a set; the same request with the same id gives the same set again."""
        if ask.id is not None:
            entry = self.find(ask.id, uncommitted=True)
            if entry is not None:
                return self._same(entry, ask)
        self._writable()
        id_ = ask.id or self._new_id()
        try:
            decision = self.learner.decide(ask.x, eligible=ask.eligible, set_size=ask.set_size)
        except WeightsOverflow as error:  # nothing has changed; other rows may well be fine
            wanted = "so small that all scores stay finite"
            raise Refused.must("features", "decision", wanted, "an overflow") from error
        body = decision_body(decision, ask.set_size, ask.context)
        body["version"] = self.stats.learnt  # how many answers the model had learnt
        x, at = pack_row(decision.x), self._now()
        place = Place(id_, self.journal.seq + 1, at, OPEN, None)
        self._append(at, DECISION, x, body, place)
        self.stats.decision(at, body["labels"], body["top"], decision.propensity)
        return self._keep(Entry(place, x, body, decision, None))

    def outcome(self, reply: Reply) -> Entry:
        """Take an answer: learn from it, once."""
        entry = self.find(reply.id, uncommitted=True)
        if entry is None:
            raise UnknownDecision.must("id", "outcome", "that of a decision", reply.id)
        shown = entry.body["labels"]
        eligible = entry.body["eligible"]
        if reply.label is not None and eligible is not None and reply.label not in eligible:
            raise Refused.must("label", "outcome", "one of the eligible labels", reply.label)
        hit = reply.label in shown if reply.hit is None else reply.hit
        state = entry.place.state
        if state in (ANSWERED, LATE):
            return self._agreed(entry, reply, hit)
        self._writable()
        expired = entry.outcome if state == EXPIRED else None
        body: dict[str, Any] = {
            "of": entry.place.seq,
            "hit": hit,
            "label": reply.label,
            "late": expired is not None,
        }
        body |= {"default": expired["hit"] if expired else None}
        if expired is not None and expired["learnt"]:
            body |= {"learnt": False, "taught": None}  # the default outcome has been learnt already
        else:
            named = reply.label is not None and "label" in self.learner.feedback
            body |= self._teach(entry.decision, {"label": reply.label} if named else {"hit": hit})
        at = self._now()
        self._close(entry, at, OUTCOME, LATE if expired else ANSWERED, body)
        self.stats.outcome(at, at - entry.place.time, shown, body)
        return entry

    def expire(self, now: float | None = None) -> int:
        """Close decisions that have waited longer than the timeout; how many."""
        if self.timeout is None:
            return 0
        at = self._now()
        before = (at if now is None else now) - self.timeout
        places = self.journal.open_places(limit=EXPIRED_AT_ONCE, before=before)
        for place in places:
            entry = self.find(place.id, uncommitted=True)
            assert entry is not None
            if entry.place.state != OPEN:
                continue
            self._writable()
            body: dict[str, Any] = {"of": entry.place.seq, "hit": self.default, "label": None, "late": False}
            if self.default is None:
                body |= {"learnt": False, "taught": None}
            else:
                body |= self._teach(entry.decision, {"hit": self.default})
            self._close(entry, at, TIMEOUT, EXPIRED, body)
            self.stats.timeout(body)
        return len(places)

    def commit(self) -> None:
        """Make all of it durable. If that fails, none of it has happened."""
        try:
            self.journal.commit()
        except JournalDown as error:
            self.fail(error)
            raise

    def fail(self, error: JournalDown) -> None:
        """The journal cannot be written: take back what was not committed, and wait for `recover`."""
        self.down = error
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._entries.clear()  # the learner and totals are behind it too: recover() loads them anew
        self.journal.rollback()

    def can_retry(self) -> bool:
        return self.down is not None and time.monotonic() >= self._retry_at

    def recover(self) -> None:
        """Try to write again; if that works, go on from what the journal holds."""
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.journal.reopen()
        self.journal.probe()
        self.load_model()
        self.down = None

    def close(self) -> None:
        """Snapshot, if it can be written, and let go of the journal."""
        try:
            if self.down is None:
                self.snapshot()
                self.commit()
        finally:
            self.journal.close()

    # ------------------------------------------------------------ looking

    def find(self, id_: str, *, uncommitted: bool = False) -> Entry | None:
        """A decision by its id; only what is durable, unless ``uncommitted``."""
        entry = self._entries.get(id_) if uncommitted else None
        if entry is not None:
            return entry
        place = self.journal.place(id_, uncommitted=uncommitted)
        if place is None:
            return None
        entry = self.entry(place, uncommitted=uncommitted)
        return self._keep(entry) if uncommitted else entry

    def entry(self, place: Place, *, uncommitted: bool = False) -> Entry:
        event = self.journal.event(place.seq, uncommitted=uncommitted)
        body = event.body
        outcome = None
        if place.closed is not None:
            closing = self.journal.event(place.closed, uncommitted=uncommitted)
            outcome = outcome_of(closing.time, closing.kind == TIMEOUT, closing.body)
        assert event.x is not None
        return Entry(place, event.x, body, to_decision(event.x, body, self.learner.id), outcome)

    # ------------------------------------------------------------ inside

    def _writable(self) -> None:
        if self.down is not None:
            raise self.down

    def _append(self, at: float, kind: int, x: bytes | None, body: dict[str, Any], place: Place) -> None:
        try:
            self.journal.append(at, kind, x, dumps(body), place)
            if self.journal.seq % INDEX_EVERY == 0:
                self.journal.index()
        except JournalDown as error:
            self.fail(error)
            raise

    def _teach(self, decision: Decision, answer: dict[str, Any]) -> dict[str, Any]:
        try:
            self.learner.update(decision, **answer)
        except WeightsOverflow as error:  # the learner is as before; the answer is kept all the same
            return {"learnt": False, "taught": None, "refused": str(error)}
        return {"learnt": True, "taught": answer}

    def _same(self, entry: Entry, ask: Ask) -> Entry:
        row = ask.x
        if isinstance(entry.decision.x, tuple) != isinstance(row, tuple):
            from superarm.rows import densify, sparsify

            row = densify(row, self.learner.n_features) if isinstance(row, tuple) else sparsify(row)
        eligible = None if ask.eligible is None else sorted(ask.eligible)
        kept = entry.body
        checks = {
            "features": pack_row(_as_arrays(row)) == entry.x,
            "eligible": eligible == (None if kept["eligible"] is None else sorted(kept["eligible"])),
            "set_size": ask.set_size == kept["asked"],
            "context": ask.context == kept["context"],
        }
        for field, same in checks.items():
            if not same:
                wanted = f"what they were when decision {entry.place.id!r} was first asked for"
                raise Conflict.must(field, "decision", wanted, "something else")
        return entry

    def _agreed(self, entry: Entry, reply: Reply, hit: bool) -> Entry:
        assert entry.outcome is not None
        kept = entry.outcome
        if hit == kept["hit"] and reply.label in (None, kept["label"]):
            return entry
        field = "hit" if reply.label is None else "label"
        first = kept["hit"] if kept["label"] is None or field == "hit" else kept["label"]
        got = reply.hit if reply.label is None else reply.label
        raise Conflict.must(field, "outcome", f"{first!r}, as it was first answered", got)

    def _keep(self, entry: Entry) -> Entry:
        self._entries[entry.place.id] = entry
        if len(self._entries) > CACHED:
            self._entries.popitem(last=False)
        return entry

    def _close(self, entry: Entry, at: float, kind: int, state: int, body: dict[str, Any]) -> None:
        place = entry.place._replace(state=state, closed=self.journal.seq + 1)
        self._append(at, kind, None, body, place)
        entry.place = place
        entry.outcome = outcome_of(at, state == EXPIRED, body)

    def _now(self) -> float:
        return max(self.clock(), self.journal.time)

    def _new_id(self) -> str:
        """Ids that grow with time, so that the index of ids grows at its end; 48 random bits."""
        stamp = int(self.clock() * 1e3)
        return f"{stamp:011x}{os.urandom(6).hex()}"


def _as_arrays(row: Row) -> Row:
    if isinstance(row, tuple):
        return np.asarray(row[0], np.int32), np.asarray(row[1], np.float32)
    return np.asarray(row, np.float32)
