"""superarm simulate: runs of one or more learners on a data set, with the labels as the oracle."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from superarm.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from superarm.logs import Writer
    from superarm.simulation import Trace
    from superarm.streams import Stream


def simulate(
    data: Annotated[
        str,
        typer.Option(help="A name (superarm data list) or a file: .csv, .tsv, .jsonl, .parquet, .npz, .svm."),
    ],
    learner: Annotated[
        list[str] | None,
        typer.Option(help="NAME, NAME:key=value,key=value or file.py:Class; several to compare."),
    ] = None,
    set_size: Annotated[int | None, typer.Option(help="How many labels to show, m.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds a run.", min=1)] = 100_000,
    seeds: Annotated[int, typer.Option(help="How many runs, with seeds from --seed on.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    gamma: Annotated[float | None, typer.Option(help="The share of exploration, in (0, 1].")] = None,
    label: Annotated[str | None, typer.Option(help="The label column, for tables.")] = None,
    scaling: Annotated[
        str,
        typer.Option(
            help="How rows reach the weights: 'standard', each column by its mean and spread; 'unit', of length 1; "
            "'own', as each learner does by itself. A learner's own scaling=… wins."
        ),
    ] = "standard",
    columns: opt.ColumnsFile = None,
    reading: opt.ColumnOptions = opt.ColumnOptions(),  # noqa: B008  (the options in its fields)
    group: Annotated[
        str | None, typer.Option(help="Also report the coverage of each value of this column, for tables.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Write every decision to a .parquet, .jsonl or .csv file (one run).")
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
    from superarm.learners.base import SCALINGS
    from superarm.streams import open_data

    declared = None if columns is None else Columns.read(columns)
    stream = open_data(data, label=label, columns=declared, group=group, **reading.as_arguments)
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
    with _log_writer(log) as writer:
        traces = compare(
            specs,
            stream,
            rounds,
            set_size=set_size,
            gamma=gamma,
            seeds=range(seed, seed + seeds),
            scaling=None if scaling == "own" else scaling,
            log=writer,
            progress=not as_json,
        ).runs
    if as_json:
        results = [_as_json(spec, data, runs) for spec, runs in traces.items()]
        print_json(results[0] if len(results) == 1 else {"results": results})
    else:
        title = (
            f"{stream.name}: {_describe_rounds(stream, rounds)}, {stream.n_labels} labels, {seeds} seed(s)"
        )
        _print_traces(title, traces, group, intervals=seeds > 1 and _can_give_intervals())


def _describe_rounds(stream: Stream, rounds: int) -> str:
    """Return how many rounds there are, and how often each row is visited if there are fewer rows."""
    rows = getattr(stream, "y", ())  # a stream without them is endless
    if not 0 < len(rows) < rounds:
        return f"{rounds:,} rounds"
    return f"{len(rows):,} rows, visited {rounds / len(rows):.1f} times in {rounds:,} rounds"


def _print_unused_options(specs: list[str], set_size: int | None, gamma: float | None) -> None:
    """Print which learners cannot use the set size or the gamma that the others use."""
    from superarm.comparison import usable_options

    for spec in specs:
        usable = usable_options(spec, {"set_size": set_size, "gamma": gamma})
        if set_size is not None and usable.get("set_size", set_size) != set_size:
            print_note(f"{spec}: m = 1, its theory knows no larger sets")
        if gamma is not None and "gamma" not in usable:
            print_note(f"{spec}: runs without --gamma")


def _log_writer(path: Path | None) -> AbstractContextManager[Writer | None]:
    if path is None:
        return nullcontext()
    from superarm.logs import Writer

    return Writer(path)


def _can_give_intervals() -> bool:
    """Return whether Student's intervals can be computed; print what is missing if they cannot."""
    from superarm._extras import require_extra

    try:
        require_extra("logs", "scipy")
    except MissingExtra as error:
        print_note(f"no intervals: {error}")
        return False
    return True


def _print_traces(
    title: str, traces: dict[str, tuple[Trace, ...]], group: str | None, *, intervals: bool
) -> None:
    """Print a row for each learner: means over its runs, with half of their 95 % intervals; then its coverages."""
    from superarm._intervals import student_margin
    from superarm.groups import pool_coverage
    from superarm.simulation import NOT_WARM, RATES

    rows = []
    promised = any(run.promised is not None for runs in traces.values() for run in runs)
    for spec, runs in traces.items():
        cells = [spec, str(runs[0].set_size), runs[0].scaling]
        for name in RATES:
            values = [run.rates[name] for run in runs]
            cell = f"{mean(values):.4f}"
            if intervals:
                margin = student_margin(stdev(values) / len(values) ** 0.5, len(values) - 1)
                cell += f" ± {margin:.4f}"
            cells.append(cell)
        if promised and runs[0].is_warm:
            cells += [
                f"{mean(run.coverage for run in runs):.4f}",
                f"{mean(run.mean_size for run in runs):.2f}",
            ]
        elif promised:
            cells += [NOT_WARM, ""]
        rows.append([*cells, f"{mean(run.rounds_per_second for run in runs):,.0f}"])
    sizes = ["coverage", "mean size"] if promised else []
    title += ", mean ± half of the 95 % interval" if intervals else ""
    print_table(title, ["learner", "m", "scaling", "error", "miss", "shown miss", *sizes, "rounds/s"], rows)
    for spec, runs in traces.items():
        by_label, by_group = (
            pool_coverage(getattr(run, part) for run in runs) for part in ("by_label", "by_group")
        )
        print_group_coverage(spec, by_label, by_group, group)


def _as_json(spec: str, data: str, runs: tuple[Trace, ...]) -> dict[str, Any]:
    """Return the runs of a learner as JSON."""
    from superarm.groups import pool_coverage

    rates = [run.rates | _coverage_and_size(run) for run in runs]
    coverages = {
        name: [asdict(part) for part in pool_coverage(getattr(run, name) for run in runs)]
        for name in ("by_label", "by_group")
    }
    return {
        "learner": spec,
        "data": data,
        "set_size": runs[0].set_size,
        "scaling": runs[0].scaling,
        "rounds": int(runs[0].rounds[-1]),
        "runs": [
            {"seed": run.seed, **run_rates, "rounds_per_second": run.rounds_per_second}
            for run, run_rates in zip(runs, rates, strict=True)
        ],
        "mean": {name: _mean([run_rates[name] for run_rates in rates]) for name in rates[0]},
        **{name: parts for name, parts in coverages.items() if parts},
    }


def _coverage_and_size(run: Trace) -> dict[str, Any]:
    """Return coverage and mean size after the warm-up of a promise; without one, of all rounds."""
    return {name: getattr(run, name) if run.is_warm else None for name in ("coverage", "mean_size")}


def _mean(values: list[float | None]) -> float | None:
    """Return the mean of the values that are not None, if there are any."""
    numbers = [value for value in values if value is not None]
    return mean(numbers) if numbers else None
