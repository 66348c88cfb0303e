"""Forgetting people: features and context of decisions, wherever they are kept.

What is left of an event is its number, time, id, what was shown and with what odds, what was answered, and
the digest of what was erased: the chain still verifies. 1 and 2 in either order, then the others:

    1. a snapshot of now, since nothing can be replayed across an erased event
    2. new archive files without the content, on the disk
    3. one transaction: contents gone from the events, the new files listed, the change noted, and
       snapshots dropped that stand so near to an erased event that they tell its row
    4. the old archive files taken away, and the log emptied (secure_delete zeroes what SQLite frees)

A crash before 3 leaves all as it was, and after it `tidy` takes away what is left over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.service.core import archive
from superarm.service.core.events import DECISION
from superarm.service.core.faults import JournalDown, UnknownDecision
from superarm.service.core.files import remove
from superarm.service.core.journal import Place
from superarm.service.core.operating import note
from superarm.service.core.schema import connect, down

if TYPE_CHECKING:
    from superarm.service.core.session import Session

__all__ = ["NEAR", "RETAIN_EVERY", "Erasure", "erase"]

RETAIN_EVERY = 3600.0  # seconds between two looks for what is too old to be kept
NEAR = 100  # events: two snapshots with fewer between them may tell what a single row was


class Erasure:
    """Erases in steps that a running service can take in turn.

    Make it in a turn, call `write` in any thread, `apply` in a turn, and `finish` after its commit.
    """

    def __init__(self, session: Session, ids: Iterable[str] | None, before: float | None) -> None:
        self.session, self.before = session, before
        self.ids = None if ids is None else list(dict.fromkeys(ids))
        self._places: list[Place] = []
        for id_ in self.ids or ():
            place = session.journal.place(id_)
            if place is None:
                raise UnknownDecision.must("id", "erase", "that of a decision", id_)
            self._places.append(place)
        self._new: list[tuple[str, tuple[Any, ...]]] = []  # old file, and the row of the new one
        self.seqs: list[int] = []  # events that lose their content

    def write(self) -> Erasure:
        """Write the archives anew that hold any of it."""
        journal = self.session.journal
        wanted = {place.seq for place in self._places}
        connection = connect(journal.path, write=False)
        try:
            sql = "SELECT last, first, file, sha256, digest, oldest, contents FROM archives ORDER BY last"
            listed = connection.execute(sql).fetchall()
            archived = listed[-1][0] if listed else 0
            if self.before is None:
                sql = "SELECT 1 FROM events WHERE seq = ? AND x IS NOT NULL"
                here = (seq for seq in wanted if seq > archived)
                self.seqs = sorted(seq for seq in here if connection.execute(sql, (seq,)).fetchone())
            else:
                sql = "SELECT seq FROM events WHERE kind = 1 AND time < ? AND x IS NOT NULL AND seq > ?"
                self.seqs = [row[0] for row in connection.execute(sql, (self.before, archived))]
        finally:
            connection.close()
        for row in listed:
            last, first, _, _, _, oldest, contents = row
            inside = any(first <= seq <= last for seq in wanted)
            if contents and (inside if self.before is None else oldest < self.before):
                self._rewrite(row, wanted)
        return self

    def _rewrite(self, row: Sequence[Any], wanted: set[int]) -> None:
        last, first, file, sha256, chain, oldest, _ = row
        journal = self.session.journal
        events, erased = [], 0
        contents = 0
        for event in archive.read(journal, file, sha256, first - 1, last):
            gone = event.seq in wanted if self.before is None else event.time < self.before
            if event.kind == DECISION and event.x is not None:
                if gone:
                    event.x = event.context = None
                    self.seqs.append(event.seq)
                    erased += 1
                else:
                    contents += 1
            events.append(tuple(getattr(event, name) for name in event.__slots__))
        if erased:
            stem, _, version = Path(file).stem.partition(".")
            name = f"{stem}.{int(version or 0) + 1}.parquet"
            try:
                digest = archive.write_events(archive.folder(journal.path) / name, events)
            except OSError as error:
                raise down(journal.path, error) from error
            self._new.append((file, (last, first, name, digest, chain, oldest, contents)))

    def apply(self) -> int:
        """All of it in the transaction under way; how many decisions."""
        session, journal = self.session, self.session.journal
        if not self.seqs:
            return 0
        told = {"what": "erase", "erased": len(self.seqs), "before": self.before}
        note(session, told | {"ids": None if self.ids is None else len(self.ids)})
        with session.writing():
            for seq in self.seqs:
                journal.write("UPDATE events SET x = NULL, context = NULL WHERE seq = ? AND kind = 1", (seq,))
            for _, row in self._new:
                journal.write("INSERT OR REPLACE INTO archives VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            journal.drop_snapshots(self._telling(journal.snapshots()))
        session._entries.clear()
        return len(self.seqs)

    def _telling(self, kept: list[int]) -> list[int]:
        """Snapshots to drop: of two with few events between them, one of these erased, the later."""
        newest = kept[-1]
        closed = [place.closed for place in self._places if place.closed is not None]
        moved = sorted({*self.seqs, *closed})
        near = [(a, b) for a, b in pairwise(kept) if b - a < NEAR and any(a < seq <= b for seq in moved)]
        return sorted({b if b != newest else a for a, b in near} - {0})

    def finish(self) -> None:
        """Take away what the disk still has of it."""
        journal = self.session.journal
        try:
            for file, _ in self._new:
                remove(archive.folder(journal.path) / file)
            journal.empty_log()
        except OSError as error:
            raise error if isinstance(error, JournalDown) else down(journal.path, error) from error


def erase(session: Session, ids: Iterable[str] | None, before: float | None) -> int:
    """Forget features and context of these decisions, or of all made before a time; how many."""
    session._writable()
    session.snapshot()
    session.commit()
    work = Erasure(session, ids, before).write()
    count = work.apply()
    session.commit()
    if count:
        work.finish()
    return count
