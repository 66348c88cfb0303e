"""superarm serve: decisions and outcomes over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.labels import read_labels
from superarm.errors import InvalidInput

DEFAULTS = {"none": None, "hit": True, "miss": False}


def serve(
    journal: Annotated[
        Path, typer.Option(help="The SQLite file that keeps everything; made if it is missing.")
    ],
    labels: Annotated[
        Path | None, typer.Option(help="A file with one label a line (for a new journal).")
    ] = None,
    features: Annotated[
        int | None, typer.Option(help="The length of a row (for a new journal).", min=1)
    ] = None,
    set_size: Annotated[int | None, typer.Option(help="How many labels to show.", min=1)] = None,
    learner: Annotated[
        str | None, typer.Option(help="NAME, NAME:key=value,key=value or file.py:Class. Default: set-logit.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A model file to start a new journal with.")] = None,
    seed: Annotated[int | None, typer.Option(help="The learner's seed. Default: 0.", min=0)] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds after which an unanswered decision is closed. Default: never."),
    ] = None,
    default_outcome: Annotated[
        str, typer.Option(help="What a timeout counts as: 'none' (nothing is learnt), 'miss' or 'hit'.")
    ] = "none",
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = 8800,
    token_file: Annotated[
        Path | None, typer.Option(help="A file that holds the bearer token; or set SUPERARM_TOKEN.")
    ] = None,
    snapshot_every: Annotated[int, typer.Option(help="Events between snapshots.", min=1)] = 50_000,
    keep_snapshots: Annotated[
        int, typer.Option(help="Snapshots to keep; events older than these move to Parquet. 0: never.", min=0)
    ] = 3,
    max_journal_mb: Annotated[
        int | None, typer.Option(help="Refuse to write (507) beyond this size of the journal.", min=1)
    ] = None,
    max_body: Annotated[int, typer.Option(help="The largest request, in bytes.", min=1024)] = 1 << 20,
    rate_limit: Annotated[float, typer.Option(help="Requests a second from one address.", min=1)] = 10_000,
    log_requests: Annotated[bool, typer.Option(help="Log every request.")] = False,
) -> None:
    """Serve decisions over HTTP and learn from outcomes, whenever they come.

    The dashboard is at /, the API's documentation at /docs. Later starts need only --journal.

    Example: **superarm serve --labels labels.txt --features 64 --set-size 3 --journal events.db**
    """
    from superarm.service.core.session import Session
    from superarm.service.http.server import check_exposure
    from superarm.service.http.server import serve as run

    if default_outcome not in DEFAULTS:
        raise InvalidInput.must("--default-outcome", "superarm serve", "none, miss or hit", default_outcome)
    token = token_file.read_text().strip() if token_file else os.environ.get("SUPERARM_TOKEN") or None
    check_exposure(host, token)
    session = Session.open(
        journal,
        learner=learner,
        labels=None if labels is None else read_labels(labels),
        n_features=features,
        set_size=set_size,
        seed=seed,
        model=model,
        max_mb=max_journal_mb,
        timeout=timeout,
        default=DEFAULTS[default_outcome],
        snapshot_every=snapshot_every,
        keep_snapshots=keep_snapshots,
    )
    session.warm_up()
    run(
        lambda: session,
        host=host,
        port=port,
        token=token,
        max_body=max_body,
        rate=rate_limit,
        log_requests=log_requests,
    )
