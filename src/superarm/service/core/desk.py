"""Decisions and answers: each moves the learner and writes its event, or neither. (session.py: the rest)

Every call that changes something also writes its event into the transaction under way; nothing may
be acknowledged before `commit` has returned. The order of the events is the order of the learner's
calls, so replaying them gives the same bits. Whatever has moved the learner and did not reach the
journal is taken back: the session is down (`fail`) until `recover` has loaded the journal's own state.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orjson import dumps, loads

from superarm.errors import InvalidInput, SuperarmError, WeightsOverflow
from superarm.learners import Learner
from superarm.named import plain_row
from superarm.rows import SparseRow, as_row, densify, sparsify
from superarm.service.core.clocks import Ages
from superarm.service.core.entries import Ask, Cache, Entry, Reply, context_bytes, outcome_of
from superarm.service.core.events import DECISION, OUTCOME, TIMEOUT, decision_body, pack_row, to_decision
from superarm.service.core.faults import (
    Conflict,
    Erased,
    JournalDamaged,
    JournalDown,
    Refused,
    UnknownDecision,
)
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Place
from superarm.service.core.model import Model
from superarm.service.core.stats import Stats

__all__ = ["Desk", "check_seconds", "checked_row"]

log = logging.getLogger("superarm.service")

EXPIRED_AT_ONCE = 500
RETRY_SECONDS = 1.0


class Desk:
    """What `Session` builds on: requests, one after another."""

    journal: Any
    model: Model
    learner: Learner
    stats: Stats
    labels: tuple[str, ...]
    retired: frozenset[str]
    frozen: bool
    timeout: float | None
    default: bool | None
    clock: Callable[[], float]
    ages: Ages
    load_model: Callable[[], None]
    down: JournalDown | None
    _entries: Cache
    _stale: bool
    _retry_at: float
    _commit_began: float | None

    def check_default(self) -> None:
        """Whether the learner can take what a timeout counts as."""
        if self.default is not None and "hit" not in self.learner.feedback:
            wanted = f"none: {type(self.learner).__name__} learns from labels, not from hits"
            got = "hit" if self.default else "miss"
            raise InvalidInput.must("--default-outcome", "superarm serve", wanted, got)

    # ------------------------------------------------------------ decisions and answers

    def decide(self, ask: Ask) -> Entry:
        """Choose a set; the same request with the same id gives the same set again."""
        context = context_bytes(ask.context)  # whatever cannot be kept is refused before anything moves
        if ask.id is not None:
            entry = self.find(ask.id, uncommitted=True)
            if entry is not None:
                return self._same(entry, ask, context)
        self._writable()
        id_ = ask.id or self._new_id()
        eligible = self._eligible(ask)
        with checked_row(ask.x):
            decision = self.learner.decide(ask.x, eligible=eligible, set_size=ask.set_size)
        try:
            body = decision_body(decision, ask.set_size, None if ask.eligible is None else list(ask.eligible))
            body["version"] = self.stats.learnt  # how many answers the model had learnt
            x, at = pack_row(decision.x), self.ages.now(self.journal.seq + 1)
            place = Place(id_, self.journal.seq + 1, at, OPEN, None)
            self._append(at, DECISION, x, context, body, place)
            self.stats.decision(at, body["labels"], body["top"], decision.propensity)
            return self._entries.put(Entry(place, x, context, body, decision, None))
        except BaseException as error:
            self._take_back(error)
            raise

    def outcome(self, reply: Reply) -> Entry:
        """Take an answer: learn from it, once."""
        entry = self.find(reply.id, uncommitted=True)
        entry, hit = self._answer_to(entry, reply)
        shown, state = entry.body["labels"], entry.place.state
        if state in (ANSWERED, LATE):
            return self._agreed(entry, reply, hit)
        self._writable()
        expired = entry.outcome if state == EXPIRED else None
        body: dict[str, Any] = {
            "of": entry.place.seq,
            "hit": hit,
            "label": reply.label,
            "late": expired is not None,
            "default": expired["hit"] if expired else None,
        }
        if expired is not None and expired["learnt"]:
            body |= {"learnt": False, "taught": None}  # the default outcome has been learnt already
        else:
            body |= self._teach(entry, hit, reply.label)
        try:
            at = self.ages.now(self.journal.seq + 1)
            self._close(entry, at, OUTCOME, LATE if expired else ANSWERED, body)
            self.stats.outcome(at, at - entry.place.time, shown, body)
            if not entry.erased:
                self.model.judged(entry.decision, entry.body, body, timeout=False)
        except BaseException as error:
            self._take_back(error)
            raise
        return entry

    def expire(self) -> int:
        """Close decisions that have waited longer than the timeout; how many."""
        if self.timeout is None:
            return 0
        done = 0
        for since, until, before in list(self.ages.due(self.timeout, self.journal.seq)):
            limit = EXPIRED_AT_ONCE - done
            if limit > 0:
                due = self.journal.open_places(limit=limit, since=since, until=until, before=before)
                done += sum(self._expire(place.id) for place in due)
        return done

    def _expire(self, id_: str) -> bool:
        try:
            entry = self.find(id_, uncommitted=True)
        except JournalDamaged as error:  # it cannot be closed, and must not keep the others from it
            log.error("expire", extra={"reason": str(error)})
            return False
        if entry is None or entry.place.state != OPEN:
            return False
        self._writable()
        body: dict[str, Any] = {"of": entry.place.seq, "hit": self.default, "label": None, "late": False}
        if self.default is None:
            body |= {"learnt": False, "taught": None}
        else:
            body |= self._teach(entry, self.default, None)
        try:
            at = self.ages.now(self.journal.seq + 1)
            self._close(entry, at, TIMEOUT, EXPIRED, body)
            self.stats.timeout(body)
            if not entry.erased:
                self.model.judged(entry.decision, entry.body, body, timeout=True)
        except BaseException as error:
            self._take_back(error)
            raise
        return True

    # ------------------------------------------------------------ durability

    def commit(self) -> None:
        """Make all of it durable. If that fails, none of it has happened."""
        self._commit_began = time.monotonic()
        try:
            with self.writing():
                self.journal.commit()
        finally:
            self._commit_began = None

    def writing(self) -> Writing:
        """With this around it, a failure to write takes back all that was not committed."""
        return Writing(self)

    def fail(self, error: JournalDown) -> None:
        """The journal cannot be written: take back what was not committed, and wait for `recover`."""
        self.down = error
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._stale = True  # the learner and totals are behind it too: recover() loads them anew
        self._entries.clear()
        try:
            self.journal.rollback()
        except (JournalDown, JournalDamaged) as worse:  # recover() opens it anew
            log.error("rollback", extra={"reason": str(worse)})

    def can_retry(self) -> bool:
        return self.down is not None and time.monotonic() >= self._retry_at

    def recover(self) -> None:
        """Go on from what the journal holds; if it can be written again, the session is up."""
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.journal.reopen()
        if self._stale:
            self.load_model()
        self.journal.probe()
        self.down = None

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
        return self._entries.put(entry) if uncommitted else entry

    def entry(self, place: Place, *, uncommitted: bool = False) -> Entry:
        event = self.journal.event(place.seq, uncommitted=uncommitted)
        body, outcome, closing = event.body, None, None
        good = (event.kind, event.id, event.time) == (DECISION, place.id, place.time)
        if place.closed is not None:
            closing = self.journal.event(place.closed, uncommitted=uncommitted)
            told = closing.body
            outcome = outcome_of(closing.time, closing.kind == TIMEOUT, told)
            good = good and closing.id == place.id and told["of"] == place.seq
        if not good or (closing is None) != (place.state == OPEN):
            message = f"the index of {self.journal.name} is wrong about decision {place.id}"
            raise JournalDamaged(message, event=place.seq)
        decision = to_decision(event.x, body, self.learner.id)
        return Entry(place, event.x, event.context, body, decision, outcome)

    def snapshots(self) -> list[dict[str, Any]]:
        """The kept snapshots, oldest first, each with what made it."""
        return [{"seq": seq, "time": at, **made} for seq, at, made in self.journal.snapshot_notes()]

    # ------------------------------------------------------------ inside

    def _writable(self) -> None:
        if self.down is not None:
            raise self.down

    def _eligible(self, ask: Ask) -> tuple[str, ...] | None:
        """The labels that may be shown: those asked for, without retired ones; None for all."""
        if not self.retired:
            return ask.eligible
        eligible = tuple(one for one in ask.eligible or self.labels if one not in self.retired)
        if not eligible:
            wanted = "a list with labels that are not retired"
            raise Refused.must("eligible", "decision", wanted, ask.eligible)
        return eligible

    def _answer_to(self, entry: Entry | None, reply: Reply) -> tuple[Entry, bool]:
        """The decision that a reply is about, and its bit."""
        if entry is None:
            raise UnknownDecision.must("id", "outcome", "that of a decision", reply.id)
        shown, among = entry.body["labels"], entry.body["among"]
        if reply.label is not None and among is not None and reply.label not in among:
            raise Refused.must("label", "outcome", "one of the eligible labels", reply.label)
        return entry, reply.label in shown if reply.hit is None else reply.hit

    def _take_back(self, error: BaseException) -> None:
        """The learner has moved, and the journal does not know of it."""
        if self.down is None:
            if not isinstance(error, JournalDown):
                log.error("taken back", extra={"reason": repr(error)})
                error = JournalDown(f"what was not committed is taken back, after {error!r}")
            self.fail(error)

    def _append(
        self, at: float, kind: int, x: bytes | None, context: bytes | None, body: Any, place: Place | None
    ) -> None:
        self.journal.append(at, kind, x, context, dumps(body), place)

    def _teach(self, entry: Entry, hit: bool, label: str | None) -> dict[str, Any]:
        """Learn, if there is anything to learn from; what the event says of it."""
        decision = None if entry.erased else entry.decision
        try:
            return self.model.teach(decision, entry.body, hit, label)
        except SuperarmError:  # refused before anything moved
            raise
        except BaseException as error:
            self._take_back(error)
            raise

    def _same(self, entry: Entry, ask: Ask, context: bytes | None) -> Entry:
        if entry.erased:
            raise Erased.must("id", "decision", "one whose features were not erased", ask.id)
        eligible = None if ask.eligible is None else sorted(ask.eligible)
        kept = entry.body
        checks = {
            "features": self._same_row(ask.x, entry),
            "eligible": eligible == (None if kept["among"] is None else sorted(kept["among"])),
            "set_size": ask.set_size == kept["asked"],
            "context": context == entry.context
            or (None not in (context, entry.context) and ask.context == loads(entry.context or b"")),
        }
        for field, same in checks.items():
            if not same:
                wanted = f"what they were when decision {entry.place.id!r} was first asked for"
                raise Conflict.must(field, "decision", wanted, "something else")
        return entry

    def _same_row(self, x: Any, entry: Entry) -> bool:
        kept, d = entry.decision.x, self.learner.n_features
        if isinstance(x, dict) or isinstance(kept, dict):
            return isinstance(x, dict) and bool(plain_row(x) == loads(entry.x or b"{}"))
        row = as_row(x, d, "decision")
        return pack_row(sparsify(row) if isinstance(kept, SparseRow) else densify(row, d)) == entry.x

    def _agreed(self, entry: Entry, reply: Reply, hit: bool) -> Entry:
        assert entry.outcome is not None
        kept = entry.outcome
        if hit == kept["hit"] and reply.label in (None, kept["label"]):
            return entry
        field = "hit" if reply.label is None else "label"
        first = kept["hit"] if kept["label"] is None or field == "hit" else kept["label"]
        got = reply.hit if reply.label is None else reply.label
        raise Conflict.must(field, "outcome", f"{first!r}, as it was first answered", got)

    def _close(self, entry: Entry, at: float, kind: int, state: int, body: dict[str, Any]) -> None:
        place = entry.place._replace(state=state, closed=self.journal.seq + 1)
        self._append(at, kind, None, None, body, place)
        entry.place = place
        entry.outcome = outcome_of(at, state == EXPIRED, body)

    def _new_id(self) -> str:
        """Ids that grow with time, so that the index of ids grows at its end; 48 random bits."""
        stamp = int(self.clock() * 1e3)
        return f"{stamp:011x}{os.urandom(6).hex()}"


def check_seconds(**times: float | None) -> None:
    """Options of ``superarm serve`` that are times, or left out."""
    for name, value in times.items():
        if value is not None and not value > 0.0:
            raise InvalidInput.must(f"--{name}", "superarm serve", "more than 0 seconds", value)


@contextmanager
def checked_row(x: Any) -> Iterator[None]:
    """Around a learner's decision about x: what cannot be kept, or is too large, is refused."""
    if isinstance(x, dict):
        try:
            pack_row(plain_row(x))
        except TypeError as error:
            wanted = "numbers of 64 bits, words, true or false, dates or gaps"
            raise Refused.must("features", "decision", wanted, str(error)) from error
    try:
        yield
    except WeightsOverflow as error:  # other rows may well be fine
        wanted = "so small that all scores stay finite"
        raise Refused.must("features", "decision", wanted, "an overflow") from error


class Writing:
    """A failure to write inside of it takes back all that was not committed."""

    __slots__ = ("session",)

    def __init__(self, session: Desk) -> None:
        self.session = session

    def __enter__(self) -> None:
        self.session._writable()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.session._take_back(error)
