"""All commands of ``superarm``."""

from __future__ import annotations

from typing import Annotated

from typer import Exit, Option

from superarm import __version__
from superarm.cli import change, data, labels
from superarm.cli.evaluate import evaluate
from superarm.cli.experiments import demo, report, reproduce, run
from superarm.cli.journal import backup, erase, export, migrate, move, replay, verify
from superarm.cli.label import label
from superarm.cli.nightly import decide, learn
from superarm.cli.serve import serve
from superarm.cli.simulate import simulate
from superarm.cli.tools import bench, play, theory, traffic
from superarm.cli.train import train
from superarm.cli.typer_extensions import App

app = App(
    name="superarm",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    *(label, demo, play, simulate, run, reproduce, report),
    *(train, evaluate, decide, learn),
    *(serve, replay, export, verify, backup, migrate, move, erase, traffic),
    *(theory, bench),
):
    # every option of serve can come from the environment, too: SUPERARM_SERVE_PORT
    app.command(context_settings={"auto_envvar_prefix": "SUPERARM_SERVE"} if command is serve else None)(
        command
    )
app.add_typer(data.app, name="data")
app.add_typer(change.app, name="change")
app.add_typer(labels.app, name="labels")


def _version(value: bool) -> None:
    if value:
        print(f"superarm {__version__}")
        raise Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn a classifier from yes/no answers about sets of labels.

    Example: **superarm demo**, then **superarm simulate --data digits --set-size 3**
    """
