"""The journal of a labelling: events of `superarm.journal`. (history.py says what each of them does.)

    ANSWER      somebody answered about the row whose key is the event's id
    CORRECTION  an answer was taken back (``about`` is its number)
    CHANGE      labels or people have changed; or the rows of the table have (their keys)

What a labelling was made for is in the journal's meta: kind "labelling", labels, and the options that must stay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from superarm._files import BESIDE_JOURNAL, sync
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, AnswerBody, Event
from superarm.journal.journal_files import FileLock, discard
from superarm.journal.snapshots import made_by
from superarm.journal.store import Snapshot, Store, create_journal, is_url, journal_exists, open_store
from superarm.label.names import FILE, check_known_person
from superarm.label.rows import LabelRows

KIND = "labelling"


def read_meta(where: str | Path) -> dict[str, Any]:
    """What a labelling was made for: labels, options, rows (their name), reading, the last target and twice."""
    if not journal_exists(where):
        raise InvalidInput(f"no such journal: {where}")
    store = open_store(where, read_only=True)
    try:
        aims: dict[str, Any] = {"target": 0.99, "twice": 0.0}
        for event in store.changes():
            if event.body["what"] == "target":
                aims |= {name: event.body[name] for name in aims if name in event.body}
        return {**_check_kind(store.meta()), **aims}
    finally:
        store.close()


def erase_person(journal: str | Path, person: str) -> int:
    """Write a journal anew without one person's answers and name; how many answers that were.

    Nobody may be working on it. Labels that the person has added stay, without the name.
    """
    if is_url(journal):
        wanted = "a file (in a database, leave the person's answers out)"
        raise InvalidInput.must("JOURNAL", "superarm labels change --erase", wanted, "a database")
    read_meta(journal)  # it is one
    path = Path(journal).resolve()
    new = path.with_name(f".{path.name}.erasing")
    open_store(path).close()  # all of it is in the file itself, not in its log
    lock = FileLock(path)
    try:
        discard(*path.parent.glob(f"*.{path.name}.erasing*"))  # what a crash has left
        old = open_store(path, read_only=True)
        try:
            kept, erased, people = _without(person, old.events())
            check_known_person(person, people, "--erase", "superarm labels change")
            _create(new, old.meta())
        finally:
            old.close()
        store = open_store(new)
        try:
            store.append(kept)
        finally:
            store.close()
        # the database first: it is whole without the files beside it
        discard(*_beside(path))
        os.replace(new, path)  # noqa: PTH105
        for part, name in zip(_beside(new), _beside(path), strict=True):
            if part.exists():
                os.replace(part, name)  # noqa: PTH105
        sync(path.parent)
    finally:
        discard(*path.parent.glob(f"*.{path.name}.erasing*"))
        lock.close()
    return erased


def _without(person: str, events: Iterable[Event]) -> tuple[list[Event], int, set[str]]:
    """The events that stay, how many answers do not, and who has a name."""
    kept: list[Event] = []
    numbers: dict[int, int] = {}  # those of answers that stay: events are numbered anew
    erased, people = 0, set[str]()
    for event in events:
        body = event.body
        if event.kind == CHANGE:
            people |= {name for name in (body.get("person"), body.get("by")) if name}
            if body.get("person") == person:
                continue
            body = body | ({"by": ""} if body.get("by") == person else {})
        elif event.kind == ANSWER:
            people.add(body.by)
            if body.by == person:
                erased += 1
                continue
        elif event.kind == CORRECTION:
            if body.by == person or body.about not in numbers:
                continue
            body = AnswerBody(about=numbers[body.about], by=body.by)
        kept.append(Event.new(event.time, event.kind, body, event.id))
        numbers[event.seq] = len(kept)
    return kept, erased, people - {FILE, ""}


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in BESIDE_JOURNAL]


def _check_kind(meta: dict[str, Any]) -> dict[str, Any]:
    if meta.get("kind") != KIND:
        got = f"that of a {meta.get('kind')}"
        raise JournalForeign.must("journal", "superarm label", "the journal of a labelling", got)
    return meta


class LabelJournal:
    """Answers in their order, in a store or in memory.

    Args:
        where: a file or an address; None keeps them in memory.
        rows: the rows of the table as it is now.
        labels: those asked for; None takes the journal's.
        options: what must stay: yes_no, seed.
        read_only: write nothing, and leave it to others: it may be in use.

    Attributes:
        first_labels: those that it began with.
        is_new: whether there was no journal before.
        added, gone: how many rows of the table are new since the last time, and how many are not there any more.
        seq: how many events were applied to the state.
    """

    def __init__(
        self,
        where: str | Path | None,
        rows: LabelRows,
        labels: list[str] | None,
        options: dict[str, Any],
        *,
        read_only: bool = False,
    ) -> None:
        self._rows, self.seq, self.added, self.gone = rows, 0, 0, 0
        self.where: Any = where
        self.closed = False
        self._asked_labels = [] if read_only else labels or []
        self.store: Store | None = None
        self._memory: list[Event] = []
        self.is_new = where is None or not journal_exists(where)
        if self.is_new and read_only:
            raise InvalidInput(f"no such journal: {where}")
        if self.is_new:
            if labels is None or len(labels) < 2:
                wanted = "given: a file with a label a line, or a column that holds at least two"
                raise InvalidInput.must("labels", "superarm label", wanted, labels)
            self.first_labels = labels
            if where is None:
                return
            meta: dict[str, Any] = {"kind": KIND, "labels": labels, "made": time.time(), "options": options}
            meta |= {"rows": rows.name, "reading": rows.reading}
            _create(where, meta)
        assert where is not None
        self.store = open_store(where, read_only=read_only)
        try:
            meta = _check_kind(self.store.meta())
            for name, value in options.items():
                if value != meta["options"][name]:
                    wanted = f"{meta['options'][name]!r}, which {where} was made for"
                    raise JournalForeign.must(name, "superarm label", wanted, value)
            self.first_labels = list(meta["labels"])
            self._compare_rows()
        except BaseException:
            self.close()
            raise

    def _compare_rows(self) -> None:
        """Tell rows that are new, and those that are gone or were changed; keep today's keys, unless only reading."""
        assert self.store is not None
        kept = [event.body["keys"] for event in self.store.changes() if event.body["what"] == "rows"]
        if kept:
            before, now = set(kept[-1]), set(self._rows.keys)
            self.added, self.gone = len(now - before), len(before - now)
            if before and not now & before:
                raise JournalForeign(
                    f"none of the rows of {self.where} is in {self._rows.name}: it is that of another table"
                )
        if not self.store.read_only and (not kept or self.added or self.gone):
            self.change({"what": "rows", "keys": self._rows.keys})

    # ------------------------------------------------------------ writing

    def keep_aims(self, target: float, twice: float) -> None:
        """Keep what people want now, for those who only read."""
        if self.store is not None:
            meta, aims = read_meta(self.where), {"target": target, "twice": twice}
            if any(meta[name] != value for name, value in aims.items()):
                self.change({"what": "target", **aims})

    def answers(self, answers: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Keep answers, each about the row with a key."""
        now = time.time()
        self._append([Event.new(now, ANSWER, AnswerBody(about=0, **body), key) for key, body in answers])

    def take_back(self, key: str, seq: int, by: str) -> None:
        """Keep that an answer does not hold."""
        self._append([Event.new(time.time(), CORRECTION, AnswerBody(about=seq, by=by), key)])

    def change(self, change: dict[str, Any]) -> None:
        """Keep a change."""
        self._append([Event.new(time.time(), CHANGE, change)])

    def _append(self, events: list[Event]) -> None:
        if self.closed:
            raise JournalDown(f"the labelling in {self.where} was closed: open it again")
        if self.store is not None:
            if self.store.read_only:
                raise InvalidInput.must("read_only", "Labelling", "False to answer or change anything", True)
            self.store.append(events)
            return
        for event in events:
            event.seq = len(self._memory) + 1
            self._memory.append(event)

    # ------------------------------------------------------------ reading

    def news(self) -> list[Event]:
        """The events that were not applied yet: also those of other processes."""
        if self.store is None:
            return self._memory[self.seq :]
        return [] if self.store.head().seq == self.seq else list(self.store.events(self.seq))

    def add_labels(self, known: Collection[str]) -> None:
        """Add labels that are asked for and that it does not know."""
        for name in self._asked_labels:
            if name not in known:
                self.change({"what": "add label", "label": name, "by": ""})

    def rows_changed(self) -> str:
        """What has become of the table since the last time, for people; empty if it is as it was."""
        if not self.added and not self.gone:
            return ""
        change = (
            f"since the last time {self.added:,} rows are new, and {self.gone:,} are gone or were changed"
        )
        return f"WARNING: {change}; answers about those are not in view" if self.gone else change

    def close(self) -> None:
        self.closed = True
        if self.store is not None:
            self.store.close()
            self.store = None


def _create(where: str | Path, meta: dict[str, Any]) -> None:
    first = Snapshot(0, meta["made"], {}, {}, made_by())
    if not is_url(where) and Path(f"{where}-mark").exists():
        raise JournalForeign(
            f"{where} was deleted, but {where}-mark is still there: delete both to begin anew"
        )
    create_journal(where, meta, first)
