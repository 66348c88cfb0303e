"""Whether the write-ahead log beside a journal is its own, and whether the journal is as long as its mark.

SQLite takes any `-wal` that has the right name. One that was left beside a restored file may even be right: if it
holds all that came after the copy, the journal is whole. If it does not, pages of two moments are mixed: some events
after the last one of the file itself are missing, or the indexes do not know them. So these are looked at before
anything is written; and where the mark is that of another copy, the log is refused at once.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from superarm.journal.errors import JournalDamaged
from superarm.journal.mark import read_copy, read_mark
from superarm.journal.store import Head

if TYPE_CHECKING:
    from superarm.journal.sqlite import SqliteStore

AT_ONCE = 1_000  # events
COPY = "copy"  # the progress that tells which copy of a journal this is


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def foreign_log(path: Path, what: object) -> JournalDamaged:
    return JournalDamaged(
        f"journal {path} cannot be read: {what}. If it was restored, take the files {path.name}-wal "
        "and -shm of the one before it away; else go back to a backup"
    )


def check_mark(path: Path, head: Head) -> None:
    """Refuse a journal that is shorter than it has been."""
    mark, seq = read_mark(path), head.seq
    if mark is None:
        return
    ending = "Go back to a backup, or accept it: superarm verify --accept-loss"
    if mark.seq > seq:
        raise JournalDamaged(
            f"journal {path} has lost its last events: {mark.seq:,} were durable, it ends after {seq:,}. {ending}"
        )
    if mark.seq == seq and mark.digest != head.digest:
        raise JournalDamaged(
            f"journal {path} ends with another event {seq:,} than the one that was durable. {ending}"
        )


def check_log(store: SqliteStore, *, any_copy: bool = False) -> None:
    """Refuse a log that does not go on where the file itself ends; no other process may be writing.

    Args:
        store: the journal, with its log.
        any_copy: whole is enough, even if the log was another copy's.
    """
    log = log_of(store.path)
    if not log.exists() or log.stat().st_size == 0:
        return
    after, copy = _end_of_file(store.path)
    known_copy = read_copy(store.path)
    if not any_copy and None not in (copy, known_copy) and copy != known_copy:
        raise foreign_log(store.path, "its log was written for another copy of it")
    try:
        if after is None:  # it was copying the log into the file when it ended
            for sentence in store.integrity():
                raise foreign_log(store.path, sentence)
            after = 0
        if any(note.seq > store.head().seq for note in store.snapshots()):
            raise foreign_log(store.path, "it has a snapshot of events that it has not")
        events = store.events(min(after, store.head().seq))
        while some := list(islice(events, AT_ONCE)):
            named = {event.id for event in some if event.id}
            by_id = store.find(list(named))
            indexed = {event.seq for of_id in by_id.values() for event in of_id}
            for event in some:
                if event.id and event.seq not in indexed:
                    raise foreign_log(store.path, f"event {event.seq} is not in its index")
    except JournalDamaged as error:
        if error.event is None:
            raise
        raise foreign_log(store.path, error) from error


def _end_of_file(path: Path) -> tuple[int | None, int | None]:
    """The last event of the file without its log, and which copy it is; None if that cannot be read."""
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            last = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
            copy = connection.execute("SELECT max(value) FROM progress WHERE key = ?", (COPY,)).fetchone()[0]
            return int(last or 0), int(copy or 0)
    except (sqlite3.Error, ValueError):
        return None, None
