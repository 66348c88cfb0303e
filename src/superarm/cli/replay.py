"""superarm replay: rebuild the model from a journal, to the same bits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from superarm.cli.output import Force, check_output


def replay(
    journal: Annotated[
        str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
    ],
    output: Annotated[Path | None, typer.Option(help="Write the rebuilt model to this file.")] = None,
    force: Force = False,
    from_start: Annotated[bool, typer.Option(help="Begin with the very first event.")] = False,
    learner: Annotated[
        str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Rebuild the model from the oldest kept snapshot, and compare on the way.

    Every decision must come out as it was shown, and every later snapshot must be met. Last bits may differ
    on another kind of CPU; if more does, the exit status is 1.

    Example: **superarm replay events.db --output model.npz**
    """
    from superarm.journal.replay import replay as run
    from superarm.journal.store import open_store

    check_output(output, "replay", force=force)
    began = perf_counter()
    opened = open_store(journal, read_only=True)
    try:
        done = run(opened, from_start=from_start, learner=learner)
    finally:
        opened.close()
    seconds = perf_counter() - began
    if output is not None:
        done.learner.save(output)
    if as_json:
        told = {
            "journal": str(journal),
            "start": done.start,
            "events": done.events,
            "different": done.different,
            "sets_differ": done.sets,
            "odds_differ": done.odds,
            "last_bits_differ": done.bits,
            "unchecked": done.unchecked,
            "snapshots_met": list(done.checked),
            "snapshots_met_but_for_rounding": list(done.near),
            "snapshots_missed": list(done.broken),
            "snapshots_taken_over": list(done.jumps),
            "same": done.same,
            "sound": done.sound,
            "sha256": done.sha256,
            "seconds": seconds,
        }
        print(json.dumps(told))
    else:
        print(f"replayed {done.events:,} events from event {done.start:,} on, in {seconds:.1f} s")
        print(f"decisions that came out otherwise: {done.different:,}")
        if done.different:
            print(f"  another set {done.sets:,}, other odds {done.odds:,}, last bits only {done.bits:,}")
        met, all_ = len(done.checked), len(done.checked) + len(done.near) + len(done.broken)
        print(f"later snapshots met bit for bit: {met} of {all_}")
        if done.near:
            print(f"  met but for roundings: {len(done.near)}")
        if done.jumps:
            print(f"stretches with erased events, passed by way of a snapshot: {len(done.jumps)}")
        print(f"model: sha256 {done.sha256}" + (f", written to {output}" if output else ""))
    if not done.sound:
        sys.exit(1)
