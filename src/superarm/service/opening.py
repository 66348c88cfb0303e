"""Open the model of a service on its journal, a file or a database; a new journal is made first."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path

from superarm.journal.backends import create_journal, is_postgres, journal_exists, journal_name
from superarm.journal.create import JournalOptions, check_same_options, new_journal
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.journal.snapshots import import_user_learner, learner_from_bytes
from superarm.journal.sqlite import SqliteStore
from superarm.journal.store import JournalStore
from superarm.service.model import Model
from superarm.service.settings import Settings

log = logging.getLogger("superarm.service")


def create_if_missing(
    journal: str | Path,
    options: JournalOptions,
    settings: Settings,
    *,
    model: str | Path | None,
    create: bool,
) -> bool:
    """Make a journal, with a model file or a new learner, if there is none; return whether it is new."""
    if journal_exists(journal):
        return False
    if not create:
        raise JournalMismatch(f"no such journal: {journal_name(journal)}")
    meta, first = new_journal(options, model)
    settings.check(learner_from_bytes(first.parts["model"]))  # before anything is made
    created = create_journal(journal, meta, first)
    if created:  # and no other process was faster
        log.warning("new journal created", extra={"journal": journal_name(journal)})
    return created


def open_model(
    journal: str | Path, options: JournalOptions, settings: Settings, max_mb: int | None
) -> tuple[Model, JournalUnavailable | None]:
    """Return the model on a journal, and why that cannot be written: say, a read-only disk; it can still be read."""
    with ExitStack() as undo:  # a start that fails holds nothing
        store, outage = _open_writable(journal, settings, max_mb)
        undo.callback(store.close)
        check_same_options(store.name, store.meta(), options)
        import_user_learner(store.meta(), options.learner)
        model = Model(store, settings)
        for warning in store.warnings:
            log.warning("journal without a mark", extra={"reason": warning})
        undo.pop_all()
        return model, outage


def _open_writable(
    journal: str | Path, settings: Settings, max_mb: int | None
) -> tuple[JournalStore, JournalUnavailable | None]:
    if is_postgres(journal):
        from superarm.journal.postgres import PostgresStore, service_application

        database = PostgresStore(str(journal), patience=settings.patience, application=service_application())
        try:
            database.check()
        except (JournalUnavailable, JournalMismatch) as error:  # say, a role that may only read
            return database, JournalUnavailable(str(error))
        return database, None
    try:
        return SqliteStore(journal, max_mb=max_mb), None
    except JournalUnavailable as error:
        return SqliteStore(journal, read_only=True, max_mb=max_mb), error
