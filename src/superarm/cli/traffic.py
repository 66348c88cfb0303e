"""superarm traffic: simulated users for a running service."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from superarm.cli.options import AsJson
from superarm.cli.output import print_json


def traffic(
    url: Annotated[str, typer.Argument(help="The service, as http://127.0.0.1:8800.")],
    data: Annotated[str, typer.Option(help="A data set's name or an .npz file; its labels answer.")],
    decisions: Annotated[int, typer.Option(help="How many decisions to ask for.", min=1)] = 10_000,
    users: Annotated[int, typer.Option(help="How many users at once.", min=1)] = 8,
    rate: Annotated[
        float | None, typer.Option(help="Decisions a second, together. Default: as fast as they can.")
    ] = None,
    delay: Annotated[float, typer.Option(help="Mean seconds before an answer.", min=0)] = 0.5,
    lose: Annotated[float, typer.Option(help="Share of decisions without an outcome.", min=0, max=1)] = 0.1,
    repeat: Annotated[
        float, typer.Option(help="Share of requests that are sent twice.", min=0, max=1)
    ] = 0.05,
    name_label: Annotated[
        float, typer.Option(help="Share of answers that name the label.", min=0, max=1)
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="The seed of it all.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Let simulated users ask a service for sets and answer them: late, twice, or never.

    A token is read from the environment variable SUPERARM_TOKEN.

    Example: **superarm traffic http://127.0.0.1:8800 --data digits --decisions 5000**
    """
    from superarm._progress import progress_bar
    from superarm.service.client.traffic import Habits
    from superarm.service.client.traffic import traffic as run
    from superarm.streams import open_data

    stream = open_data(data)
    habits = Habits(users, delay, lose, repeat, name_label, rate, seed)
    with progress_bar(decisions, quiet=as_json) as tick:
        tally = run(url, stream, decisions, habits=habits, token=os.environ.get("SUPERARM_TOKEN"), tick=tick)
    if as_json:
        print_json(asdict(tally))
    else:
        each = tally.decisions / tally.seconds if tally.seconds else 0.0
        print(f"{tally.decisions:,} decisions, {tally.repeats:,} of them sent twice")
        print(f"{tally.outcomes:,} outcomes; {tally.lost:,} decisions were never answered")
        print(f"hit rate {tally.hits / tally.decisions:.3f}, {each:,.0f} decisions/s")
    if tally.errors:
        print(f"superarm: {len(tally.errors)} users gave up: {tally.errors[0]}", file=sys.stderr)
        sys.exit(1)
