"""superarm label: label a table, a folder of pictures or texts, in the browser."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from superarm.cli import options as opt
from superarm.cli.options import read_labels, split_commas
from superarm.cli.output import (
    column_lines,
    print_json,
    print_note,
    print_reading,
    print_table,
    serve_page,
)

if TYPE_CHECKING:
    from superarm.label import Labelling
    from superarm.label.app import LabellingServer
    from superarm.label.rows_to_label import RowsToLabel


def label(
    rows: Annotated[
        str,
        Argument(
            help="A table (.csv, .tsv, .jsonl, .parquet), a folder of pictures or .txt files, or digits."
        ),
    ],
    labels: Annotated[
        str | None,
        Option(
            help="A file with a label a line, or a column that holds some labels already: those rows teach first."
        ),
    ] = None,
    journal: Annotated[
        str | None,
        Option(
            help="Where answers are kept: a file or postgresql://…; left out, ROWS.labels.db beside the rows."
        ),
    ] = None,
    target: Annotated[
        float | None,
        Option(
            help="The share of labels that shall be right; 1 looks at every row. A new journal's is 0.99.",
            min=0.5,
            max=1.0,
        ),
    ] = None,
    yes_no: Annotated[
        bool | None, Option("--yes-no", help="Ask only for yes or no, about a few labels at once.")
    ] = None,
    max_labels: Annotated[
        int | None, Option(help="Labels of a question, at most. A new journal's is 5.", min=1, max=9)
    ] = None,
    show: Annotated[str | None, Option(help="The columns that people see: subject,body.")] = None,
    second_opinion_share: Annotated[
        float | None,
        Option(
            help="The share of rows asked about twice, of two people where there are. A new journal's is 0.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    answers: Annotated[
        str | None,
        Option(
            help="Play a labeller who knows this column, and count the clicks; nothing is kept. (digits and .npz: y)"
        ),
    ] = None,
    wrong_clicks: Annotated[
        float, Option(help="The share of wrong clicks of the labeller that is played.", min=0.0, max=0.5)
    ] = 0.0,
    column_options: opt.ColumnOptions = opt.ColumnOptions(),  # noqa: B008  (the options in its fields)
    seed: Annotated[int | None, Option(help="For the order of rows. A new journal's is 0.", min=0)] = None,
    keys: Annotated[
        str | None, Option(help="Other keys on the page: none=0,skip=x,undo=z,yes=j,no=n.")
    ] = None,
    token_file: Annotated[
        Path | None, Option(help="Several people: a file with NAME TOKEN in each line.")
    ] = None,
    host: Annotated[
        str, Option(help="The address to listen on; others than loopback need --token-file.")
    ] = "127.0.0.1",
    port: opt.AnyPort = 0,
    browser: opt.OpenPage = True,
    as_json: Annotated[
        bool, Option("--json", help="With --answers: one JSON object on standard output.")
    ] = False,
) -> None:
    """Label rows with about one click a row.

    A page asks about one row after the other: which of these few labels, or none of them? The model learns from every
    click, and rows that it is sure of are not asked about, but for a share that checks it (audits): the end is told
    with the share of wrong labels and its interval. Stop and go on at any time; nothing is lost.

    What is left out is as in the journal (**--target**, **--yes-no**, **--max-labels**, **--show**,
    **--second-opinion-share**, **--seed**).

    One label is right for each row: several right ones at once, and trees of labels, are not for this tool.

    Example: **superarm label tickets.csv --labels teams.txt --target 0.98**. Try it with **superarm label digits**;
    **superarm label tickets.csv --answers team** tells how many clicks it would take.
    """
    from superarm._extras import require_extra
    from superarm.errors import InvalidInput

    require_extra("label")
    from superarm.label import Labelling
    from superarm.label.app import LabellingServer
    from superarm.label.labelling_journal import LabellingJournal
    from superarm.label.names import sort_labels

    is_simulated = answers is not None
    if as_json and not is_simulated:
        raise InvalidInput("superarm label --json needs --answers: it prints what a simulation took")
    if is_simulated and journal is not None:
        wanted = "left out with --answers: a simulation keeps nothing"
        raise InvalidInput.must("--journal", "superarm label", wanted, journal)
    read_options = column_options.as_arguments
    names = None
    if labels is not None and Path(labels).is_file():
        names = read_labels(Path(labels))
    elif labels is not None:
        read_options["label"] = labels
    server, where = None, None  # a simulation has neither a page nor a journal
    if not is_simulated:
        where = journal or f"{rows.rstrip('/')}.labels.db"
        key_of = {action: key for action, _, key in (pair.partition("=") for pair in split_commas(keys))}
        server = LabellingServer(port, host=host, token_file=token_file, keys=key_of)
    with LabellingJournal(where) as opened:
        table = opened.read_rows(rows, answers=answers, **read_options)
        if is_simulated:
            _check_truth(table, names, f"column {answers!r}", f"only labels of {labels}")
        if names is None and "label" not in table.read_options and (is_simulated or table.name == "digits"):
            names = sort_labels(table.truth)
        print_reading(opened)
        job = Labelling(
            table,
            labels=names,
            journal=opened,
            target=target,
            yes_no=yes_no,
            max_labels=max_labels,
            show=None if show is None else split_commas(show),
            second_opinion_share=second_opinion_share,
            seed=seed,
        )
        _describe(job)
        if server is None:
            _simulate(job, wrong_clicks, as_json=as_json)
        else:
            _serve(job, server, browser=browser)


def _check_truth(rows: RowsToLabel, labels: list[str] | None, column: str, wanted: str) -> None:
    """Refuse a simulation in which some row has no label, or one that is not among those that may be given."""
    from superarm.errors import InvalidInput, Unquoted

    if None in rows.truth:
        got = Unquoted(f"none in row {rows.truth.index(None) + 1}")
        raise InvalidInput.must(column, rows.name, "a label in every row", got)
    distinct = list(dict.fromkeys(rows.truth))
    if labels is None and len(distinct) < 2:
        raise InvalidInput.must(column, rows.name, "at least two different labels", distinct)
    unknown = [truth for truth in distinct if labels is not None and truth not in labels]
    if unknown:
        raise InvalidInput.must(column, rows.name, wanted, unknown[:10])


def _describe(job: Labelling) -> None:
    """Tell what the rows, labels and settings are, what has changed, and what may be wrong with them."""
    rows, saved = job.rows, job.journal.saved_settings
    if rows.columns is not None:
        for line in column_lines(rows.columns, len(job.label_names)):
            print_note(line)
    if rows.n_skipped:
        print_note(f"{rows.n_skipped:,} files of {rows.name} skipped: hidden, or neither pictures nor .txt")
    if counts := Counter(label for label in rows.labels if label is not None):
        _describe_table_labels(counts, rows.labels.count(None), is_new=saved is None)
    n_duplicates = len(rows) - len(rows.keys)
    same = f", {n_duplicates:,} of them copies of others, which are asked about once" if n_duplicates else ""
    print_note(f"{len(rows):,} rows{same}; {len(job.label_names):,} labels")
    if job.journal.rows_added:
        print_note(job.journal.rows_added)
    for name in ("target", "second_opinion_share", "max_labels"):
        new = getattr(job.settings, name)
        if saved is not None and getattr(saved, name) != new:
            option = name.replace("_", "-")
            print_note(f"--{option} was {getattr(saved, name):g}, and is {new:g} from now on")
    print_note(f"target: {job.settings.target:g} of the labels right")


def _describe_table_labels(counts: Counter[str], n_without: int, *, is_new: bool) -> None:
    """Tell which labels the table has for how many rows; ``is_new``: of a new journal."""
    from superarm.label.names import MAX_LISTED, list_labels

    listed = ", ".join(f"{list_labels([label])} ({n:,})" for label, n in counts.most_common(MAX_LISTED))
    others = f", and {len(counts) - MAX_LISTED:,} more" if len(counts) > MAX_LISTED else ""
    print_note(f"labels in the table: {listed}{others}; {n_without:,} rows without")
    if is_new:
        print_note("labels of the table are taken as right, and their rows are not asked about")


def _simulate(job: Labelling, wrong_clicks: float, *, as_json: bool) -> None:
    from superarm.label.simulated_labeller import simulate_labeller

    outcome = simulate_labeller(job, job.rows.truth, wrong=wrong_clicks, progress=not as_json)
    progress = job.progress()
    if as_json:
        print_json(outcome)
        if progress.missed_text:
            print_note(progress.missed_text)
        return
    low, high = progress.interval or (0.0, 1.0)
    wrong = f"{100 * (progress.wrong or 0.0):.2f} % [{100 * low:.2f}, {100 * high:.2f}]"
    print_table(
        f"{job.rows.name}: {outcome['rows']:,} rows, {outcome['n_labels']} labels, target {job.settings.target:g}",
        ["", "value"],
        [
            ["clicks a row", f"{outcome['clicks_per_row']:.3f}"],
            ["clicks", f"{outcome['clicks']:,}"],
            ["of them audits", f"{outcome['audits']:,}"],
            ["labelled", f"{outcome['labelled']:,}"],
            *([["no label fits", f"{outcome['none_fits']:,}"]] if outcome["none_fits"] else []),
            ["wrong, estimated", wrong],
            ["wrong, in truth", f"{100 * outcome['wrong_rate']:.2f} %"],
            ["clicks a row asked, by tenth", " ".join(f"{rate:.2f}" for rate in outcome["by_tenth"])],
        ],
    )
    if progress.missed_text:
        print(progress.missed_text)


def _serve(job: Labelling, server: LabellingServer, *, browser: bool) -> None:
    from superarm.label.app import export_command

    remark = f"Answers are kept in {job.journal.where}. Ctrl-C ends it; the same command goes on."
    serve_page(partial(server.serve, job), remark, browser=browser)
    print_note(str(job.progress()))
    print_note(str(export_command(job)))
