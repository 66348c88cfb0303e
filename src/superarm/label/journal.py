"""The journal of a labelling: events of `superarm.journal`. (projector.py says what each of them does.)

    ANSWER      somebody answered about the item whose key is the event's id
    CORRECTION  an answer was taken back (``about`` is its number)
    CHANGE      labels or people have changed; or the rows of the table, or the target

What a labelling was made for is in the journal's meta: kind "labelling", labels, and the options that must stay.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from superarm._types import JsonObject
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, AnswerBody, Event
from superarm.journal.snapshots import made_by
from superarm.journal.store import Snapshot, Store, create_journal, is_url, journal_exists, open_store
from superarm.label.rows import LabelRows

KIND = "labelling"


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """What a labelling is made for.

    Attributes:
        labels: those to begin with; None takes the journal's.
        yes_no, seed: what must stay as it is.
        target, twice: those of the last time.
        rows, read_options: where the rows are, and how they are read.
        keys: of the items; None in a journal that was never opened.
    """

    labels: list[str] | None
    yes_no: bool
    seed: int
    target: float = 0.99
    twice: float = 0.0
    rows: str = ""
    read_options: JsonObject = field(default_factory=dict)
    keys: list[str] | None = None


def read_settings(where: str | Path) -> LabelSettings:
    """What the labelling in a journal was made for, and last opened with."""
    if not journal_exists(where):
        raise InvalidInput(f"no such journal: {where}")
    with closing(open_store(where, read_only=True)) as store:
        meta = store.meta()
        if meta.get("kind") != KIND:
            got = f"that of a {meta.get('kind')}"
            raise JournalMismatch.must("journal", "superarm label", "the journal of a labelling", got)
        names = ("labels", "yes_no", "seed", "rows", "read_options")
        if missing := [name for name in names if name not in meta]:
            fault = f"the settings in {where} have another layout, without {', '.join(missing)}"
            raise JournalMismatch(f"{fault}: another version of superarm made it; begin a new journal")
        settings = {name: meta[name] for name in names}
        for event in store.changes():
            if event.body["what"] in ("target", "rows"):
                settings |= {name: value for name, value in event.body.items() if name != "what"}
    return LabelSettings(**settings)


def create_label_journal(where: str | Path, meta: JsonObject) -> None:
    """A new journal, without events."""
    if not is_url(where) and Path(f"{where}-mark").exists():
        raise JournalMismatch(
            f"{where} was deleted, but {where}-mark is still there: delete both to begin anew"
        )
    create_journal(where, meta, Snapshot(0, meta["made"], {}, {}, made_by()))


class LabelJournal:
    """Events in their order, in a store or in memory.

    Args:
        where: a file or an address; None keeps them in memory.
        rows: the rows of the table as it is now.
        settings: what the labelling is for.
        target, twice: those of now; None keeps what the journal has.
        read_only: write nothing, and leave it to others: it may be in use.

    Attributes:
        labels: those that it began with.
        target, twice: those of now.
        is_new: whether there was no journal before.
        n_added, n_gone: how many items are new since the last time, and how many are not there any more.
        seq: the number of the last event that was read.
    """

    def __init__(
        self,
        where: str | Path | None,
        rows: LabelRows,
        settings: LabelSettings,
        target: float | None = None,
        twice: float | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.where, self.seq, self.n_added, self.n_gone = where, 0, 0, 0
        self.store: Store | None = None
        self._memory: list[Event] = []
        self._is_closed = False
        self.is_new = where is None or not journal_exists(where)
        if self.is_new:
            if read_only:
                raise InvalidInput(f"no such journal: {where}")
            if settings.labels is None or len(settings.labels) < 2:
                wanted = "given: a file with a label a line, or a column that holds at least two"
                raise InvalidInput.must("labels", "superarm label", wanted, settings.labels)
            self.labels = settings.labels
        saved = settings if where is None or self.is_new else read_settings(where)
        self.target = saved.target if target is None else target
        self.twice = saved.twice if twice is None else twice
        if where is None:
            return
        if self.is_new:
            meta = {"kind": KIND, "made": time.time(), "labels": settings.labels, "seed": settings.seed}
            meta |= {"yes_no": settings.yes_no, "rows": rows.name, "read_options": rows.read_options}
            create_label_journal(where, meta)
        self.store = open_store(where, read_only=read_only)
        try:
            self._compare(saved, settings, rows)
        except BaseException:
            self.close()
            raise

    def _compare(self, saved: LabelSettings, settings: LabelSettings, rows: LabelRows) -> None:
        """Refuse options that must stay as they were; find rows that came or went; keep what is new."""
        for name in ("yes_no", "seed"):
            if getattr(settings, name) != getattr(saved, name):
                wanted = f"{getattr(saved, name)!r}, which {self.where} was made for"
                raise JournalMismatch.must(name, "superarm label", wanted, getattr(settings, name))
        self.labels = saved.labels or []
        old_keys, keys = set(saved.keys or ()), set(rows.keys)
        if saved.keys is not None:
            self.n_added, self.n_gone = len(keys - old_keys), len(old_keys - keys)
        if old_keys and not keys & old_keys:
            raise JournalMismatch(
                f"none of the rows of {self.where} is in {rows.name}: it is that of another table"
            )
        if self.store is None or self.store.read_only:
            return
        if keys != old_keys:
            self.change({"what": "rows", "keys": rows.keys})
        if (self.target, self.twice) != (saved.target, saved.twice):
            self.change({"what": "target", "target": self.target, "twice": self.twice})

    def rows_changed(self) -> str:
        """What has become of the table since the last time, for people; empty if it is as it was."""
        if not self.n_added and not self.n_gone:
            return ""
        change = (
            f"since the last time {self.n_added:,} rows are new, and {self.n_gone:,} are gone or were changed"
        )
        return f"WARNING: {change}; answers about those are not in view" if self.n_gone else change

    # ------------------------------------------------------------ writing and reading

    def answer(self, answers: Sequence[tuple[str, AnswerBody]]) -> None:
        """Keep answers, each about the item with a key."""
        now = time.time()
        self._append([Event.new(now, ANSWER, body, key) for key, body in answers])

    def take_back(self, key: str, seq: int, by: str) -> None:
        """Keep that an answer does not hold."""
        self._append([Event.new(time.time(), CORRECTION, AnswerBody(about=seq, by=by), key)])

    def change(self, change: JsonObject) -> None:
        """Keep a change."""
        self._append([Event.new(time.time(), CHANGE, change)])

    def _append(self, events: list[Event]) -> None:
        if self._is_closed:
            raise JournalUnavailable(f"the labelling in {self.where} was closed: open it again")
        if self.store is None:
            for event in events:
                event.seq = len(self._memory) + 1
                self._memory.append(event)
        elif self.store.read_only:
            raise InvalidInput.must("read_only", "Labelling", "False to answer or change anything", True)
        else:
            self.store.append(events)

    def new_events(self) -> list[Event]:
        """The events that were not read yet: also those of other processes."""
        if self.store is None:
            events = self._memory[self.seq :]
        else:
            events = [] if self.store.head().seq == self.seq else list(self.store.events(self.seq))
        if events:
            self.seq = events[-1].seq
        return events

    def close(self) -> None:
        """Close the store; nothing can be kept any more."""
        self._is_closed = True
        if self.store is not None:
            self.store.close()
            self.store = None
