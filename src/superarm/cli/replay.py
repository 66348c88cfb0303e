"""superarm replay: rebuild the model from a journal, to the same bits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer


def replay(
    journal: Annotated[Path, typer.Argument(help="The journal of a service; it may be running.")],
    output: Annotated[Path | None, typer.Option(help="Write the rebuilt model to this file.")] = None,
    from_start: Annotated[
        bool, typer.Option(help="Begin with the very first event, out of the archives.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Rebuild the model from the oldest kept snapshot, and compare on the way.

    Every decision must come out as it was shown, and every later snapshot must be met bit for bit;
    if not, the exit status is 1.

    Example: **superarm replay events.db --output model.npz**
    """
    from superarm.service.core.journal import open_journal
    from superarm.service.core.replay import replay as run

    began = perf_counter()
    opened = open_journal(journal, read_only=True)
    try:
        done = run(opened, from_start=from_start)
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
            "snapshots_met": list(done.checked),
            "snapshots_missed": list(done.broken),
            "same": done.same,
            "sha256": done.sha256,
            "seconds": seconds,
        }
        print(json.dumps(told))
    else:
        print(f"replayed {done.events:,} events from event {done.start:,} on, in {seconds:.1f} s")
        print(f"decisions that came out otherwise: {done.different:,}")
        print(
            f"later snapshots met bit for bit: {len(done.checked)} of {len(done.checked) + len(done.broken)}"
        )
        print(f"model: sha256 {done.sha256}" + (f", written to {output}" if output else ""))
    if not done.same:
        sys.exit(1)
