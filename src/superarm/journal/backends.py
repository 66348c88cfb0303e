"""Open or create the journal behind an address: in a file (SQLite), or in a database (PostgreSQL)."""

from __future__ import annotations

from pathlib import Path

from superarm._types import JsonObject
from superarm.journal.addresses import is_postgres
from superarm.journal.store import Snapshot, JournalStore


def open_store(
    journal: str | Path, *, read_only: bool = False, max_mb: int | None = None, accept_loss: bool = False
) -> JournalStore:
    """Return the open journal; ``read_only`` takes no lock, and may be used beside a running service."""
    if is_postgres(journal):
        from superarm.journal.postgres import PostgresStore

        return PostgresStore(str(journal), read_only=read_only)
    from superarm.journal.sqlite import SqliteStore

    return SqliteStore(journal, read_only=read_only, max_mb=max_mb, accept_loss=accept_loss)


def journal_exists(journal: str | Path) -> bool:
    """Return whether there is a journal."""
    if not is_postgres(journal):
        return Path(journal).exists()
    from superarm.journal.postgres_connection import Address, database_errors
    from superarm.journal.postgres_schema import has_journal

    address = Address(str(journal))
    with address.connect("superarm read") as connection, database_errors(address):
        return has_journal(connection, address)


def create_journal(journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
    """Make a journal with its first snapshot, whole and durable; return False if another process was faster."""
    if is_postgres(journal):
        from superarm.journal.postgres import create
        from superarm.journal.postgres_connection import Address

        return create(Address(str(journal)), meta, first)
    from superarm.journal.sqlite_schema import create as create_file

    return create_file(journal, meta, first)
