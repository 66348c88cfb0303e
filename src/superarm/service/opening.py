"""Open a service: its journal, a file or a database, and the model on it."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from superarm._files import BESIDE_JOURNAL
from superarm.journal.create import check_same_purpose, new_journal
from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.journal_files import real_path
from superarm.journal.shadows import make_shadows
from superarm.journal.snapshots import learner_from, load_class
from superarm.journal.sqlite import SqliteStore
from superarm.journal.sqlite_schema import create as create_file
from superarm.journal.store import Snapshot, is_url
from superarm.service.local import LocalModel
from superarm.service.settings import Settings

if TYPE_CHECKING:
    from superarm.journal.postgres import PostgresStore
    from superarm.journal.postgres_address import Address
    from superarm.service.service import Service
    from superarm.service.shared import SharedModel

log = logging.getLogger("superarm.service")


class Purpose(NamedTuple):
    """The arguments of `Service.open` that say what a journal is for."""

    asked: dict[str, Any]
    model: str | Path | None
    create: bool

    def new(self, where: object) -> tuple[dict[str, Any], Snapshot]:
        """The meta and the first snapshot of a journal that is missing."""
        if not self.create:
            raise JournalForeign(f"no such journal: {where}")
        return new_journal(self.asked, self.model)


def open_service(
    kind: type[Service], journal: str | Path, purpose: Purpose, settings: Settings, max_journal_mb: int | None
) -> Service:
    """See `Service.open`."""
    began = time.perf_counter()
    with ExitStack() as undo:  # a start that fails leaves nothing behind
        model: LocalModel | SharedModel
        if is_url(journal):
            from superarm.service.shared import SharedModel as Shared

            database, created, down = _open_database(str(journal), purpose, settings)
            undo.callback(database.close)
            _check_purpose(database, purpose)
            model = Shared(database, settings)
        else:
            file, created, down = _open_file(real_path(journal), purpose, max_journal_mb, undo)
            undo.callback(file.close)
            _check_purpose(file, purpose)
            model = LocalModel(file, settings)
        undo.callback(model.close)
        service = kind(model, settings)
        undo.pop_all()
    service.created, service.down = created, down
    service.restart_seconds = time.perf_counter() - began
    return service


def _check_purpose(store: SqliteStore | PostgresStore, purpose: Purpose) -> None:
    check_same_purpose(store.name, store.meta(), purpose.asked)
    load_class(store.meta(), purpose.asked["learner"])


def _open_file(
    path: Path, purpose: Purpose, max_journal_mb: int | None, undo: ExitStack
) -> tuple[SqliteStore, bool, JournalDown | None]:
    """The journal, whether it is new, and why it cannot be written."""
    created = not path.exists()
    if created:
        create_file(path, *purpose.new(path))
        undo.callback(_remove, path)
        log.warning("new journal created", extra={"journal": str(path)})
    try:
        return SqliteStore(path, max_mb=max_journal_mb), created, None
    except JournalDown as error:  # say, a read-only disk: what is there can still be looked at
        return SqliteStore(path, read_only=True, max_mb=max_journal_mb), created, error


def _open_database(
    url: str, purpose: Purpose, settings: Settings
) -> tuple[PostgresStore, bool, JournalDown | None]:
    """The journal, whether it is new, and why it cannot be written."""
    from superarm.journal.postgres import PostgresStore
    from superarm.journal.postgres_address import Address

    address = Address(url, patience=settings.patience)
    created = _create_tables(address, purpose, settings)
    if created:
        log.warning("new journal created", extra={"journal": str(address)})
    store = PostgresStore(address)
    try:
        store.probe()
    except (JournalDown, JournalForeign) as error:  # say, a role that may only read: it can be looked at
        return store, created, JournalDown(str(error))
    except BaseException:
        store.close()
        raise
    return store, created, None


def _create_tables(address: Address, purpose: Purpose, settings: Settings) -> bool:
    from superarm.journal.postgres import create
    from superarm.journal.postgres_address import failures
    from superarm.journal.postgres_schema import check, make_tables

    with address.connect("superarm creates") as connection, failures(address):
        if check(connection, address) and connection.execute("SELECT 1 FROM meta").fetchone() is not None:
            return False
    meta, first = purpose.new(address)
    make_shadows(settings.shadows, learner_from(first.parts["model"]))  # refused before there are tables
    make_tables(address)
    return create(address, meta, first)


def _remove(path: Path) -> None:
    """Take a new journal away; on a disk that fails, a whole journal without events may stay."""
    with suppress(OSError):  # the log before the file: it must never lie beside another one
        for end in (*BESIDE_JOURNAL, "", ".lock"):
            path.with_name(path.name + end).unlink(missing_ok=True)
