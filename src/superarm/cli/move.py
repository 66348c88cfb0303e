"""superarm move: from a file to a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.options import AsJson, OwnLearner
from superarm.cli.output import print_json
from superarm.errors import InvalidInput


def move(
    journal: Annotated[Path, typer.Argument(help="The SQLite journal; no service may be running on it.")],
    to: Annotated[str, typer.Argument(help="postgresql://user@host/name, a database without a journal.")],
    learner: OwnLearner = None,
    as_json: AsJson = False,
) -> None:
    """Bring a service's past along: all events, kept snapshots and the model, in one transaction.

    The file stays as it is. The service goes on with `superarm serve --journal postgresql://…`.

    Example: **superarm move events.db postgresql://operate@db/arms**
    """
    from superarm._progress import progress_bar
    from superarm.journal.store import is_url

    if not is_url(to):
        raise InvalidInput.must("TO", "superarm move", "an address such as postgresql://user@host/name", to)
    from superarm.journal.move import move as run
    from superarm.journal.postgres_address import Address

    address = Address(to)
    with progress_bar(None, "events", quiet=as_json) as tick:
        count = run(journal, address, learner=learner, tick=tick)
    if as_json:
        print_json({"journal": str(journal), "to": str(address), "events": count})
    else:
        print(f"{count:,} events of {journal} are in {address} now")
