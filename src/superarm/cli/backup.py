"""superarm backup: a copy of a journal, whole and verified, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.options import AsJson, JournalArgument
from superarm.cli.output import print_json
from superarm.errors import InvalidInput


def backup(
    journal: JournalArgument,
    to: Annotated[Path, typer.Argument(help="The copy to make: a new file.")],
    as_json: AsJson = False,
) -> None:
    """Copy a journal as of one moment, and verify the copy.

    Example: **superarm backup events.db /backup/monday.db**
    """
    from superarm.journal.backup import backup as run
    from superarm.journal.store import is_url

    if is_url(journal):
        wanted = "a file: a database is backed up by its own pg_dump, or by its replicas (docs/scale.md)"
        raise InvalidInput.must("JOURNAL", "superarm backup", wanted, "a database")
    result = run(journal, to)
    if as_json:
        counts = {"events": result.events, "snapshots": result.snapshots}
        print_json({"journal": str(journal), "to": str(to), **counts})
    else:
        print(f"{result.events:,} events, {result.snapshots} snapshots in {to}, verified")
