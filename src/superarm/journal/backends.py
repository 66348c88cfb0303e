"""Where a journal is: in a file (SQLite), or behind an address (PostgreSQL)."""

from __future__ import annotations

import re
from pathlib import Path

from superarm._types import JsonObject
from superarm.errors import Description, InvalidInput
from superarm.journal.store import Snapshot, Store

UNSUPPORTED_URL = re.compile(r"^[\w+]+://|^postgres(ql)?(\+\w+)?:|\bpassword\s*=", re.IGNORECASE)


def is_postgres(journal: object) -> bool:
    """Whether a journal is in PostgreSQL, and not a file; other addresses are refused, and not shown (passwords)."""
    text = str(journal)
    if text.startswith(("postgresql://", "postgres://")):
        return True
    if UNSUPPORTED_URL.search(text):
        wanted = "a file, or an address such as postgresql://user@host:5432/name"
        raise InvalidInput.must("journal", "superarm", wanted, Description("another kind of address"))
    return False


def open_store(
    journal: str | Path, *, read_only: bool = False, max_mb: int | None = None, accept_loss: bool = False
) -> Store:
    """The journal there; ``read_only`` takes no lock, and may be used beside a running service."""
    if is_postgres(journal):
        from superarm.journal.postgres import PostgresStore

        return PostgresStore(str(journal), read_only=read_only)
    from superarm.journal.sqlite import SqliteStore

    return SqliteStore(journal, read_only=read_only, max_mb=max_mb, accept_loss=accept_loss)


def journal_name(journal: str | Path) -> str:
    """As messages call it: an address without what may be secret."""
    if not is_postgres(journal):
        return str(journal)
    from superarm.journal.postgres_address import Address

    return str(Address(str(journal)))


def journal_exists(journal: str | Path) -> bool:
    """Whether there is a journal in a file, or behind an address."""
    if not is_postgres(journal):
        return Path(journal).exists()
    from superarm.journal.postgres_address import Address, database_errors
    from superarm.journal.postgres_schema import has_journal

    address = Address(str(journal))
    with address.connect("superarm read") as connection, database_errors(address):
        return has_journal(connection, address)


def create_journal(journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
    """Make a journal with its first snapshot, whole and durable; False if another process was faster."""
    if is_postgres(journal):
        from superarm.journal.postgres import create
        from superarm.journal.postgres_address import Address

        return create(Address(str(journal)), meta, first)
    from superarm.journal.sqlite_schema import create as create_file

    return create_file(journal, meta, first)
