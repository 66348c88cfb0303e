"""Open a service: its journal, a file or a database, and the model on it."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.journal.create import check_same_purpose, new_journal
from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.snapshots import learner_from, load_class
from superarm.journal.sqlite import SqliteStore
from superarm.journal.store import create_journal, is_url, journal_exists, journal_name
from superarm.service.local import LocalModel
from superarm.service.settings import Settings

if TYPE_CHECKING:
    from superarm.service.service import Service
    from superarm.service.shared import SharedModel

log = logging.getLogger("superarm.service")


def open_service(
    kind: type[Service],
    journal: str | Path,
    asked: dict[str, Any],
    settings: Settings,
    *,
    model: str | Path | None,
    create: bool,
    max_mb: int | None,
) -> Service:
    """See `Service.open`; ``asked`` is what the journal is for."""
    began, created = time.perf_counter(), False
    if not journal_exists(journal):
        if not create:
            raise JournalForeign(f"no such journal: {journal_name(journal)}")
        meta, first = new_journal(asked, model)
        settings.check(learner_from(first.parts["model"]))  # before anything is made
        created = create_journal(journal, meta, first)
        log.warning("new journal created", extra={"journal": journal_name(journal)})
    with ExitStack() as undo:  # a start that fails holds nothing
        host, down = _open_model(journal, asked, settings, max_mb, undo)
        undo.callback(host.close)
        service = kind(host, settings)
        undo.pop_all()
    service.created, service.down = created, down
    service.restart_seconds = time.perf_counter() - began
    return service


def _open_model(
    journal: str | Path,
    asked: dict[str, Any],
    settings: Settings,
    max_mb: int | None,
    undo: ExitStack,
) -> tuple[LocalModel | SharedModel, JournalDown | None]:
    """The model on a journal, and why that cannot be written: say, a read-only disk; it can still be looked at."""
    down: JournalDown | None = None

    def check(store: Any) -> None:
        undo.callback(store.close)
        check_same_purpose(store.name, store.meta(), asked)
        load_class(store.meta(), asked["learner"])

    if not is_url(journal):
        try:
            file = SqliteStore(journal, max_mb=max_mb)
        except JournalDown as error:
            file, down = SqliteStore(journal, read_only=True, max_mb=max_mb), error
        check(file)
        return LocalModel(file, settings), down
    from superarm.journal.postgres import PostgresStore
    from superarm.service.shared import SharedModel

    database = PostgresStore(str(journal), patience=settings.patience)
    check(database)
    try:
        database.probe()
    except (JournalDown, JournalForeign) as error:  # say, a role that may only read
        down = JournalDown(str(error))
    return SharedModel(database, settings), down
