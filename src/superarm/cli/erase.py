"""superarm erase: forget people."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from superarm.cli.options import AsJson, OwnLearner, seconds_of
from superarm.cli.output import print_json
from superarm.errors import InvalidInput


def erase(
    journal: Annotated[str, typer.Argument(help="The journal; no service may be running on it.")],
    id_: Annotated[list[str] | None, typer.Option("--id", help="A decision's id; may be repeated.")] = None,
    older: Annotated[str | None, typer.Option(help="All decisions older than this, such as 90d.")] = None,
    learner: OwnLearner = None,
    as_json: AsJson = False,
) -> None:
    """Erase features and context of decisions, in the journal; what is left still verifies.

    Of a running service, use its route; of old decisions in general, `superarm serve --retain 90d`.

    Example: **superarm erase events.db --id letter-17**
    """
    from superarm.journal.store import is_url
    from superarm.service import Service

    if is_url(journal):
        wanted = "a file: of a shared journal, use the route of any process (superarm change URL erase)"
        raise InvalidInput.must("JOURNAL", "superarm erase", wanted, "a database")
    if not id_ and older is None:
        raise InvalidInput("superarm erase needs --id or --older")
    before = None if older is None else time.time() - seconds_of(older, "--older", "superarm erase")
    service = Service.open(journal, create=False, learner=learner, trust_clock=True)
    count, finished = 0, True
    try:
        if service.down is not None:
            raise service.down
        for field, value in (("ids", id_), ("before", before)):
            if value:
                seq = service.call(service.handler.change, {"what": "erase", field: value})
                erased, finished = service.model.erased(seq)
                count += erased
    finally:
        service.close()
    if as_json:
        print_json({"journal": str(journal), "erased": count, "finished": finished})
    else:
        print(f"features and context of {count:,} decisions erased")
    if not finished:
        print(
            f"superarm: not finished: {service.model.unfinished_erasure()}; the next start goes on",
            file=sys.stderr,
        )
        sys.exit(1)
