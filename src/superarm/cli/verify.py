"""superarm verify: is a journal what was written?"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Annotated

import typer

from superarm.cli.options import AsJson, JournalArgument, OwnLearner
from superarm.cli.output import print_json
from superarm.errors import InvalidInput


def verify(
    journal: JournalArgument,
    learner: OwnLearner = None,
    replay: Annotated[bool, typer.Option(help="Also replay everything, and meet every snapshot.")] = True,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Let a journal go on that has lost its last events.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every event, snapshot and index of a journal; the exit status is 1 if any is damaged.

    Example: **superarm verify events.db**
    """
    from superarm._progress import progress_bar
    from superarm.journal import verify as core
    from superarm.journal.store import is_url

    if accept_loss:
        if is_url(journal):
            wanted = "left out: what a database has lost, its own backup has"
            raise InvalidInput.must("--accept-loss", "superarm verify", wanted, True)
        were, left = core.accept_loss(journal)
        print(f"{were:,} events were durable; {journal} goes on after {left:,}", file=sys.stderr)
    began = perf_counter()
    with progress_bar(None, "events", quiet=as_json) as tick:
        result = core.verify(journal, learner=learner, with_replay=replay, tick=tick)
    seconds = perf_counter() - began
    if as_json:
        report = {
            "journal": str(journal),
            "events": result.events,
            "erased": result.erased,
            "snapshots": result.snapshots,
            "problems": list(result.problems),
            "damaged_events": list(result.damaged),
            "replayed": None if result.replayed is None else result.replayed.events,
            "sound": result.sound,
            "seconds": seconds,
        }
        print_json(report)
    else:
        print(f"{result.events:,} events, {result.snapshots} snapshots: {seconds:.1f} s")
        if result.erased:
            print(f"features and context of {result.erased:,} decisions were erased")
        for problem in result.problems:
            print(f"damaged: {problem}")
        if result.sound:
            print("all of it is what was written" + ("" if result.replayed is None else ", and replays"))
    if not result.sound:
        sys.exit(1)
