"""Is a file a journal, and has it lost anything? Its format, its mark (sqlite_files.py), and its write-ahead log.

SQLite drops the end of its log, without a word, from the first frame whose checksum is wrong; the mark says how far
the journal had come.

SQLite takes any `-wal` that has the right name. One that was left beside a restored file may even be right: if it
holds all that came after the copy, the journal is whole. If it does not, pages of two moments are mixed: some events
after the last one of the file itself are missing, or not in the indexes. So these are checked before
anything is written; and where the mark is that of another copy, the log is refused at once.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from superarm._files import JOURNAL_SIDECARS, is_sqlite_file
from superarm.journal.errors import JournalDamaged, JournalMismatch
from superarm.journal.events import ANSWER
from superarm.journal.sqlite_files import read_mark, sibling, unavailable_error
from superarm.journal.statements import check_format_number

if TYPE_CHECKING:
    from superarm.journal.sqlite import SqliteStore

COPY_ID = "copy"  # the progress that tells which copy of a journal this is
INDEX_BATCH = 1_000  # events


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no journal, is damaged, or of another format."""
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.OperationalError as error:
        raise unavailable_error(path, error) from error
    except sqlite3.DatabaseError as error:
        if is_sqlite_file(path):  # say, its end was cut off
            raise unreadable_error(path, error) from error
        raise JournalMismatch.must("journal", "superarm", "a superarm journal", str(path)) from error
    if not tables >= {"meta", "events", "snapshots"}:
        if path.stat().st_size == 0 and read_mark(path) is not None:
            raise unreadable_error(path, "it is empty")
        raise JournalMismatch.must("journal", "superarm", "a superarm journal", str(path))
    check_format_number(version, path)


def check_nothing_left(path: Path) -> None:
    """Refuse to make a journal beside what is left of one that is not there any more."""
    left = [file.name for ending in JOURNAL_SIDECARS if (file := sibling(path, ending)).exists()]
    if left and not path.exists():
        advice = "Put the journal back; or, for a new one, take these files away"
        raise JournalDamaged(f"journal {path} is missing, and {' and '.join(left)} of it left. {advice}")


def lost_end(store: SqliteStore) -> str | None:
    """Return what is lost of a journal that is shorter than it has been, or has another end; None if nothing is."""
    mark, seq = read_mark(store.path), store.head().seq
    if mark is not None and mark.seq > seq:
        return f"has lost its last events: {mark.seq:,} were durable, it ends after {seq:,}"
    if mark is not None and store.digest_at(mark.seq) != mark.digest:
        return f"has another event {mark.seq:,} than the one that was durable"
    return None


def check_mark(store: SqliteStore) -> None:
    """Refuse a journal whose end is lost."""
    if (lost := lost_end(store)) is not None:
        advice = "Go back to a backup, or accept it: superarm verify --accept-loss"
        raise JournalDamaged(f"journal {store.path} {lost}. {advice}")


def unreadable_error(path: Path, reason: object) -> JournalDamaged:
    """Return the error for a journal that cannot be read with the log beside it."""
    return JournalDamaged(
        f"journal {path} cannot be read: {reason}. If it was restored, take the files {path.name}-wal "
        "and -shm of the one before it away; else go back to a backup"
    )


def check_log(store: SqliteStore, *, any_copy: bool = False) -> None:
    """Refuse a log that does not go on where the file itself ends, or (unless ``any_copy``) was another copy's.

    No other process may be writing.
    """
    path, head = store.path, store.head().seq
    if store.log_bytes() == 0:
        return
    after, copy = _end_of_file(path)
    mark = read_mark(path)
    if not any_copy and mark is not None and None not in (copy, mark.copy) and copy != mark.copy:
        raise unreadable_error(path, "its log was written for another copy of it")
    try:
        if after is None:  # it was copying the log into the file when it ended
            if (problem := next(store.integrity(), None)) is not None:
                raise unreadable_error(path, problem)
            after = 0
        if store.newest_snapshot() > head:
            raise unreadable_error(path, "it has a snapshot of events that it has not")
        events = store.events(min(after, head))
        while chunk := list(islice(events, INDEX_BATCH)):
            seqs = {event.seq: event.id for event in chunk if event.kind < ANSWER}
            by_id = store.events_by_id([*seqs.values()])
            indexed = {event.seq for events_of_id in by_id.values() for event in events_of_id}
            if missing := seqs.keys() - indexed:
                raise unreadable_error(path, f"event {min(missing)} is not in its index")
    except JournalDamaged as error:
        if error.event is None:
            raise
        raise unreadable_error(path, error) from error


def _end_of_file(path: Path) -> tuple[int | None, int | None]:
    """Return the last event of the file without its log, and which copy it is; None if that cannot be read."""
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            last = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
            copies = "SELECT max(value) FROM progress WHERE key = ?"
            return int(last or 0), int(connection.execute(copies, (COPY_ID,)).fetchone()[0] or 0)
    except (sqlite3.Error, ValueError):
        return None, None
