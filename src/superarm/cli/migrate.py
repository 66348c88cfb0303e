"""superarm migrate: a journal becomes one of today's format."""

from __future__ import annotations

from typing import Annotated

import typer


def migrate(
    journal: Annotated[
        str, typer.Argument(help="The journal: a file that no service runs on, or postgresql://….")
    ],
) -> None:
    """Bring a journal to today's format; there is no older one that can be read.

    In PostgreSQL: make the tables, in one transaction, for a role that may not make them itself.

    Example: **superarm migrate events.db**
    """
    from superarm.journal.store import is_url, open_store

    if is_url(journal):
        from superarm.journal.postgres_address import Address
        from superarm.journal.postgres_schema import FORMAT, make_tables

        address = Address(journal)
        new = make_tables(address)
        print(f"{address} is of format {FORMAT}" + (" now" if new else " already"))
        return
    open_store(journal, read_only=True).close()  # refuses other formats
    print(f"{journal} is of today's format already")
