"""superarm traffic: simulated users for a running service."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from typer import Argument, Option

from superarm.cli.options import AsJson
from superarm.cli.output import print_json


def traffic(
    url: Annotated[str, Argument(help="The service, as http://127.0.0.1:8800.")],
    data: Annotated[str, Option(help="A data set's name or an .npz file; its labels answer.")],
    decisions: Annotated[int, Option(help="How many decisions to ask for.", min=1)] = 10_000,
    users: Annotated[int, Option(help="How many users at once.", min=1)] = 8,
    delay: Annotated[float, Option(help="Mean seconds before an answer.", min=0)] = 0.5,
    lose: Annotated[float, Option(help="Share of decisions without an outcome.", min=0, max=1)] = 0.1,
    repeat: Annotated[float, Option(help="Share of requests that are sent twice.", min=0, max=1)] = 0.05,
    seed: Annotated[int, Option(help="The seed of rows, delays and losses.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Let simulated users ask a service for sets and answer them: late, twice, or never.

    A token is read from the environment variable SUPERARM_TOKEN.

    Example: **superarm traffic http://127.0.0.1:8800 --data digits --decisions 5000**
    """
    from superarm._progress import progress_bar
    from superarm.service.client.traffic import UserBehaviour, simulate_users
    from superarm.streams import open_data

    stream = open_data(data)
    behaviour = UserBehaviour(users, mean_delay=delay, lost_share=lose, repeated_share=repeat, seed=seed)
    token = os.environ.get("SUPERARM_TOKEN")
    with progress_bar(decisions, progress=not as_json) as tick:
        counts = simulate_users(url, stream, decisions, behaviour=behaviour, token=token, tick=tick)
    if as_json:
        print_json(counts)
    else:
        per_second = counts.decisions / counts.seconds if counts.seconds else 0.0
        print(f"{counts.decisions:,} decisions, {counts.repeats:,} of them sent twice")
        print(f"{counts.outcomes:,} outcomes; {counts.lost:,} decisions were never answered")
        print(f"hit rate {counts.hits / max(1, counts.decisions):.3f}, {per_second:,.0f} decisions/s")
    if counts.errors:
        print(f"superarm: {len(counts.errors)} users gave up: {counts.errors[0]}", file=sys.stderr)
        sys.exit(1)
