"""The options that say how to read a log, for train and evaluate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from superarm.cli.column_options import names
from superarm.cli.label_file import read_labels

if TYPE_CHECKING:
    from superarm.learners import Learner
    from superarm.logs import Log, LogColumns

__all__ = [
    "HOLDOUT",
    "EligibleColumn",
    "Features",
    "FeaturesColumns",
    "HitColumn",
    "LabelColumn",
    "Labels",
    "LabelsColumn",
    "LogFiles",
    "PropensityColumn",
    "Reading",
    "Separator",
    "SkipBad",
    "Uniform",
    "labels_or_count",
    "names",
]

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
Features = Annotated[
    Path | None, typer.Option(help="A file of features (.npy, .npz), row i for row i of the log.")
]
LabelsColumn = Annotated[
    str,
    typer.Option(
        help="The set (a;b;c or JSON), or one column for each: first,second", rich_help_panel=COLUMNS
    ),
]
HitColumn = Annotated[
    str, typer.Option(help="Whether the set held the right label.", rich_help_panel=COLUMNS)
]
LabelColumn = Annotated[str, typer.Option(help="The right label, where known.", rich_help_panel=COLUMNS)]
PropensityColumn = Annotated[str, typer.Option(help="The probability of the set.", rich_help_panel=COLUMNS)]
EligibleColumn = Annotated[
    str, typer.Option(help="The only labels that could be shown.", rich_help_panel=COLUMNS)
]
FeaturesColumns = Annotated[
    str | None,
    typer.Option(
        help="Columns of numbers, words, text, dates: age,city. Else x, or all others that can be features.",
        rich_help_panel=COLUMNS,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What stands between labels in one cell: a semicolon, if not given.", rich_help_panel=COLUMNS
    ),
]
Uniform = Annotated[bool, typer.Option("--uniform", help="The sets were drawn uniformly at random.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Pass over rows that cannot be used; count them.")]


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a log, as the options say."""

    labels: str
    hit: str
    label: str
    propensity: str
    eligible: str
    features_columns: str | None
    features: Path | None
    separator: str | None
    uniform: bool
    skip_bad: bool
    asked: dict[str, Any] = field(default_factory=dict)
    declared: Path | None = None
    vectors: Path | None = None

    def columns(self) -> LogColumns:
        from superarm.logs import LogColumns

        features = names(self.features_columns) if self.features_columns else ()
        return LogColumns(
            labels=names(self.labels),
            hit=self.hit,
            label=self.label,
            propensity=self.propensity,
            eligible=self.eligible,
            features=features or None,
            **self.asked,
        )

    def log(self, paths: list[Path], models: Iterable[Learner] = ()) -> Log:
        """The logs as one, with the columns that these models were trained with, if it has them."""
        from superarm.data.columns import Columns
        from superarm.logs import Log

        declared = [model.columns for model in models if model.columns is not None]
        if self.declared is not None:
            declared = [Columns.read(self.declared)]
        return Log(
            paths,
            columns=self.columns(),
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
