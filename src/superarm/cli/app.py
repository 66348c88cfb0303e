"""The commands, each in a file of its own, behind one name."""

from __future__ import annotations

import typer

from superarm.cli import export as _export
from superarm.cli import replay as _replay
from superarm.cli import serve as _serve
from superarm.cli import simulate as _simulate
from superarm.cli import traffic as _traffic

app = typer.Typer(
    name="superarm",
    help="Learn a classifier from yes/no answers about sets of labels.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("simulate")(_simulate.simulate)
app.command("serve")(_serve.serve)
app.command("replay")(_replay.replay)
app.command("export")(_export.export)
app.command("traffic")(_traffic.traffic)


@app.callback()
def _root() -> None:
    """Learn a classifier from yes/no answers about sets of labels."""
