"""Open the model of a service on its journal, a file or a database; a new journal is made first."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path

from superarm.journal.create import JournalOptions, check_same_options, new_journal
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.journal.snapshots import learner_from, load_class
from superarm.journal.sqlite import SqliteStore
from superarm.journal.store import Store, create_journal, is_url, journal_exists, journal_name
from superarm.service.model import LocalModel, ServedModel
from superarm.service.settings import Settings

log = logging.getLogger("superarm.service")


def create_if_missing(
    journal: str | Path,
    options: JournalOptions,
    settings: Settings,
    *,
    model: str | Path | None,
    allowed: bool,
) -> bool:
    """Make a journal, with a model file or a new learner, if there is none; whether it is new."""
    if journal_exists(journal):
        return False
    if not allowed:
        raise JournalMismatch(f"no such journal: {journal_name(journal)}")
    meta, first = new_journal(options, model)
    settings.check(learner_from(first.parts["model"]))  # before anything is made
    created = create_journal(journal, meta, first)
    log.warning("new journal created", extra={"journal": journal_name(journal)})
    return created


def open_model(
    journal: str | Path, options: JournalOptions, settings: Settings, max_mb: int | None
) -> tuple[ServedModel, JournalUnavailable | None]:
    """The model on a journal, and why that cannot be written: say, a read-only disk; it can still be looked at."""
    down: JournalUnavailable | None = None
    with ExitStack() as undo:  # a start that fails holds nothing

        def check(store: Store) -> None:
            undo.callback(store.close)
            check_same_options(store.name, store.meta(), options)
            load_class(store.meta(), options.learner)

        if is_url(journal):
            from superarm.journal.postgres import PostgresStore
            from superarm.service.shared import SharedModel

            database = PostgresStore(str(journal), patience=settings.patience)
            check(database)
            try:
                database.check()
            except (JournalUnavailable, JournalMismatch) as error:  # say, a role that may only read
                down = JournalUnavailable(str(error))
            model: ServedModel = SharedModel(database, settings)
        else:
            try:
                file = SqliteStore(journal, max_mb=max_mb)
            except JournalUnavailable as error:
                file, down = SqliteStore(journal, read_only=True, max_mb=max_mb), error
            check(file)
            model = LocalModel(file, settings)
        undo.pop_all()
        return model, down
