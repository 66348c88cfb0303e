"""Is a journal what was written? Checksums, chain, archives, index, and every snapshot met by replay."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superarm.service.core import archive
from superarm.service.core.events import CHANGE, DECISION, TIMEOUT, Event
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.files import digest_of
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Place
from superarm.service.core.mark import is_damaged, read_mark
from superarm.service.core.replay import Replayed, replay
from superarm.service.core.sqlite import SqliteJournal

__all__ = ["Verified", "accept_loss", "verify"]

MOST_TOLD = 20  # of one kind of damage


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of looking at everything."""

    events: int
    erased: int  # decisions whose features and context were erased
    snapshots: int
    archives: int
    problems: tuple[str, ...]  # one sentence for each damage
    damaged: tuple[int, ...]  # the numbers of damaged or missing events
    replayed: Replayed | None  # None if the journal was too damaged, or it was not asked for
    waiting: int = 0  # events of a shared journal that the learner has not taken yet

    @property
    def sound(self) -> bool:
        return not self.problems


def verify(
    path: str | Path,
    *,
    learner: str | None = None,
    with_replay: bool = True,
    tick: Callable[[int], Any] | None = None,
) -> Verified:
    """Look at everything in a journal; it may be in use.

    Args:
        path: the journal.
        learner: ``file.py:Class``, if the journal's learner is in a file of yours.
        with_replay: also replay all events that are left, from the first, and meet every snapshot.
        tick: called with the number of events replayed since the last call.
    """
    try:
        journal = SqliteJournal(path, read_only=True, accept_loss=True)
    except JournalDamaged as error:
        damaged = () if error.event is None else (error.event,)
        return Verified(0, 0, 0, 0, (str(error),), damaged, None)
    try:
        return _look(journal, learner, with_replay, tick)
    finally:
        journal.close()


def _look(journal: SqliteJournal, learner: str | None, with_replay: bool, tick: Any) -> Verified:
    problems: list[str] = []
    damaged: list[int] = []
    erased = 0

    def tell(sentence: str) -> None:
        problems.append(sentence)

    for sentence in (*_database(journal), *_mark(journal), *_archives(journal)):
        tell(sentence)
    places: dict[str, Place] = {}
    changes: list[int] = []
    try:
        for event, fault in _chain(journal):
            if fault:
                damaged.append(event)
                if len(damaged) <= MOST_TOLD:
                    tell(f"event {event} {fault}")
            else:
                erased += fault is None and event.erased
                _follow(event, places, changes)
    except (JournalDamaged, sqlite3.DatabaseError) as error:
        tell(str(error))
    if not problems:
        problems += _index(journal, places, changes)
    for seq in journal.snapshots():
        try:
            journal.snapshot(seq)
        except JournalDamaged as error:
            tell(str(error))
    done = None
    if not problems and with_replay:
        try:
            done = replay(journal, from_start=True, learner=learner, tick=tick)
            if done.sets:
                tell(f"{done.sets} decisions come out with another set when replayed")
            if done.odds:
                tell(f"{done.odds} decisions come out with other odds when replayed")
            problems += [f"the snapshot after event {seq} is not met by replay" for seq in done.broken]
        except JournalDamaged as error:
            tell(str(error))
    listed = journal.reader.execute("SELECT count(*) FROM archives").fetchone()[0]
    snapshots = len(journal.snapshots())
    return Verified(journal.seq, erased, snapshots, listed, tuple(problems), tuple(damaged), done)


def _database(journal: SqliteJournal) -> Iterator[str]:
    """SQLite's own opinion of its pages and indexes."""
    try:
        for (found,) in journal.reader.execute("PRAGMA integrity_check(20)"):
            if found != "ok":
                yield f"the database is damaged: {found}"
    except sqlite3.DatabaseError as error:
        yield f"the database is damaged: {error}"


def _mark(journal: SqliteJournal) -> Iterator[str]:
    mark = read_mark(journal.path)
    path = journal.path.with_name(journal.path.name + "-mark")
    if mark is None:
        if is_damaged(journal.path):
            yield f"the mark {path} is damaged (the next start writes it anew)"
    elif mark.seq > journal.seq:
        yield f"the last events are lost: {mark.seq} were durable, the journal ends after {journal.seq}"
    else:
        try:
            if journal.digest_at(mark.seq) != mark.digest:
                yield f"event {mark.seq} is not the one that was durable"
        except (JournalDamaged, sqlite3.DatabaseError) as error:
            yield f"event {mark.seq}, which was durable, cannot be read: {error}"


def _archives(journal: SqliteJournal) -> Iterator[str]:
    expected = 1
    for first, last, file, sha256 in journal.reader.execute(
        "SELECT first, last, file, sha256 FROM archives ORDER BY last"
    ):
        path = archive.folder(journal.path) / file
        if first != expected:
            yield f"the archive of events {expected} to {first - 1} is missing"
        expected = last + 1
        try:
            if digest_of(path) != sha256:
                yield f"archive {path} is not what was written"
        except OSError as error:
            yield f"archive {path} cannot be read: {error.strerror}"


def _chain(journal: SqliteJournal) -> Iterator[tuple[Any, str | None]]:
    """(event, None) for a sound event, (its number, what is wrong) for another."""
    before, expected = journal.digest_at(0), 1
    for event in journal.unchecked():
        while expected < event.seq:
            yield expected, "is missing"
            expected, before = expected + 1, b""
        # after a gap the chain goes on from what the event itself says
        if before and not event.follows(before):
            yield event.seq, "is not what was written"
        else:
            yield event, None
        before, expected = event.digest, event.seq + 1
    for seq in range(expected, journal.seq + 1):
        yield seq, "is missing"


def _follow(event: Event, places: dict[str, Place], changes: list[int]) -> None:
    if event.kind == CHANGE:
        changes.append(event.seq)
    elif event.kind == DECISION:
        places[event.id] = Place(event.id, event.seq, event.time, OPEN, None)
    elif event.id in places:
        before = places[event.id]
        state = LATE if before.state == EXPIRED else ANSWERED
        state = EXPIRED if event.kind == TIMEOUT else state
        places[event.id] = before._replace(state=state, closed=event.seq)


def _index(journal: SqliteJournal, places: dict[str, Place], changes: list[int]) -> Iterator[str]:
    wrong = [id_ for id_, place in places.items() if journal.place(id_) != place]
    if wrong:
        yield f"the index is wrong about {len(wrong)} decisions, such as {wrong[0]}"
    known = journal.reader.execute("SELECT count(*) FROM decisions").fetchone()[0]
    if known > len(places):
        yield f"the index knows {known} decisions, and {len(places)} were made"
    if [row[0] for row in journal.reader.execute("SELECT seq FROM changes ORDER BY seq")] != changes:
        yield "the list of changes is wrong"


def accept_loss(path: str | Path) -> tuple[int, int]:
    """Let a journal go on without the events it has lost: how many were durable, and how many are left."""
    mark = read_mark(Path(path).resolve())
    journal = SqliteJournal(path, accept_loss=True)  # (opening it has written the mark anew)
    try:
        return (journal.seq if mark is None else mark.seq), journal.seq
    finally:
        journal.close()
