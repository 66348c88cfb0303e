"""The options that say what the columns of a table are, and the lines that tell what was made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from superarm.cli.options import split_commas

if TYPE_CHECKING:
    from superarm.data.columns import Columns

PANEL = "What columns are"
ColumnsFile = Annotated[
    Path | None,
    typer.Option(
        help="What the columns are: a file that train wrote, or a model. Else the first rows tell.",
        rich_help_panel=PANEL,
    ),
]
Text = Annotated[
    str | None, typer.Option(help="Columns that hold text: subject,body.", rich_help_panel=PANEL)
]
Words = Annotated[
    str | None, typer.Option(help="Columns of words, each taken whole: postcode.", rich_help_panel=PANEL)
]
Numbers = Annotated[str | None, typer.Option(help="Columns of numbers.", rich_help_panel=PANEL)]
Dates = Annotated[str | None, typer.Option(help="Columns of dates.", rich_help_panel=PANEL)]
LeaveOut = Annotated[str | None, typer.Option(help="Columns that are no features.", rich_help_panel=PANEL)]
Vectors = Annotated[
    Path | None,
    typer.Option(
        help="Vectors beside the table: an .npy with a row for each of its rows.", rich_help_panel=PANEL
    ),
]


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """What the columns of a table are: its fields are options of a command."""

    text: Text = None
    words: Words = None
    numbers: Numbers = None
    dates: Dates = None
    leave_out: LeaveOut = None
    vectors: Vectors = None

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of columns that are given, as `superarm.Columns.infer` takes them."""
        options = {"text": self.text, "words": self.words, "numbers": self.numbers, "dates": self.dates}
        options["left out"] = self.leave_out
        return {column: kind for kind, columns in options.items() for column in split_commas(columns)}

    @property
    def as_arguments(self) -> dict[str, Any]:
        """The kinds of columns that are given, and the file of vectors: what a table is read with."""
        options = {"kinds": self.kinds, "vectors": self.vectors}
        return {name: value for name, value in options.items() if value}


def column_lines(columns: Columns, n_labels: int, declared_in: Path | None = None) -> Iterator[str]:
    """What was made of each column, and why; of a file that declares them, only what they are."""
    if declared_in is None:
        source = f" (by the first {columns.rows_seen:,} rows)" if columns.rows_seen else ""
        yield f"features: {_grouped(columns.descriptions)}{source}"
    else:
        yield f"features: {_grouped(columns.kinds)} (as {declared_in} says)"
    if columns.text_width:
        size = columns.text_width * n_labels * 8 / 1e6
        yield f"text: hashed to {columns.text_width:,} features for {n_labels:,} labels, {size:,.0f} MB"
    if declared_in is not None:
        return
    if columns.left_out:
        yield f"left out: {_grouped(columns.left_out)}"
    for warning in columns.warnings():
        yield f"WARNING: {warning}"


def _grouped(columns: dict[str, str]) -> str:
    """Columns with the same remark together."""
    groups: dict[str, list[str]] = {}
    for name, remark in columns.items():
        groups.setdefault(remark, []).append(name)
    return "; ".join(f"{', '.join(names)} ({remark})" for remark, names in groups.items())
