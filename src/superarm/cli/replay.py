"""superarm replay: rebuild the model from a journal, to the same bits."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from superarm.cli.options import AsJson, Force, JournalArgument, OwnLearner
from superarm.cli.output import check_output, print_json


def replay(
    journal: JournalArgument,
    output: Annotated[Path | None, typer.Option(help="Write the rebuilt model to this file.")] = None,
    force: Force = False,
    from_start: Annotated[bool, typer.Option(help="Start with the first event.")] = False,
    learner: OwnLearner = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the model from a journal, and compare on the way.

    It starts from the oldest kept snapshot before the last event, or from the first event. Every decision is made
    again and must come out as it was shown, and every later snapshot must come out the same. Last bits may differ on
    another kind of CPU; if more differs, or if there was nothing to compare, the exit status is 1.

    Example: **superarm replay events.db --output model.npz**
    """
    from superarm._progress import progress_bar
    from superarm.journal.replay import replay as run
    from superarm.journal.store import open_store

    check_output(output, "replay", force=force)
    began = perf_counter()
    opened = open_store(journal, read_only=True)
    with closing(opened), progress_bar(None, "events", quiet=as_json) as tick:
        done = run(opened, from_start=from_start, learner=learner, tick=tick)
    seconds = perf_counter() - began
    if output is not None:
        done.learner.save(output)
    if as_json:
        figures = {field.name: getattr(done, field.name) for field in fields(done) if field.name != "learner"}
        report = {"journal": str(journal), **figures, "different": done.different, "same": done.same}
        report |= {"sound": done.sound, "seconds": seconds}
        print_json(report)
    else:
        print(f"replayed {done.events:,} events after event {done.start:,} in {seconds:.1f} s")
        print(f"decisions compared: {done.decisions:,}, different: {done.different:,}")
        if done.different:
            print(
                f"  another set {done.sets_differ:,}, another propensity {done.propensities_differ:,}, "
                f"last bits only {done.last_bits_differ:,}"
            )
        if done.unchecked:
            print(f"decisions not compared, since content was erased: {done.unchecked:,}")
        print(f"later snapshots compared: {done.snapshots:,}, different: {len(done.snapshots_different):,}")
        if done.snapshots_near:
            print(f"  the same but for rounding: {len(done.snapshots_near):,}")
        if done.snapshots_loaded:
            print(
                f"stretches with erased events, passed by loading a snapshot: {len(done.snapshots_loaded):,}"
            )
        print(f"model: sha256 {done.sha256}" + (f", written to {output}" if output else ""))
    if not done.compared:
        wider = "the journal has too few events" if done.start == 0 else "--from-start compares all events"
        print(f"superarm: nothing was compared: {wider}", file=sys.stderr)
    if not done.sound:
        sys.exit(1)
