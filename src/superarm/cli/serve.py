"""superarm serve: decisions and outcomes over HTTP."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from superarm.cli.options import read_labels
from superarm.cli.typer_extensions import read_config

if TYPE_CHECKING:
    from superarm.service import Service

log = logging.getLogger("superarm.service")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What `superarm.service.Service.open` takes: its fields are options of a command."""

    create: Annotated[
        bool, Option(help="Make the journal if it is missing, and say so; or refuse to start.")
    ] = True
    labels: Annotated[Path | None, Option(help="A file with one label a line (for a new journal).")] = None
    features: Annotated[
        int | None,
        Option(help="The length of a row (for a new journal). Default: that of the first row.", min=1),
    ] = None
    set_size: Annotated[int | None, Option(help="How many labels to show.", min=1)] = None
    coverage: Annotated[
        float | None,
        Option(help="Show as few as needed to have the right one among them so often.", min=0, max=1),
    ] = None
    learner: Annotated[
        str | None,
        Option(
            help="NAME, NAME:key=value,key=value or file.py:Class; 'scores' if a model of your own ranks the labels. "
            "Default: set-logit, with 2 % of uniform sets for the log."
        ),
    ] = None
    columns: Annotated[
        Path | None,
        Option(
            help="What the columns of rows with names are: a file that train wrote, or a model (for a new journal). "
            "Default: the kind of each value is guessed from itself."
        ),
    ] = None
    group: Annotated[
        str | None,
        Option(
            help="A column of rows with names, or a name in the context: the dashboard has the coverage of each "
            "of its values (for a new journal)."
        ),
    ] = None
    model: Annotated[
        Path | None,
        Option(help="A model file to start a new journal with; it is to draw 2 % of uniform sets, too."),
    ] = None
    seed: Annotated[int | None, Option(help="The learner's seed. Default: 0.", min=0)] = None
    shadow: Annotated[
        list[str] | None,
        Option(help="Another learner, that learns the same and is never shown; may be repeated."),
    ] = None
    timeout: Annotated[
        str | None,
        Option(help="When an unanswered decision is closed: 30m, 12h, or seconds. Default: never."),
    ] = None
    retain: Annotated[
        str | None,
        Option(help="Erase features and context of decisions older than this: 90d. Default: never."),
    ] = None
    trust_clock: Annotated[
        bool,
        Option("--trust-clock", help="Expire and erase by the clock, however far it is from the last event."),
    ] = False
    default_outcome: Annotated[
        str, Option(help="What a timeout counts as: 'none' (nothing is learnt), 'miss' or 'hit'.")
    ] = "none"
    snapshot_every: Annotated[int, Option(help="Events between snapshots.", min=1)] = 50_000
    keep_snapshots: Annotated[
        int, Option(help="Snapshots to keep beside the first; 0: all of them.", min=0)
    ] = 3
    max_journal_mb: Annotated[
        int | None,
        Option(help="Refuse to write (507) beyond this size of the journal, if it is a file.", min=1),
    ] = None
    patience: Annotated[
        float, Option(help="Seconds for a view, and on PostgreSQL for a statement; then 503.")
    ] = 5.0

    def open(self, journal: str) -> Service:
        """Return the service on a journal."""
        from superarm.service import Service

        options = asdict(self) | {"labels": None if self.labels is None else read_labels(self.labels)}
        options |= {"n_features": options.pop("features"), "shadows": options.pop("shadow") or ()}
        service = Service.open(journal, **options)
        if self.model is not None and not service.created:
            log.warning("--model is not used: the journal has its model already")
        if self.timeout is None and service.follower.projector.totals.stats.timeouts:
            log.warning("decisions do not expire: this start has no --timeout, an earlier one had")
        return service


def serve(
    journal: Annotated[
        str, Option(help="What keeps everything: a SQLite file, or postgresql://… for many processes.")
    ],
    config: Annotated[
        Path | None,
        Option(
            help="A TOML file with these options by name (set-size = 3); the command line comes first, "
            "then the environment (SUPERARM_SERVE_SET_SIZE), then this file.",
            is_eager=True,
            callback=read_config,
        ),
    ] = None,
    options: ServiceOptions = ServiceOptions(),  # noqa: B008  (the options in its fields)
    host: Annotated[
        str, Option(help="The address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="The port to listen on.", min=0, max=65535)] = 8800,
    unix_socket: Annotated[
        Path | None, Option(help="Listen on a socket in the file system, and on no port.")
    ] = None,
    tls_cert: Annotated[Path | None, Option(help="A certificate (PEM), to speak TLS.")] = None,
    tls_key: Annotated[Path | None, Option(help="Its private key (PEM).")] = None,
    token_file: Annotated[
        Path | None,
        Option(help="Bearer tokens, one a line, each after its role; or set SUPERARM_TOKEN to one."),
    ] = None,
    max_body: Annotated[int, Option(help="The largest request, in bytes.", min=1024)] = 1 << 20,
    max_connections: Annotated[int, Option(help="Connections at once.", min=1)] = 1_000,
    rate_limit: Annotated[float, Option(help="Requests a second from one address.", min=1)] = 10_000,
    log_requests: Annotated[bool, Option(help="Log every request.")] = False,
) -> None:
    """Serve decisions over HTTP and learn from outcomes, whenever they come.

    The dashboard is at /, the API's documentation at /docs. The journal keeps the learner and its labels; how the
    service runs (timeouts, shadows, addresses, …) is given at each start, best in a file for --config.

    Example: **superarm serve --labels labels.txt --set-size 3 --journal events.db**
    """
    from superarm.http.access import Tokens
    from superarm.http.connection_limits import Limits
    from superarm.http.listener import Listener
    from superarm.service.serve import serve as run_service

    tokens = Tokens(token_file, os.environ.get("SUPERARM_TOKEN") or None)
    run_service(
        partial(options.open, journal),
        tokens,
        listener=Listener(host, port, unix_socket, tls_cert, tls_key),
        limits=Limits(max_connections=max_connections),
        rate_limit=rate_limit,
        max_body=max_body,
        log_requests=log_requests,
    )
