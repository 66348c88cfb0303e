"""superarm simulate: runs of one or more learners on a data set, with the labels as the oracle."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from typer import Option

from superarm.cli import options as opt
from superarm.cli.options import AsJson, Force
from superarm.cli.output import (
    check_output,
    column_lines,
    print_group_coverage,
    print_json,
    print_note,
    print_table,
)
from superarm.errors import InvalidInput


def simulate(
    data: Annotated[
        str, Option(help="A name (superarm data list) or a file: .csv, .tsv, .jsonl, .parquet, .npz, .svm.")
    ],
    learner: Annotated[
        list[str] | None, Option(help="NAME, NAME:key=value,key=value or file.py:Class; several to compare.")
    ] = None,
    set_size: Annotated[int | None, Option(help="How many labels to show, m.")] = None,
    rounds: Annotated[int, Option(help="Rounds a run.", min=1)] = 100_000,
    seeds: Annotated[int, Option(help="How many runs, with seeds from --seed on.", min=1)] = 1,
    seed: Annotated[int, Option(help="The first seed.", min=0)] = 0,
    gamma: Annotated[float | None, Option(help="The share of exploration, in (0, 1].")] = None,
    label: Annotated[str | None, Option(help="The label column, for tables.")] = None,
    scaling: Annotated[
        str,
        Option(
            help="How rows reach the weights: 'standard', each column by its mean and spread; 'unit', of length 1; "
            "'own', as each learner does by itself. A learner's own scaling=… wins."
        ),
    ] = "standard",
    columns: opt.ColumnsFile = None,
    column_options: opt.ColumnOptions = opt.ColumnOptions(),  # noqa: B008  (the options in its fields)
    group: Annotated[
        str | None, Option(help="Also report the coverage of each value of this column, for tables.")
    ] = None,
    log: Annotated[
        Path | None, Option(help="Write every decision to a .parquet, .jsonl or .csv file (one run).")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run learners on a data set and count their mistakes.

    error: the top label was wrong. miss: the top set missed the label. shown miss: the set that was
    shown missed it. With a promise (set-logit:coverage=0.95): how often the label was shown, and the mean
    size of the sets, after the warm-up; also by label, as it is promised only on average. Of several learners,
    those without gamma ignore it, and those of single labels show one. All scale rows alike, unless told
    otherwise.

    A table with fewer rows than rounds is gone through again and again, and mistakes on rows that came before count
    like all others: its first line says how often. Fewer mistakes than on new rows are then to be expected; as many
    rounds as rows visit each row once.

    Columns of a table may hold numbers, words, text, dates, yes or no, lists of numbers, and have gaps; what was
    made of each is said on standard error.

    Example: **superarm simulate --data digits --learner set-logit --learner mc-dbf --set-size 4 --seeds 3**
    """
    from superarm.comparison import compare
    from superarm.data.columns import Columns
    from superarm.learners.cores import SCALINGS
    from superarm.logs import Writer
    from superarm.streams import open_data

    declared = None if columns is None else Columns.read(columns)
    stream = open_data(data, label=label, columns=declared, group=group, **column_options.as_arguments)
    stream_columns = getattr(stream, "columns", None)
    if stream_columns is not None and not as_json:
        for line in column_lines(stream_columns, stream.n_labels, columns):
            print_note(line)
    specs = list(dict.fromkeys(learner or ["set-logit"]))
    if log is not None and (len(specs) > 1 or seeds > 1):
        raise InvalidInput.must("--log", "simulate", "used with one learner and one seed", str(log))
    check_output(log, "simulate", force=force, option="--log", inputs=[data])
    if scaling not in (*SCALINGS, "own"):
        raise InvalidInput.must("--scaling", "simulate", f"one of {', '.join(SCALINGS)}, own", scaling)
    if len(specs) > 1:  # alone, a learner refuses what it cannot use
        _print_unused_options(specs, set_size, gamma)
    with nullcontext() if log is None else Writer(log) as writer:
        comparison = compare(
            specs,
            stream,
            rounds,
            set_size=set_size,
            gamma=gamma,
            seeds=range(seed, seed + seeds),
            scaling=None if scaling == "own" else scaling,
            log=writer,
            progress=not as_json,
        )
    if as_json:
        results = comparison.to_dicts()
        print_json(results[0] if len(results) == 1 else {"results": results})
        return
    print_table(*comparison.cells())
    for name in comparison.runs:
        print_group_coverage(name, **comparison.group_coverage(name), group=group)


def _print_unused_options(specs: list[str], set_size: int | None, gamma: float | None) -> None:
    """Print which learners cannot use the set size or the gamma that the others use."""
    from superarm.comparison import usable_options

    for spec in specs:
        usable = usable_options(spec, {"set_size": set_size, "gamma": gamma})
        if set_size is not None and usable.get("set_size", set_size) != set_size:
            print_note(f"{spec}: m = 1, its theory knows no larger sets")
        if gamma is not None and "gamma" not in usable:
            print_note(f"{spec}: runs without --gamma")
