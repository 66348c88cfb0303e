"""superarm erase: forget people."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from superarm.cli.times import seconds_of
from superarm.errors import InvalidInput


def erase(
    journal: Annotated[str, typer.Argument(help="The journal; no service may be running on it.")],
    id_: Annotated[list[str] | None, typer.Option("--id", help="A decision's id; may be repeated.")] = None,
    older: Annotated[str | None, typer.Option(help="All decisions older than this, such as 90d.")] = None,
    learner: Annotated[
        str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Erase features and context of decisions, in the journal and its archives; what is left still verifies.

    Of a running service, use its route; of old decisions in general, `superarm serve --retain 90d`.

    Example: **superarm erase events.db --id letter-17**
    """
    from superarm.service.core.journal import is_url
    from superarm.service.core.session import Session

    if is_url(journal):
        wanted = "a file: of a shared journal, use the route of any process (superarm change URL erase)"
        raise InvalidInput.must("JOURNAL", "superarm erase", wanted, "a database")
    if not id_ and older is None:
        raise InvalidInput.must("--id", "superarm erase", "given, or --older", None)
    before = None if older is None else time.time() - seconds_of(older, "--older", "superarm erase")
    session = Session.open(journal, create=False, learner=learner)
    try:
        if session.down is not None:
            raise session.down
        count = session.erase(ids=id_ or None) if id_ else 0
        if before is not None:
            count += session.erase(before=before)
    finally:
        session.close()
    if as_json:
        print(json.dumps({"journal": str(journal), "erased": count}))
    else:
        print(f"features and context of {count:,} decisions erased")
