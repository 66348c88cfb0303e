"""The commands, each in a file of its own, behind one name."""

from __future__ import annotations

import typer

from superarm.cli import data as _data
from superarm.cli import report as _report
from superarm.cli import reproduce as _reproduce
from superarm.cli import run as _run
from superarm.cli import simulate as _simulate

app = typer.Typer(
    name="superarm",
    help="Learn a classifier from yes/no answers about sets of labels.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("simulate")(_simulate.simulate)
app.command("run")(_run.run)
app.command("reproduce")(_reproduce.reproduce)
app.command("report")(_report.report)
app.add_typer(_data.app, name="data")


@app.callback()
def _root() -> None:
    """Learn a classifier from yes/no answers about sets of labels."""
