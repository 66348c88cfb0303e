"""superarm migrate: a journal of an older format becomes one of today's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def migrate(
    journal: Annotated[Path, typer.Argument(help="The journal; no service may be running on it.")],
) -> None:
    """Bring a journal of an older superarm to today's format; the old file is kept beside it.

    Example: **superarm migrate events.db**
    """
    from superarm.service.core.migrate import migrate as run

    kept = run(journal)
    if kept is None:
        print(f"{journal} is of today's format already")
    else:
        print(f"{journal} is of today's format now; as it was, it is kept in {kept}")
