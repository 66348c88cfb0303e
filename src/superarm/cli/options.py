"""Options that several commands have, and what their texts mean."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from superarm.errors import Description, InvalidInput

if TYPE_CHECKING:
    from superarm.data.columns import Columns
    from superarm.learners import Learner
    from superarm.logs import Log


AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
JournalArgument = Annotated[
    str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
]
CustomLearner = Annotated[
    str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
]
MAX_NAMES = 20  # columns with the same remark that are listed


def split_commas(text: str | None) -> tuple[str, ...]:
    """Words between commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def read_labels(path: Path) -> list[str]:
    """One label a line; empty lines, and the mark that some editors put first, do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a UTF-8 text file with one label a line"
        raise InvalidInput.must("--labels", "superarm", wanted, str(path)) from error
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        label = line.strip()
        if label in line_of:
            wanted = f"another label than that of line {line_of[label]}"
            raise InvalidInput.must(f"line {number}", str(path), wanted, label)
        if label:
            line_of[label] = number
    if len(line_of) < 2:
        raise InvalidInput.must("labels", str(path), "at least two, one a line", len(line_of))
    return list(line_of)


def read_config(context: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Let a TOML file give the defaults of all other options of a command."""
    if path is None or context.resilient_parsing:
        return path
    command = f"superarm {context.info_name}"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput.must(
            "--config", command, "a TOML file", Description(f"{path}: {error}")
        ) from error
    known = {option.name: option for option in context.command.params if option.name != parameter.name}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if isinstance(value, dict):
            raise InvalidInput.must(key, str(path), "an option, no table", value)
        if name not in known:
            raise InvalidInput.must(key, str(path), "left out: there is no such option", value)
        option: Any = known[name]
        defaults[name] = [value] if option.multiple and not isinstance(value, list) else value
        try:
            option.process_value(context, defaults[name])
        except (typer.BadParameter, TypeError, ValueError) as error:
            wanted = f"what --{name.replace('_', '-')} takes ({getattr(error, 'message', error)})"
            raise InvalidInput.must(key, str(path), wanted, value) from error
    context.default_map = {**defaults, **(context.default_map or {})}
    return path


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
    for warning in columns.warnings:
        yield f"WARNING: {warning}"


def _grouped(columns: dict[str, str]) -> str:
    """Columns with the same remark together."""
    groups: dict[str, list[str]] = {}
    for name, remark in columns.items():
        groups.setdefault(remark, []).append(name)
    return "; ".join(f"{_first_few(names)} ({remark})" for remark, names in groups.items())


def _first_few(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MAX_NAMES])} and {more:,} more"


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
    empty_is_no: Annotated[
        bool, typer.Option("--empty-is-no", help="An empty answer is a no: only the yeses were written down.")
    ] = False
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
            matrix=self.features,
            separator=self.separator,
            feature_columns=declared,
            vectors=self.vectors,
            uniform=self.uniform,
            empty_is_no=self.empty_is_no,
            skip_bad=self.skip_bad,
        )


def labels_or_count(source: str | None) -> list[str] | int | None:
    """All labels from a file, or their number."""
    if source is None or source.isdecimal():
        return None if source is None else int(source)
    return read_labels(Path(source))
