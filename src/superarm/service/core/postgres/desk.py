"""Deciding and taking answers in a process among many: a turn is one statement, which commits by itself.

A turn first looks up the ids that it does not know, decides with the newest model that this process has,
and writes all of it at once. What another process wrote in the meantime under the same id is found by the
database, and wins: that call is made again, and gives what is there. Nothing is answered before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from orjson import dumps

from superarm.errors import FeedbackError
from superarm.learners import Learner
from superarm.service.core.desk import Desk, checked_row
from superarm.service.core.entries import Ask, Entry, Reply, context_bytes
from superarm.service.core.events import DECISION, OUTCOME, decision_body, pack_row, to_decision
from superarm.service.core.faults import JournalDown, JournalForeign
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Place
from superarm.service.core.postgres.connecting import Address, failures, psycopg
from superarm.service.core.postgres.moments import decide_at
from superarm.service.core.postgres.schema import BLOCK
from superarm.service.core.postgres.tables import Kept, Row, Writer, check_writable, kept

__all__ = ["Serving", "SharedDesk", "entry_of"]

Call = tuple[Callable[[Any], Any], Any, Any]
Staged = tuple[float, int, str, bytes | None, bytes | None, bytes]


class Serving(NamedTuple):
    """The model that a process decides with."""

    version: int
    learnt: int
    time: float  # when it was published
    learner: Learner
    retired: frozenset[str]
    frozen: bool
    erasures: int


class Later(Exception):
    """The call must wait for what this turn has yet to write."""


class SharedDesk(Desk):
    """What `SharedSession` builds on."""

    address: Address
    process: str
    serving: Serving
    coming: Serving | None  # a newer model, for the next turn
    writer: Writer | None
    _rounds: Iterator[int]
    _staged: dict[tuple[int, str], Staged]
    _no_room_for: list[Row]  # what a full disk has refused: it is full until these can be written
    _follow: Callable[[], None]

    # ------------------------------------------------------------ turns

    def turn(self, calls: Sequence[Call]) -> list[tuple[Any, Any, Exception | None]]:
        """Make these calls, and return when all they wrote is durable. One thread at a time."""
        self._writable()
        try:
            with failures(self.address):
                if self.writer is not None and self.writer.gone:  # nothing of this turn was sent by it
                    self._drop_writer()
                if self.writer is None:
                    self.open_writer()
                done: list[tuple[Any, Any, Exception | None]] = []
                while calls:
                    calls = self._pass(calls, done)
                return done
        except BaseException as error:
            self._give_up(error)
            raise

    def open_writer(self) -> None:
        """Have a connection that writes, or say why there is none."""
        with failures(self.address):
            connection = self.address.connect("superarm writes")
            try:
                check_writable(connection, self.address, self._no_room_for)
                self.writer = Writer(connection, self.process)
                self._no_room_for = []
            except BaseException:
                connection.close()
                raise

    def probe(self, _: object = None) -> None:
        """A call, for a turn, that writes nothing and finds whether anything could be written."""
        assert self.writer is not None
        check_writable(self.writer.connection, self.address)

    def _drop_writer(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self._staged, self._rounds = {}, iter(())
        self._entries.clear()

    def _give_up(self, error: BaseException) -> None:
        """Whether it was written is not known: nothing more may come from this writer."""
        self._drop_writer()
        if isinstance(error, JournalDown | JournalForeign):
            self.fail(error if isinstance(error, JournalDown) else JournalDown(str(error)))

    def _pass(self, calls: Sequence[Call], done: list[tuple[Any, Any, Exception | None]]) -> list[Call]:
        """Make calls, write what they staged; those that must be made again."""
        assert self.writer is not None
        self._follow()
        self._staged = {}
        self._know([call[1].id for call in calls if isinstance(call[1], Ask | Reply) and call[1].id])
        made: list[tuple[Call, Any, Exception | None]] = []
        again: list[Call] = []
        for call in calls:
            try:
                made.append((call, call[0](call[1]), None))
            except Later:
                again.append(call)
            except (psycopg.Error, JournalForeign):  # that is everybody's
                raise
            except Exception as error:  # that caller is told, the others go on
                made.append((call, None, error))
        rows = self.writer.rows(self._staged.values())
        try:
            new = self.writer.insert(rows) if rows else set()
        except psycopg.errors.DiskFull:
            self._no_room_for = rows
            raise
        lost = {(row.kind, row.id) for row in rows if row.number not in new}
        for _, id_ in lost:
            self._entries.drop(id_)
        for row in rows:
            if row.number in new:
                self._written(row.id, row.kind, row.number)
        for call, result, failure in made:
            argument = call[1]
            kind = DECISION if isinstance(argument, Ask) else OUTCOME
            if lost and isinstance(argument, Ask | Reply) and (kind, argument.id) in lost:
                again.append(call)
            else:
                done.append((call[2], result, failure))
        return again

    def _written(self, id_: str, kind: int, number: int) -> None:
        entry = self._entries.get(id_)
        if entry is not None:
            change = {"seq": number} if kind == DECISION else {"closed": number}
            entry.place = entry.place._replace(**change)  # type: ignore[arg-type]

    def _know(self, ids: Sequence[str]) -> None:
        """Have these decisions at hand, if there are such."""
        missing = [id_ for id_ in dict.fromkeys(ids) if self._entries.get(id_) is None]
        if missing:
            assert self.writer is not None
            for found in kept(self.writer.connection, missing).values():
                self._entries.put(entry_of(found, self.learner.id))

    def _next_round(self) -> int:
        found = next(self._rounds, None)
        if found is None:
            assert self.writer is not None
            row = self.writer.connection.execute("SELECT nextval('rounds')").fetchone()
            assert row is not None
            self._rounds = iter(range(row[0], row[0] + BLOCK))
            found = next(self._rounds)
        return found

    # ------------------------------------------------------------ calls

    def decide(self, ask: Ask) -> Entry:
        context = context_bytes(ask.context)
        if ask.id is not None:
            entry = self._entries.get(ask.id)
            if entry is not None:
                return self._same(entry, ask, context)
        id_ = ask.id or self._new_id()
        eligible = self._eligible(ask)
        with checked_row(ask.x):
            decision, before, moved = decide_at(
                self.learner, ask.x, eligible, ask.set_size, self._next_round()
            )
        body = decision_body(decision, ask.set_size, None if ask.eligible is None else list(ask.eligible))
        body |= {"version": self.serving.learnt, "model": self.serving.version, "k": len(self.labels)}
        body |= {"moment": before, "moved": moved}
        x, at = pack_row(decision.x), self.clock()
        self._staged[DECISION, id_] = at, DECISION, id_, x, context, dumps(body)
        place = Place(id_, 0, at, OPEN, None)
        return self._entries.put(Entry(place, x, context, body, decision, None))

    def outcome(self, reply: Reply) -> Entry:
        if (DECISION, reply.id) in self._staged:
            raise Later
        entry, hit = self._answer_to(self._entries.get(reply.id), reply)
        if entry.place.state in (ANSWERED, LATE):
            return self._agreed(entry, reply, hit)
        if reply.label is None and "hit" not in self.learner.feedback:
            raise FeedbackError.must("feedback", self.learner.of, "label=...", f"hit={reply.hit!r}")
        at = self.clock()
        body = {"of": entry.place.seq, "hit": hit, "label": reply.label}
        self._staged[OUTCOME, reply.id] = at, OUTCOME, reply.id, None, None, dumps(body)
        entry.place = entry.place._replace(state=LATE if entry.place.state == EXPIRED else ANSWERED)
        entry.outcome = {**body, "time": at, "learnt": None, "late": None, "timeout": False}
        del entry.outcome["of"]
        return entry


def entry_of(found: Kept, learner: str) -> Entry:
    """A decision and what has become of it, as far as the learner has come."""
    row, outcome, state, closed = found.decision, None, OPEN, None
    # a timeout that nobody has taken may still come after the answer, in the order
    timeout = found.timeout
    if timeout is not None and (not timeout[1] or (timeout[2] or {}).get("void")):
        timeout = None
    closing = found.outcome or timeout
    if closing is not None:
        event, taken, note = closing
        told, closed, is_timeout = event.body, event.number, closing is timeout
        late, learnt = told.get("late"), told.get("learnt")  # a past that was moved here tells it itself
        if taken and learnt is None:
            usual = {"learnt": told["hit"] is not None, "late": False}
            told_by = {**usual, **(note or {})}
            late, learnt = told_by["late"], told_by["learnt"]
        state = (
            EXPIRED if is_timeout else LATE if late or (late is None and timeout is not None) else ANSWERED
        )
        outcome = {"hit": told["hit"], "label": told.get("label"), "time": event.time, "learnt": learnt}
        outcome |= {"late": late, "timeout": is_timeout}
    body = row.body
    place = Place(row.id, row.number, row.time, state, closed)
    return Entry(place, row.x, row.context, body, to_decision(row.x, body, learner), outcome)
