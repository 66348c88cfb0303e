"""Open a service: its journal, a file or a database, and the model on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from superarm.errors import InvalidInput
from superarm.journal.create import check_same_purpose, new_journal
from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.files import real_path
from superarm.journal.shadows import make_shadows
from superarm.journal.snapshots import learner_from, load_class
from superarm.journal.sqlite_schema import create as create_file
from superarm.journal.store import is_url, open_store
from superarm.service.local import LocalModel

if TYPE_CHECKING:
    from superarm.journal.postgres_address import Address
    from superarm.service.service import Service

__all__ = ["OpenOptions", "open_service"]

log = logging.getLogger("superarm.service")

OF_SERVICE = ("timeout", "default", "snapshot_every", "keep_snapshots", "retain")
OF_DATABASES = ("lease", "patience", "every", "learn")


class OpenOptions(NamedTuple):
    """The arguments of `Service.open` that describe the journal."""

    asked: dict[str, Any]
    model: str | Path | None
    create: bool
    max_mb: int | None
    shadows: Sequence[str]


Opened = tuple[
    Any, bool, JournalDown | None
]  # a model, whether its journal is new, and why it cannot be written


def open_service(
    kind: type[Service], journal: str | Path, open_options: OpenOptions, settings: dict[str, Any]
) -> Service:
    """See `Service.open`."""
    began = time.perf_counter()
    check_seconds(settings)
    mine = {name: settings.pop(name) for name in OF_SERVICE if name in settings}
    if is_url(journal):
        source, created, down = _open_shared(str(journal), open_options, mine, settings)
    else:
        path = real_path(journal)
        kept = {name: value for name, value in settings.items() if name not in OF_DATABASES}
        source, created, down = _open_local(path, open_options, kept)
    try:
        service = kind(source.store, source, **mine)
    except BaseException:
        source.close()
        source.store.close()
        if created and not is_url(journal):
            _remove(real_path(journal))
        raise
    service.created, service.down = created, down
    service.restart_seconds = time.perf_counter() - began
    return service


def check_seconds(settings: dict[str, Any]) -> None:
    """Options that are times, or left out."""
    for name in ("timeout", "retain", "lease", "patience"):
        value = settings.get(name)
        if value is not None and not value > 0.0:
            raise InvalidInput.must(f"--{name}", "superarm serve", "more than 0 seconds", value)


def _open_local(path: Path, open_options: OpenOptions, settings: dict[str, Any]) -> Opened:
    created = not path.exists()
    if created:
        if not open_options.create:
            raise JournalForeign.must("journal", "superarm serve", "there already", str(path))
        create_file(path, *new_journal(open_options.asked, open_options.model))
        log.warning("new journal created", extra={"journal": str(path)})
    down = None
    try:
        try:
            store = open_store(path, max_mb=open_options.max_mb)
        except JournalDown as error:  # say, a read-only disk: what is there can still be looked at
            store, down = open_store(path, read_only=True, max_mb=open_options.max_mb), error
        try:
            check_same_purpose(path, store.meta(), open_options.asked)
            load_class(store.meta(), open_options.asked["learner"])
            return LocalModel(store, shadows=open_options.shadows, **settings), created, down
        except BaseException:
            store.close()
            raise
    except BaseException:
        if created:
            _remove(path)
        raise


def _open_shared(
    url: str, open_options: OpenOptions, settings: dict[str, Any], options: dict[str, Any]
) -> Opened:
    from superarm.journal.postgres import PostgresStore
    from superarm.journal.postgres_address import Address
    from superarm.service.shared import PATIENCE, SharedModel

    address = Address(url, patience=options.get("patience", PATIENCE))
    created = _create_shared(address, open_options)
    if created:
        log.warning("new journal created", extra={"journal": str(address)})
    store, down = PostgresStore(address), None
    try:
        check_same_purpose(str(address), store.meta(), open_options.asked)
        load_class(store.meta(), open_options.asked["learner"])
        try:
            store.probe()
        except (JournalDown, JournalForeign) as error:  # say, a role that may only read: it can be looked at
            down = JournalDown(str(error))
        return SharedModel(store, shadows=open_options.shadows, settings=settings, **options), created, down
    except BaseException:
        store.close()
        raise


def _create_shared(address: Address, open_options: OpenOptions) -> bool:
    from superarm.journal.postgres import create
    from superarm.journal.postgres_address import failures
    from superarm.journal.postgres_schema import check, make_tables

    with address.connect("superarm creates") as connection, failures(address):
        tables = check(connection, address)
        if tables and connection.execute("SELECT 1 FROM meta").fetchone() is not None:
            return False
    if not open_options.create:
        raise JournalForeign.must("journal", "superarm serve", "there already", str(address))
    meta, begin = new_journal(open_options.asked, open_options.model)
    make_shadows(
        open_options.shadows, learner_from(begin.parts["model"])
    )  # a start that will fail leaves nothing
    make_tables(address)
    return create(address, meta, begin)


def _remove(path: Path) -> None:
    """A start that fails leaves nothing behind; or, on a disk that fails, a whole journal without events."""
    with suppress(OSError):  # the log first: it must never lie beside another file
        for end in ("-wal", "-shm", "-mark", "", ".lock"):
            path.with_name(path.name + end).unlink(missing_ok=True)
