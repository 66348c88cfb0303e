"""The commands, each in a file of its own, behind one name."""

from __future__ import annotations

import typer

from superarm.cli import evaluate as _evaluate
from superarm.cli import simulate as _simulate
from superarm.cli import train as _train

app = typer.Typer(
    name="superarm",
    help="Learn a classifier from yes/no answers about sets of labels.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("simulate")(_simulate.simulate)
app.command("train")(_train.train)
app.command("evaluate")(_evaluate.evaluate)


@app.callback()
def _root() -> None:
    """Learn a classifier from yes/no answers about sets of labels."""
