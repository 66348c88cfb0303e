"""superarm verify: is a journal what was written?"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Annotated

import typer

from superarm.errors import InvalidInput


def verify(
    journal: Annotated[
        str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
    ],
    learner: Annotated[
        str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
    ] = None,
    replay: Annotated[bool, typer.Option(help="Also replay everything, and meet every snapshot.")] = True,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Let a journal go on that has lost its last events.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Check every event, snapshot, archive and index of a journal; the exit status is 1 if any is damaged.

    Example: **superarm verify events.db**
    """
    from superarm.service.core import verify as core
    from superarm.service.core.journal import is_url

    if is_url(journal):
        from superarm.service.core.postgres import checking, connecting

        if accept_loss:
            wanted = "left out: what a database has lost, its own backup has"
            raise InvalidInput.must("--accept-loss", "superarm verify", wanted, True)
        address = connecting.Address(journal)
    elif accept_loss:
        were, left = core.accept_loss(journal)
        print(f"{were:,} events were durable; {journal} goes on after {left:,}", file=sys.stderr)
    began = perf_counter()
    if is_url(journal):
        found = checking.verify(address, learner=learner, with_replay=replay)
    else:
        found = core.verify(journal, learner=learner, with_replay=replay)
    seconds = perf_counter() - began
    if as_json:
        told = {
            "journal": str(journal),
            "events": found.events,
            "erased": found.erased,
            "waiting": found.waiting,
            "snapshots": found.snapshots,
            "archives": found.archives,
            "problems": list(found.problems),
            "damaged_events": list(found.damaged),
            "replayed": None if found.replayed is None else found.replayed.events,
            "sound": found.sound,
            "seconds": seconds,
        }
        print(json.dumps(told))
    else:
        counts = f"{found.events:,} events, {found.snapshots} snapshots, {found.archives} archives"
        print(f"{counts}: {seconds:.1f} s")
        if found.erased:
            print(f"features and context of {found.erased:,} decisions were erased")
        if found.waiting:
            print(f"{found.waiting:,} more events are kept, and wait for the process that learns")
        for problem in found.problems:
            print(f"damaged: {problem}")
        if found.sound:
            print("all of it is what was written" + ("" if found.replayed is None else ", and replays"))
    if not found.sound:
        sys.exit(1)
