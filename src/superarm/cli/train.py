"""superarm train: a model from a decision log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from superarm.cli import column_options as col
from superarm.cli import log_options as opt
from superarm.cli.output import Force, check_output

if TYPE_CHECKING:
    from superarm.learners import Learner
    from superarm.logs import Log


def train(
    log: opt.LogFile,
    output: Annotated[Path, typer.Option(help="The model file.")] = Path("model.npz"),
    learner: Annotated[
        str, typer.Option(help="NAME or NAME:key=value: set-logit; mc-dbf if the log has top and gamma.")
    ] = "set-logit",
    set_size: Annotated[int | None, typer.Option(help="How many labels the model is to show.")] = None,
    passes: Annotated[
        int, typer.Option(help="How often to go through the log, if that is better than once.", min=1)
    ] = 1,
    holdout: Annotated[float, typer.Option(help="The share of rows kept out, for evaluate.")] = opt.HOLDOUT,
    seed: Annotated[int, typer.Option(help="Decides which rows, and the model's draws.", min=0)] = 0,
    labels: opt.Labels = None,
    features: opt.Features = None,
    labels_column: opt.LabelsColumn = "labels",
    hit_column: opt.HitColumn = "hit",
    label_column: opt.LabelColumn = "label",
    propensity_column: opt.PropensityColumn = "propensity",
    eligible_column: opt.EligibleColumn = "eligible",
    features_columns: opt.FeaturesColumns = None,
    columns: col.ColumnsFile = None,
    text: col.Text = None,
    words: col.Words = None,
    numbers: col.Numbers = None,
    dates: col.Dates = None,
    leave_out: col.LeaveOut = None,
    vectors: col.Vectors = None,
    separator: opt.Separator = None,
    uniform: opt.Uniform = False,
    skip_bad: opt.SkipBad = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Train a model on sets that were shown before, whoever chose them.

    Features may be numbers, words, text, yes or no, dates, lists of numbers, and have gaps. Ids, counters,
    constants, the time of the row and what is only known afterwards are left out; the output says which
    columns are taken, and as what. The model file remembers them, for **superarm evaluate**, **decide**
    and **serve**, and superarm.load; the file beside it, for **serve --columns** and for people.

    A share of the rows is kept out; the model remembers which, so that **superarm evaluate** judges it
    by rows that it has not seen.

    Example: **superarm train slates.csv --labels-column first,second,third --hit-column clicked**
    """
    from superarm.cli.show import progress_bar, table
    from superarm.learners.registry import make
    from superarm.logs import survey
    from superarm.logs import train as teach

    reading = opt.Reading(
        labels_column,
        hit_column,
        label_column,
        propensity_column,
        eligible_column,
        features_columns,
        features,
        separator,
        uniform,
        skip_bad,
        col.asked(text, words, numbers, dates, leave_out),
        columns,
        vectors,
    )
    opt.check_folder("--output", output)
    check_output(output, "train", force=force)
    source = reading.log(log)
    facts = survey(source, labels=opt.labels_or_count(labels))
    common = facts.common | {"seed": seed} | ({} if set_size is None else {"set_size": set_size})
    model = make(learner, **common)
    with progress_bar(facts.rows * (passes if passes == 1 else 2 * passes + 1), quiet=as_json) as tick:
        result = teach(source, model, facts, passes=passes, holdout=holdout, seed=seed, progress=tick)
    model.save(output)
    beside = None if model.columns is None else output.with_suffix(".columns.json")
    if beside is not None and model.columns is not None:
        model.columns.write(beside)
    if as_json:
        told = {"log": str(log), "model": str(output), "learner": learner, **asdict(result)}
        told["features"], told["kinds"] = source.features.names, source.features.described
        told["left_out"], told["warnings"] = source.features.left_out, list(source.notices.values())
        told["columns"] = None if beside is None else str(beside)
        told["labels"] = facts.n_labels
        print(json.dumps(_plain(told)))
        return
    print(f"{log}: {facts.rows:,} rows, {facts.n_labels} labels")
    for line in _columns(source, model):
        print(line)
    for count, what in (
        (result.bad, f"rows skipped, the first: {source.first_bad}"),
        (result.unanswered, "rows without an outcome: not used"),
        (result.useless, f"rows that {model.name} cannot learn from: they lack top and gamma"),
    ):
        if count:
            print(f"{count:,} {what}")
    if result.progress:
        table(
            f"{model.name}: learnt from {result.rows:,} rows, judged by {result.held_out:,} others",
            ["pass", "rows learnt", "log loss of the bit", "hit rate of its top set"],
            [
                [
                    str(p.turn),
                    f"{p.rows:,}",
                    "" if isnan(p.log_loss) else f"{p.log_loss:.4f}",
                    "cannot say"
                    if p.hit_rate is None
                    else f"{p.hit_rate.rate:.3f} [{p.hit_rate.low:.3f}, {p.hit_rate.high:.3f}]",
                ]
                for p in result.progress
            ],
        )
        if result.tried:
            losses = ", ".join(f"{loss:.4f} after {number}" for number, loss in result.tried)
            print(f"passes: {result.passes} (on rows set aside to choose, the log loss is {losses})")
        last = result.progress[-1]
        if not isnan(last.log_loss):
            print(f"without features the log loss is {result.base_loss:.4f}")
            same = facts.hits in (0, facts.answered)  # as of candidate labels: nothing to foretell
            if last.log_loss >= result.base_loss and not same:
                print(
                    "WARNING: the model is no better than that: these features say nothing about the answers"
                )
    print(f"model: {output}" + ("" if beside is None else f" (its columns: {beside})"))


def _columns(source: Log, model: Learner) -> Iterator[str]:
    """Which columns are features, as what, and which are not."""
    if model.columns is None:
        yield f"features: {source.n_features} numbers in x"
    else:
        yield from col.column_lines(model.columns, model.n_labels)
    for sentence in source.notices.values():
        yield f"WARNING: {sentence}"


def _plain(value: object) -> object:
    """NaN is no JSON."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and isnan(value) else value
