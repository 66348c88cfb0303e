"""Options that several commands have, and what their texts mean."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from superarm.errors import InvalidInput

if TYPE_CHECKING:
    from superarm.learners import Learner
    from superarm.logs import Log, LogSummary


AsJson = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, Option("--force", help="Write over a file that is there.")]
JournalArgument = Annotated[
    str, Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
]
OlderThan = Annotated[str | None, Option(help="All decisions older than this, such as 90d.")]
AnyPort = Annotated[int, Option(help="The port to listen on; 0: any free one.", min=0, max=65535)]
OpenPage = Annotated[bool, Option("--browser/--no-browser", help="Open the page.")]
CustomLearner = Annotated[
    str | None, Option(help="file.py:Class, if the journal's learner is in a file of yours.")
]


def split_commas(text: str | None) -> tuple[str, ...]:
    """Return the words between commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def read_labels(path: Path) -> list[str]:
    """Return the labels of a file, one a line; empty lines, and the mark that some editors put first, do not count."""
    from superarm.data.tables import delimiter_of

    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a UTF-8 text file with one label a line"
        raise InvalidInput.must("--labels", "superarm", wanted, str(path)) from error
    delimiter = delimiter_of(lines[0]) if lines else ","
    if path.suffix.lower() in (".csv", ".tsv") and all(delimiter in line for line in lines if line.strip()):
        wanted = "one a line, without a header and further columns"
        raise InvalidInput.must("labels", str(path), wanted, lines[0])
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


def erased_before(older: str | None, ids: list[str] | None, command: str, ids_option: str) -> float | None:
    """Return the time before which decisions are to be erased; None if they are named by their ids."""
    from superarm.parameters import parse_duration

    if bool(ids) == (older is not None):
        raise InvalidInput(f"{command} needs {ids_option} or --older, and not both")
    return None if older is None else time.time() - parse_duration(older, "--older", command)


def labels_or_count(source: str | None) -> list[str] | int | None:
    """Return all labels, from a file, or how many there are; None if neither is given."""
    if source is None or source.isdecimal():
        return None if source is None else int(source)
    return read_labels(Path(source))


def summarize_log(source: Log, labels: Iterable[Any] | int | None, model: Learner | None) -> LogSummary:
    """Return the summary of a log; if no labels are given, a model knows them, also those never shown in the log."""
    from superarm.logs import summarize

    if model is None:
        return summarize(source, labels=labels)
    if labels is None:
        labels = model.n_labels if model.labels is None else model.labels
    return summarize(source, labels=labels, n_features=model.n_features)


# options under a title of their own in the help
kind_option = partial(Option, rich_help_panel="What columns are")
log_column_option = partial(Option, rich_help_panel="Columns of the file")

ColumnsFile = Annotated[
    Path | None,
    kind_option(help="What the columns are: a file that train wrote, or a model. Else the first rows tell."),
]
Vectors = Annotated[
    Path | None, kind_option(help="Vectors beside the table: an .npy with a row for each of its rows.")
]


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """What the columns of a table are: its fields are options of a command."""

    text: Annotated[str | None, kind_option(help="Columns that hold text: subject,body.")] = None
    words: Annotated[str | None, kind_option(help="Columns of words, each taken whole: postcode.")] = None
    numbers: Annotated[str | None, kind_option(help="Columns of numbers.")] = None
    dates: Annotated[str | None, kind_option(help="Columns of dates.")] = None
    leave_out: Annotated[str | None, kind_option(help="Columns that are no features.")] = None
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


HOLDOUT = 0.2  # the share of rows that judge, by default
LogFiles = Annotated[
    list[Path],
    Argument(help="Decision logs, one or several: .parquet, .jsonl, .csv or .dsjson.", metavar="LOG..."),
]
Labels = Annotated[
    str | None, Option(help="All labels: a file with one a line, or how many. Else those in the log.")
]


@dataclass(frozen=True, slots=True)
class LogOptions(ColumnOptions):
    """How to read a log: its fields are options of a command."""

    features: Annotated[
        Path | None, Option(help="A file of features (.npy, .npz), row i for row i of the log.")
    ] = None
    labels_column: Annotated[
        str, log_column_option(help="The set (a;b;c or JSON), or one column for each: first,second")
    ] = "labels"
    hit_column: Annotated[str, log_column_option(help="Whether the set held the right label.")] = "hit"
    label_column: Annotated[str, log_column_option(help="The right label, where known.")] = "label"
    propensity_column: Annotated[str, log_column_option(help="The probability of the set.")] = "propensity"
    eligible_column: Annotated[str, log_column_option(help="The only labels that could be shown.")] = (
        "eligible"
    )
    features_columns: Annotated[
        str | None,
        log_column_option(
            help="Columns of numbers, words, text, dates: age,city. Else x, or all others that can be features."
        ),
    ] = None
    columns: ColumnsFile = None
    separator: Annotated[
        str | None,
        log_column_option(help="What stands between labels in one cell: a semicolon, if not given."),
    ] = None
    uniform: Annotated[bool, Option("--uniform", help="The sets were drawn uniformly at random.")] = False
    empty_is_no: Annotated[
        bool, Option("--empty-is-no", help="An empty answer is a no: only the yeses were written down.")
    ] = False
    log_rule: Annotated[
        str | None, Option(help="file.py:Class, if a rule in a file of yours drew the log's sets.")
    ] = None
    skip_bad: Annotated[
        bool, Option("--skip-bad", help="Pass over rows that cannot be used; count them.")
    ] = False

    def log(self, paths: list[Path], models: Iterable[Learner] = ()) -> Log:
        """Return the logs as one, with the columns that ``--columns`` or these models declare."""
        from superarm.data.columns import Columns
        from superarm.learners.registry import make_rule
        from superarm.logs import Log, LogColumns

        if self.log_rule is not None:
            make_rule(self.log_rule, "--log-rule")  # from then on its name is known
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
