"""The options that say how to read a log, for train and evaluate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from superarm.cli.column_options import ColumnOptions, ColumnsFile
from superarm.cli.options import read_labels, split_commas

if TYPE_CHECKING:
    from superarm.learners import Learner
    from superarm.logs import Log

HOLDOUT = 0.2  # the share of rows that judge, where none is said
COLUMNS = "Columns of the file"
LogFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Decision logs, one or several: .parquet, .jsonl, .csv or .dsjson.", metavar="LOG..."
    ),
]
Labels = Annotated[
    str | None, typer.Option(help="All labels: a file with one a line, or how many. Else those in the log.")
]


@dataclass(frozen=True, slots=True)
class LogOptions(ColumnOptions):
    """How to read a log: its fields are options of a command."""

    features: Annotated[
        Path | None, typer.Option(help="A file of features (.npy, .npz), row i for row i of the log.")
    ] = None
    labels_column: Annotated[
        str,
        typer.Option(
            help="The set (a;b;c or JSON), or one column for each: first,second", rich_help_panel=COLUMNS
        ),
    ] = "labels"
    hit_column: Annotated[
        str, typer.Option(help="Whether the set held the right label.", rich_help_panel=COLUMNS)
    ] = "hit"
    label_column: Annotated[
        str, typer.Option(help="The right label, where known.", rich_help_panel=COLUMNS)
    ] = "label"
    propensity_column: Annotated[
        str, typer.Option(help="The probability of the set.", rich_help_panel=COLUMNS)
    ] = "propensity"
    eligible_column: Annotated[
        str, typer.Option(help="The only labels that could be shown.", rich_help_panel=COLUMNS)
    ] = "eligible"
    features_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of numbers, words, text, dates: age,city. Else x, or all others that can be features.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    columns: ColumnsFile = None
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between labels in one cell: a semicolon, if not given.", rich_help_panel=COLUMNS
        ),
    ] = None
    uniform: Annotated[bool, typer.Option("--uniform", help="The sets were drawn uniformly at random.")] = (
        False
    )
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pass over rows that cannot be used; count them.")
    ] = False

    def log(self, paths: list[Path], models: Iterable[Learner] = ()) -> Log:
        """The logs as one, with the columns that these models were trained with, if it has them."""
        from superarm.data.columns import Columns
        from superarm.logs import Log, LogColumns

        declared = [model.columns for model in models if model.columns is not None]
        if self.columns is not None:
            declared = [Columns.read(self.columns)]
        columns = LogColumns(
            labels=split_commas(self.labels_column),
            hit=self.hit_column,
            label=self.label_column,
            propensity=self.propensity_column,
            eligible=self.eligible_column,
            features=split_commas(self.features_columns) or None,
            kinds=self.kinds,
        )
        return Log(
            paths,
            columns=columns,
            features=self.features,
            separator=self.separator,
            declared=declared,
            vectors=self.vectors,
            uniform=self.uniform,
            skip_bad=self.skip_bad,
        )


def labels_or_count(source: str | None) -> list[str] | int | None:
    """All labels from a file, or their number."""
    if source is None or source.isdecimal():
        return None if source is None else int(source)
    return read_labels(Path(source))
