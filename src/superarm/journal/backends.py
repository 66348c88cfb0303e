"""The journal behind an address: the path of a file (SQLite), or a URL of PostgreSQL, shown without its secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from superarm._types import JsonObject
from superarm.errors import InvalidInput, Unquoted
from superarm.journal.store import JournalStore, Snapshot

# also within blanks or quotes, as variables of an environment may have them
UNSUPPORTED_URL = re.compile(r"^\W*[\w+]+://|^\W*postgres(ql)?(\+\w+)?:|\bpassword\s*=", re.IGNORECASE)
POSTGRES_URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?)://(?:(?P<user>[^:@/?]*)(?::(?P<secret>.*))?@)?(?P<rest>[^?#@]*)"
)
PASSWORD_OPTION = re.compile(r"password=([^&#\s]*)")
HIDDEN = "postgresql://…"


def is_postgres(journal: object) -> bool:
    """Return whether a journal is in PostgreSQL, and not a file; refuse other addresses, without showing them."""
    text = str(journal)
    if text.startswith(("postgresql://", "postgres://")):
        return True
    if UNSUPPORTED_URL.search(text):
        wanted = "a file, or an address such as postgresql://user@host:5432/name, without blanks or quotes around it"
        raise InvalidInput.must("journal", "superarm", wanted, Unquoted("another kind of address"))
    return False


def journal_name(journal: str | Path) -> str:
    """Return the address of a journal as messages show it."""
    return redacted(str(journal)) if is_postgres(journal) else str(journal)


def redacted(text: str) -> str:
    """Return an address of PostgreSQL without secrets and options; of any other text nothing is left."""
    match = POSTGRES_URL.match(text)
    if match is None:
        return HIDDEN
    user = f"{match['user']}@" if match["user"] else ""
    address = f"{match['scheme']}://{user}{match['rest']}"
    # one that is also the name of the user, the host or the database
    secrets = [*PASSWORD_OPTION.findall(text), match["secret"], os.environ.get("PGPASSWORD")]
    return HIDDEN if any(secret and unquote(secret) in unquote(address) for secret in secrets) else address


def store_class(journal: str | Path) -> type[JournalStore]:
    """Return the class that opens a journal; the driver of a database is imported only where it is needed."""
    if is_postgres(journal):
        from superarm.journal.postgres import PostgresStore

        return PostgresStore
    from superarm.journal.sqlite import SqliteStore

    return SqliteStore


def open_store(journal: str | Path, *, read_only: bool = False) -> JournalStore:
    """Return the open journal; ``read_only`` takes no lock, and may be used beside a running service."""
    return store_class(journal)(journal, read_only=read_only)


def journal_exists(journal: str | Path) -> bool:
    """Return whether there is a journal."""
    return store_class(journal).exists(journal)


def create_journal(journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
    """Make a journal with its first snapshot, whole and durable; return False if another process was faster."""
    return store_class(journal).create(journal, meta, first)
