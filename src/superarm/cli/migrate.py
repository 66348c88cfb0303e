"""superarm migrate: a journal of an older format becomes one of today's."""

from __future__ import annotations

from typing import Annotated

import typer


def migrate(
    journal: Annotated[
        str, typer.Argument(help="The journal: a file that no service runs on, or postgresql://….")
    ],
) -> None:
    """Bring a journal of an older superarm to today's format; the old file is kept beside it.

    In PostgreSQL: make the tables, or bring them to today's number, in one transaction, while others serve.

    Example: **superarm migrate events.db**
    """
    from superarm.service.core.journal import is_url
    from superarm.service.core.migrate import migrate as run

    if is_url(journal):
        from superarm.service.core.postgres import connecting, schema

        address = connecting.Address(journal)
        was, now = schema.migrate(address)
        print(f"{address} is of format {now}" + (" already" if was == now else f" now; it was of {was}"))
        return
    kept = run(journal)
    if kept is None:
        print(f"{journal} is of today's format already")
    else:
        print(f"{journal} is of today's format now; as it was, it is kept in {kept}")
