"""The options of commands that work on a journal."""

from __future__ import annotations

from typing import Annotated

import typer

JournalArgument = Annotated[
    str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
]
OwnLearner = Annotated[
    str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
]
