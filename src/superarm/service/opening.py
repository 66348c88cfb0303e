"""Open a service: its journal, a file or a database, and the model on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.journal.create import check_asked, first
from superarm.journal.errors import JournalDown, JournalForeign
from superarm.journal.projector import load_class
from superarm.journal.sqlite_schema import create as create_file
from superarm.journal.store import is_url, open_store
from superarm.service.local import LocalModel

if TYPE_CHECKING:
    from superarm.service.service import Service

__all__ = ["open_service"]

log = logging.getLogger("superarm.service")

OF_SERVICE = ("timeout", "default", "snapshot_every", "keep_snapshots", "retain")
OF_DATABASES = ("lease", "patience", "every", "learn")


def open_service(
    kind: type[Service],
    journal: str | Path,
    asked: dict[str, Any],
    model: str | Path | None,
    create: bool,
    max_mb: int | None,
    shadows: Sequence[str],
    settings: dict[str, Any],
) -> Service:
    """See `Service.open`."""
    began = time.perf_counter()
    check_seconds(settings)
    mine = {name: settings.pop(name) for name in OF_SERVICE if name in settings}
    source: Any
    if is_url(journal):
        from superarm.service.shared import open_shared

        source, created, down = open_shared(str(journal), asked, model, create, shadows, mine, settings)
    else:
        path = Path(journal).resolve()
        kept = {name: value for name, value in settings.items() if name not in OF_DATABASES}
        source, created, down = _open_local(path, asked, model, create, max_mb, shadows, kept)
    try:
        service = kind(source.store, source, **mine)
    except BaseException:
        source.close()
        source.store.close()
        if created and not is_url(journal):
            _remove(Path(journal).resolve())
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


def _open_local(
    path: Path,
    asked: dict[str, Any],
    model: str | Path | None,
    create: bool,
    max_mb: int | None,
    shadows: Sequence[str],
    settings: dict[str, Any],
) -> tuple[LocalModel, bool, JournalDown | None]:
    created = not path.exists()
    if created:
        if not create:
            raise JournalForeign.must("journal", "superarm serve", "there already", str(path))
        create_file(path, *first(asked, model))
        log.warning("a new journal was made", extra={"journal": str(path)})
    down = None
    try:
        try:
            store = open_store(path, max_mb=max_mb)
        except JournalDown as error:  # say, a read-only disk: what is there can still be looked at
            store, down = open_store(path, read_only=True, max_mb=max_mb), error
        try:
            check_asked(path, store.meta(), asked)
            load_class(store.meta(), asked["learner"])
            return LocalModel(store, shadows=shadows, **settings), created, down
        except BaseException:
            store.close()
            raise
    except BaseException:
        if created:
            _remove(path)
        raise


def _remove(path: Path) -> None:
    """A start that fails leaves nothing behind; or, on a disk that fails, a whole journal without events."""
    with suppress(OSError):  # the log first: it must never lie beside another file
        for end in ("-wal", "-shm", "-mark", "", ".lock"):
            path.with_name(path.name + end).unlink(missing_ok=True)
