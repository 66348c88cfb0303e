"""Replay and verify a shared journal: the order is whole, every published model is met on the way, and every
decision comes out again from its record."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from superarm.learners import Learner
from superarm.service.core.compare import BITS, ODDS, SAME, SETS, compare, nearly_same_model
from superarm.service.core.events import DECISION, digest, unpack_row
from superarm.service.core.faults import JournalDamaged, JournalForeign
from superarm.service.core.model import load_class
from superarm.service.core.postgres.connecting import Address, Connection, failures
from superarm.service.core.postgres.moments import decide_at
from superarm.service.core.postgres.ordered import ErasedPast, Ordered
from superarm.service.core.postgres.rebuilding import Past
from superarm.service.core.postgres.tables import (
    SHIFT,
    WAITING,
    Batch,
    Row,
    batch_digest,
    batch_ending,
    batch_rows,
    batches,
    load_published,
    meta_of,
    notes_of,
)
from superarm.service.core.replay import Replayed
from superarm.service.core.snapshots import learner_from, model_bytes
from superarm.service.core.verify import MOST_TOLD, Verified

__all__ = ["replay", "verify"]

AT_HAND = 256  # models of the last versions: a process may decide with one that is a moment old
Tick = Callable[[int], object]


class Again(Ordered):
    """What was done, done again: an answer to features that were erased since cannot be."""

    def __init__(self, *arguments: Any) -> None:
        self.noted: dict[int, dict[str, Any]] = {}  # of the events at hand, what was noted at the time
        super().__init__(*arguments)

    def _closed(self, row: Row) -> dict[str, Any] | None:
        note = super()._closed(row)
        refused = bool(note and note.get("refused")) and not self.noted.get(row.number, {}).get("refused")
        if refused and self._known[row.id].x is None:
            raise ErasedPast
        return note

    def _changed(self, row: Row) -> dict[str, Any]:
        note = self.noted.get(row.number, {})
        if note.get("refused"):  # whether it could be made today does not matter
            return note
        return super()._changed(row)


class Walk:
    """From the first event, or from the oldest kept snapshot, to the last."""

    def __init__(self, connection: Connection, where: object, *, from_start: bool) -> None:
        self.connection, self.past = connection, Past(connection, where)
        self.snapshots = self.past.snapshots()
        self.start = 0 if from_start else next((seq for seq in self.snapshots if seq), 0)
        self.model = self._begun()
        self.problems: list[str] = []
        self.damaged: list[int] = []
        self.different = {SAME: 0, BITS: 0, ODDS: 0, SETS: 0}
        self.checked: list[int] = []
        self.near: list[int] = []
        self.broken: list[int] = []
        self.jumps: list[int] = []
        self.erased = self.events = self.unchecked = self.waiting = 0
        batch = batch_ending(connection, self.start)
        self.first, self._digest = (0, b"superarm") if batch is None else (batch.version, batch.digest)
        self._last, self._version = self.start, self.first
        self._positions = dict(self.model.positions)
        self._unlike: list[int] = []  # publications whose bits were not met, until a whole model decides
        self._files: OrderedDict[int, bytes] = OrderedDict({self.first: model_bytes(self.model.learner)})
        self._learners: dict[int, Learner] = {}
        self._over = 0  # up to here events were erased: the model is not known

    def _begun(self) -> Again:
        return Again(self.past, self.past.snapshot(self.start), self.past.lookup)

    def batches(self) -> Iterator[Batch]:
        return batches(self.connection, self.first)

    def tell(self, sentence: str, event: int | None = None) -> None:
        if event is not None:
            self.damaged.append(event)
        if len(self.problems) < MOST_TOLD:
            self.problems.append(sentence)

    # ------------------------------------------------------------ the order

    def step(self, batch: Batch, *, learn: bool) -> int:
        """One batch; how many events."""
        rows = batch_rows(self.connection, batch)
        self._check_order(batch, rows)
        self.erased += sum(row.kind == DECISION and row.x is None for row in rows)
        if learn:
            self._learn(batch, rows)
        self.events += len(rows)
        return len(rows)

    def _check_order(self, batch: Batch, rows: list[Row]) -> None:
        if batch.version != self._version + 1 or batch.first != self._last + 1:
            self.tell(f"the order has a gap before event {batch.first}", batch.first)
        if len(rows) != batch.last - batch.first + 1:
            missing = batch.last - batch.first + 1 - len(rows)
            self.tell(f"events {batch.first} to {batch.last}: {missing} are missing", batch.first)
        for before, until in batch.taken:
            if self._positions.get(until >> SHIFT, until >> SHIFT << SHIFT) != before:
                self.tell(
                    f"events {batch.first} to {batch.last} were taken twice, or not at all", batch.first
                )
            self._positions[until >> SHIFT] = until
        for seq, row in enumerate(rows, batch.first):
            if not row.intact:
                self.tell(f"event {seq} is not what was written", seq)
        chain = batch_digest(self._digest, batch.first, batch.taken, batch.model, rows)
        if chain != batch.digest:
            self.tell(f"events {batch.first} to {batch.last} are not what was written", batch.first)
        self._digest, self._last, self._version = batch.digest, batch.last, batch.version

    def finish(self) -> None:
        row = self.connection.execute(f"SELECT count(*) FROM ({WAITING}) e").fetchone()
        self.waiting = 0 if row is None else int(row[0])
        for writer, taken in self.connection.execute("SELECT writer, taken FROM writers"):
            if self._positions.get(writer, writer << SHIFT) != taken:
                self.tell(f"writer {writer}: {taken} is not how far its events were taken")
        for seq in self.snapshots:
            try:
                self.past.snapshot(seq)
            except JournalDamaged as error:
                self.tell(str(error))
        now = load_published(self.connection)
        if self._unlike and now is not None and now.version == self._version:
            self._settle(now.parts["model"])
        self.broken += self._unlike

    # ------------------------------------------------------------ the model

    def _learn(self, batch: Batch, rows: list[Row]) -> None:
        if batch.last <= self._over:
            return
        notes = notes_of(self.connection, rows)
        self.model.noted = notes
        self._check_decisions(rows)
        try:
            made = self.model.take(rows, batch.taken)
        except ErasedPast:
            self._jump(batch)
            return
        plain = {number: {k: v for k, v in note.items() if k != "erased"} for number, note in notes.items()}
        if made != plain:
            odd = next(number for number in {*made, *plain} if made.get(number) != plain.get(number))
            self.tell(f"what the learner noted of event {odd} does not come out again", batch.first)
        own = model_bytes(self.model.learner)
        self._keep(batch.version, own)
        if digest(own) == batch.model:
            self.checked.append(batch.last)
        else:
            self._unlike.append(batch.last)
        if batch.last in self.snapshots:
            self._settle(self.past.snapshot(batch.last).parts["model"])

    def _settle(self, kept: bytes) -> None:
        """A whole model tells whether the bits that were not met differ by roundings."""
        own = model_bytes(self.model.learner)
        if self._unlike:
            (self.near if nearly_same_model(own, kept) else self.broken).extend(self._unlike)
            self._unlike = []
        elif own != kept:
            self.broken.append(self.model.seq)

    def _jump(self, batch: Batch) -> None:
        later = next((seq for seq in self.snapshots if seq >= batch.last), None)
        if later is None:
            raise JournalDamaged(f"events up to {batch.last} were erased, and no snapshot after them is left")
        self.model._take(self.past.snapshot(later))
        self.jumps.append(later)
        self._over = later
        last = batch_ending(self.connection, later)
        assert last is not None
        self._keep(last.version, model_bytes(self.model.learner))

    # ------------------------------------------------------------ decisions

    def _keep(self, version: int, data: bytes) -> None:
        self._files[version] = data
        if len(self._files) > AT_HAND:
            gone, _ = self._files.popitem(last=False)
            self._learners.pop(gone, None)

    def _check_decisions(self, rows: list[Row]) -> None:
        for row in rows:
            if row.kind == DECISION and row.number >> SHIFT:
                body = row.body
                learner = None if row.x is None else self._at(body["model"])
                if learner is None:
                    self.unchecked += 1
                else:
                    self.different[self._again(learner, row, body)] += 1

    def _at(self, version: int) -> Learner | None:
        """The learner as of a version; None where the past was erased, or is before the start."""
        if version not in self._files:
            data = self._rebuilt(version)
            if data is None:
                return None
            self._files[version] = data
            self._files.move_to_end(version, last=False)
        if version not in self._learners:
            self._learners[version] = learner_from(self._files[version])
        return self._learners[version]

    def _rebuilt(self, version: int) -> bytes | None:
        """Some process decided with a model that was long past: it was paused."""
        if version < self.first:
            return None
        old = self._begun()
        try:
            for batch in self.batches():
                if batch.version > version:
                    break
                rows = batch_rows(self.connection, batch)
                old.noted = notes_of(self.connection, rows)
                old.take(rows, batch.taken)
        except ErasedPast:
            return None
        return model_bytes(old.learner)

    def _again(self, learner: Learner, row: Row, body: dict[str, Any]) -> str:
        assert row.x is not None
        x = unpack_row(row.x, body["width"])
        how_many, numbers = body["asked"], body["moment"]
        made, _, moved = decide_at(learner, x, body["eligible"], how_many, body["round"], numbers)
        how = compare(made, body)
        return BITS if how == SAME and moved != body["moved"] else how


def _walk(address: Address, *, learner: str | None, from_start: bool, learn: bool, tick: Tick | None) -> Walk:
    connecting = address.connect("superarm replays", patience=0.0)
    # one transaction: one moment of the journal, also if others go on writing
    with connecting as connection, failures(address), connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        meta = meta_of(connection, address)
        if not meta:
            raise JournalForeign.must("journal", "superarm", "a superarm journal", str(address))
        load_class(meta, learner)
        walk = Walk(connection, address, from_start=from_start)
        for batch in walk.batches():
            count = walk.step(batch, learn=learn)
            if tick is not None:
                tick(count)
        walk.finish()
    return walk


def _replayed(walk: Walk) -> Replayed:
    return Replayed(
        learner=walk.model.learner,
        start=walk.start,
        events=walk.events,
        sets=walk.different[SETS] + walk.model.different[SETS],
        odds=walk.different[ODDS] + walk.model.different[ODDS],
        bits=walk.different[BITS] + walk.model.different[BITS],
        checked=tuple(walk.checked),
        near=tuple(walk.near),
        broken=tuple(walk.broken),
        jumps=tuple(walk.jumps),
        sha256=hashlib.sha256(model_bytes(walk.model.learner)).hexdigest(),
    )


def replay(
    address: Address, *, from_start: bool = False, learner: str | None = None, tick: Tick | None = None
) -> Replayed:
    """Learn again in the recorded order, from the oldest kept snapshot on, or from the very first event.

    Every published model is met on the way, and every decision that was made with one of them.
    """
    walk = _walk(address, learner=learner, from_start=from_start, learn=True, tick=tick)
    if walk.problems:
        raise JournalDamaged(walk.problems[0], event=walk.damaged[0] if walk.damaged else None)
    return _replayed(walk)


def verify(
    address: Address, *, learner: str | None = None, with_replay: bool = True, tick: Tick | None = None
) -> Verified:
    """Look at everything; the journal may be in use."""
    walk = _walk(address, learner=learner, from_start=True, learn=with_replay, tick=tick)
    done = None
    if with_replay:
        done = _replayed(walk)
        if done.sets:
            walk.tell(f"{done.sets} decisions come out with another set when replayed")
        if done.odds:
            walk.tell(f"{done.odds} decisions come out with other odds when replayed")
        for seq in done.broken[:MOST_TOLD]:
            walk.tell(f"the model after event {seq} is not met by replay")
    found = tuple(walk.problems), tuple(walk.damaged)
    return Verified(walk._last, walk.erased, len(walk.snapshots), 0, *found, done, walk.waiting)
