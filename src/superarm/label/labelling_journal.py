"""The journal of a labelling: its settings, and events of `superarm.journal`, which state.py applies.

    ANSWER      a person answered about the item whose key is the event's id
    CORRECTION  an answer was taken back (``target_seq`` is its number)
    CHANGE      labels or people have changed; or the rows of the table, or the settings

What a labelling was made for is in the journal's meta: kind "labelling", and its settings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import asdict, replace

from superarm._types import Frame, JsonObject
from superarm.errors import InvalidInput, Unquoted
from superarm.journal.backends import create_journal, is_postgres, journal_exists, open_store
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, AnswerBody, Event
from superarm.journal.snapshots import made_by
from superarm.journal.store import JournalStore, Snapshot
from superarm.label.names import OWNER
from superarm.label.rows_to_label import RowsToLabel
from superarm.parameters import check_int, check_number, check_share

KIND = "labelling"  # of journal, in its meta
FIXED_SETTINGS = ("yes_no", "seed")  # settings with which a journal is made, and which cannot change in it


class LabellingSettings(Struct, frozen=True, kw_only=True):
    """What a labelling is made for.

    Attributes:
        labels: the names of the labels to begin with.
        rows: where the rows are.
        read_options: how the rows are read: arguments of `RowsToLabel.read`.
        target: the share of labels that shall be right; 1: every row is asked about.
        yes_no: whether questions are answered with yes or no.
        max_labels: how many labels a question shows at most.
        show: the columns that people see; all, if empty.
        second_opinion_share: the share of rows that are asked about a second time.
        seed: for the order of rows and for the model.
    """

    labels: list[str]
    rows: str
    read_options: JsonObject
    yes_no: bool = False
    seed: int = 0
    target: float = 0.99
    max_labels: int = 5
    show: list[str] = field(default_factory=list)
    second_opinion_share: float = 0.0

    def __post_init__(self) -> None:
        check_number("target", OWNER, self.target, 0.0)
        if not 0.5 <= self.target <= 1.0:
            raise InvalidInput.must("target", OWNER, "a share of right labels from 0.5 to 1", self.target)
        check_share("second_opinion_share", OWNER, self.second_opinion_share)
        check_int("max_labels", OWNER, self.max_labels, 1)
        check_int("seed", OWNER, self.seed, 0)


def create_labelling_journal(where: str | Path, meta: JsonObject) -> None:
    """Create a journal without events."""
    if not is_postgres(where) and Path(f"{where}-mark").exists():
        raise JournalMismatch(
            f"{where} was deleted, but {where}-mark is still there: delete both to begin anew"
        )
    create_journal(where, meta, Snapshot(0, meta["made"], {}, {}, made_by()))


def read_settings(store: JournalStore) -> tuple[LabellingSettings, list[str] | None]:
    """Return the settings of the labelling in a journal, as they are now, and the keys of its items."""
    meta = store.meta()
    keys = None
    if meta.get("kind") != KIND:
        got = Unquoted(f"that of a {meta.get('kind')}")
        raise JournalMismatch.must("journal", "superarm label", "the journal of a labelling", got)
    for event in store.changes():
        if event.body["what"] == "settings":
            meta |= event.body
        elif event.body["what"] == "rows":
            keys = event.body["keys"]
    try:
        return convert(meta, LabellingSettings), keys
    except ValidationError as error:
        problem = f"the settings in {store.name} have another layout ({error})"
        raise JournalMismatch(
            f"{problem}: another version of superarm made it; begin a new journal"
        ) from error


class LabellingJournal:
    """Events in their order, in a store or in memory.

    Args:
        where: a file or an address; None keeps them in memory.
        read_only: write nothing, and leave it to others: it may be in use.

    Attributes:
        saved_settings: those that it was last opened with; None of a new one.
        rows_added: a sentence on rows that are new since the last time; empty if none is, or some are gone.
        seq: the number of the last event that was read.
    """

    def __init__(self, where: str | Path | None, *, read_only: bool = False) -> None:
        self.where = where
        self.read_only = read_only
        self.seq = 0
        self.rows_added = ""
        self.store: JournalStore | None = None
        self.saved_settings: LabellingSettings | None = None
        self._keys: list[str] | None = None
        self._memory: list[Event] = []
        self._is_closed = False
        if where is None:
            return
        if journal_exists(where):
            with closing(open_store(where, read_only=True)) as store:  # no lock before it is known what it is
                self.saved_settings, self._keys = read_settings(store)
            self._open(where)
        elif read_only:
            raise InvalidInput(f"no such journal: {where}")

    @classmethod
    def of(cls, journal: LabellingJournal | str | Path | None, read_only: bool) -> LabellingJournal:
        """Return a journal as it is, or the one that is somewhere."""
        return journal if isinstance(journal, LabellingJournal) else cls(journal, read_only=read_only)

    def _open(self, where: str | Path) -> None:
        """Open the store; to write it, as the only process: one serves all people."""
        self.store = open_store(where, read_only=self.read_only)
        try:
            if not self.read_only:
                self.store.ensure_alone()
        except BaseException:
            self.store.close()
            raise

    def find_rows(self, rows: Frame | str | Path | None = None) -> Frame | str:
        """Return where the rows are: as said, beside the journal, or else where they were when it was made.

        Rows in memory are returned as they are.
        """
        if self.saved_settings is None:
            raise InvalidInput(f"no such journal: {self.where}")
        earlier = self.saved_settings.rows
        if rows is not None and not isinstance(rows, str | Path):
            return rows
        paths = (Path(str(self.where)).parent / Path(earlier).name, Path(earlier))
        source = str(rows or "") or next((str(path) for path in paths if path.exists()), earlier)
        if source != "digits" and not Path(source).exists():
            problem = f"the rows of {self.where} are not there any more: {earlier}"
            raise InvalidInput(
                f"{problem}; rows= (on the command line --rows) says where they are, or holds them"
            )
        return source

    def read_rows(self, source: Frame | str | Path, **options: object) -> RowsToLabel:
        """Read the rows with these options of `RowsToLabel.read`; those that are left out are as in the journal."""
        saved = {} if self.saved_settings is None else self.saved_settings.read_options
        return RowsToLabel.read(source, **saved | {name: value for name, value in options.items() if value})

    def begin(self, rows: RowsToLabel, labels: list[str] | None, options: JsonObject) -> LabellingSettings:
        """Return the settings of the labelling, and keep what is new in them.

        Args:
            rows: of the table as it is now.
            labels: the labels to begin with; an existing journal keeps its own.
            options: other settings; those that are left out are as in the journal.
        """
        saved = self.saved_settings
        settings = self._create(rows, labels, options) if saved is None else self._replace(saved, options)
        if self.store is not None:
            self._compare_rows(rows)
            if saved is not None and saved != settings and not self.read_only:
                self.change({"what": "settings", **options})
        return settings

    def _create(self, rows: RowsToLabel, labels: list[str] | None, options: JsonObject) -> LabellingSettings:
        """Make a new journal, unless it is in memory, and return its settings."""
        if labels is None or len(labels) < 2:
            names = "a list of names (on the command line, a file with a label a line)"
            wanted = f"given: {names}, or a column that holds at least two"
            raise InvalidInput.must("labels", "superarm label", wanted, labels)
        settings = LabellingSettings(labels=labels, rows=rows.name, read_options=rows.read_options, **options)
        if self.where is not None:
            create_labelling_journal(self.where, {"kind": KIND, "made": time.time()} | asdict(settings))
            self._open(self.where)
        return settings

    def _replace(self, saved: LabellingSettings, options: JsonObject) -> LabellingSettings:
        """Return the saved settings with these options; an error if one of them cannot change."""
        settings = replace(saved, **options)
        for name in FIXED_SETTINGS:
            if getattr(settings, name) != getattr(saved, name):
                remedy = "another journal=, on the command line --journal, begins anew"
                wanted = f"{getattr(saved, name)!r}, which {self.where} was made with ({remedy})"
                raise JournalMismatch.must(name, "superarm label", wanted, getattr(settings, name))
        return settings

    def _compare_rows(self, rows: RowsToLabel) -> None:
        """Keep which rows there are, and warn of those that are gone; refuse a table that has none of them."""
        old_keys, keys = set(self._keys or ()), set(rows.keys)
        if old_keys and not keys & old_keys:
            problem = f"none of the rows of {self.where} is in {rows.name}"
            raise JournalMismatch(
                f"{problem}: it is that of another table, or of one that was read otherwise"
            )
        n_new, n_gone = len(keys - old_keys), len(old_keys - keys)
        if self._keys is not None and n_gone:
            change = f"since the last time {n_new:,} distinct rows are new, and {n_gone:,} gone or changed"
            warnings.warn(f"{change}; answers about those are not in view", stacklevel=4)
        elif self._keys is not None and n_new:
            self.rows_added = f"since the last time {n_new:,} distinct rows are new"
        if keys != old_keys and not self.read_only:
            self.change({"what": "rows", "keys": rows.keys})

    # ------------------------------------------------------------ writing and reading

    def answer(self, answers: Iterable[tuple[str, AnswerBody]]) -> None:
        """Append answers, each about the item with a key."""
        now = time.time()
        self._append([Event.new(now, ANSWER, body, key) for key, body in answers])

    def take_back(self, key: str, seq: int, by: str) -> None:
        """Append that an answer does not hold any more."""
        self._append([Event.new(time.time(), CORRECTION, AnswerBody(target_seq=seq, by=by), key)])

    def change(self, change: JsonObject) -> None:
        """Append a change."""
        self._append([Event.new(time.time(), CHANGE, change)])

    def _append(self, events: list[Event]) -> None:
        if self._is_closed:
            raise JournalUnavailable(f"the labelling in {self.where} was closed: open it again")
        if self.store is None:
            for event in events:
                event.seq = len(self._memory) + 1
                self._memory.append(event)
        elif self.read_only:
            raise InvalidInput.must("read_only", "Labelling", "False to answer or change anything", True)
        else:
            self.store.ensure_alone()
            self.store.append(events)

    def new_events(self) -> list[Event]:
        """Return the events that were not read yet: also those of other processes."""
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

    def __enter__(self) -> LabellingJournal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
