"""Erase one person's answers: the journal is written anew without them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from superarm._files import JOURNAL_SIDECARS, atomic_path, delete_leftovers, discard
from superarm.errors import InvalidInput, Unquoted
from superarm.journal.backends import is_postgres, open_store
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, AnswerBody, Event
from superarm.journal.sqlite_files import FileLock, sibling, write_mark
from superarm.label.labelling_journal import LabellingJournal, create_labelling_journal
from superarm.label.names import TABLE_AS_PERSON, check_known_person


def erase_person(journal: str | Path, person: str) -> int:
    """Write a journal anew without one person's answers and name, and return how many answers that were.

    Nobody may be working on it. Labels that the person has added stay, without the name.
    """
    if is_postgres(journal):
        wanted = "a file (in a database, exclude the person)"
        raise InvalidInput.must("JOURNAL", "superarm labels change --erase", wanted, Unquoted("a database"))
    LabellingJournal(journal, read_only=True).close()  # refuses what is no labelling
    path = Path(journal).resolve()
    with closing(open_store(path)) as old:
        old.purge_erased()  # all of it is in the file itself, and not in its log
    lock = FileLock(path)
    try:
        delete_leftovers(path)  # what a crash has left
        with closing(open_store(path, read_only=True)) as old:
            events, n_erased, people = _without(person, old.events())
            check_known_person(person, people, "--erase", "superarm labels change")
            meta = old.meta()
        with atomic_path(path) as new:
            create_labelling_journal(new, meta)
            with closing(open_store(new)) as store:
                store.append(events)
                head = store.head()
                store.purge_erased()  # (its log does not get a name)
            _discard_sidecars(new)
            with closing(open_store(new, read_only=True)) as written:
                if written.head() != head:  # what the file itself has
                    raise JournalDamaged(f"journal {path} could not be written anew: it is as it was")
            _discard_sidecars(path)
        write_mark(path, head.seq, head.digest)
    finally:
        delete_leftovers(path)
        lock.close()
    return n_erased


def _discard_sidecars(path: Path) -> None:
    discard(*(sibling(path, ending) for ending in JOURNAL_SIDECARS))


def _without(person: str, events: Iterable[Event]) -> tuple[list[Event], int, set[str]]:
    """Return the events that stay, how many answers do not, and who has a name."""
    remaining: list[Event] = []
    new_seq: dict[int, int] = {}  # of events that stay: they are numbered anew
    n_erased = 0
    people = set[str]()
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
                n_erased += 1
                continue
        elif event.kind == CORRECTION:
            if body.by == person or body.target_seq not in new_seq:
                continue
            body = AnswerBody(target_seq=new_seq[body.target_seq], by=body.by)
        remaining.append(Event.new(event.time, event.kind, body, event.id))
        new_seq[event.seq] = len(remaining)
    return remaining, n_erased, people - {TABLE_AS_PERSON, ""}
