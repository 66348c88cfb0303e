"""superarm train: a model from decision logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from superarm.cli import options as opt
from superarm.cli.options import AsJson, Force
from superarm.cli.output import (
    check_output,
    column_lines,
    columns_file,
    print_counts,
    print_json,
    print_table,
    save_model,
)
from superarm.errors import InvalidInput, Unquoted

if TYPE_CHECKING:
    from superarm.learners import Learner
    from superarm.logs import Log, LogSummary, TrainingResult


def train(
    log: opt.LogFiles,
    output: Annotated[Path, Option(help="The model file.")] = Path("model.npz"),
    learner: Annotated[
        str | None,
        Option(help="NAME or NAME:key=value: set-logit (the default); mc-dbf if the log has top and gamma."),
    ] = None,
    model: Annotated[Path | None, Option(help="Go on from this model: it keeps what it has learnt.")] = None,
    set_size: Annotated[int | None, Option(help="How many labels the model is to show.")] = None,
    passes: Annotated[
        int, Option(help="How often to go through the log, if that is better than once.", min=1)
    ] = 1,
    holdout: Annotated[float, Option(help="The share of rows kept out, for evaluate.")] = opt.HOLDOUT,
    seed: Annotated[int, Option(help="Decides which rows, and a new model's draws.", min=0)] = 0,
    labels: opt.Labels = None,
    log_options: opt.LogOptions = opt.LogOptions(),  # noqa: B008  (the options in its fields)
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on sets that were shown before, whoever chose them.

    Features may be numbers, words, text, yes or no, dates, lists of numbers, and have gaps. Ids, counters,
    constants, the time of the row and what is only known afterwards are left out; the output says which
    columns are taken, and as what. The model file remembers them, for **superarm evaluate**, **decide**
    and **serve**, and superarm.load; the file of columns beside it is for **serve --columns** and for people.

    A share of the rows is kept out; the model remembers which, so that **superarm evaluate** judges it
    by rows that it has not seen.

    Several logs are read one after another, as one. With --model the model of last time goes on learning,
    from new logs only; its learner, labels and columns stay, and --labels may add some.

    Example: **superarm train slates.csv --labels-column first,second,third --hit-column clicked**
    """
    from superarm._progress import progress_bar
    from superarm.learners import load
    from superarm.logs import train as train_on

    for path in (output, columns_file(output)):
        check_output(path, "train", force=force, inputs=log)
    all_labels = opt.labels_or_count(labels)
    old_model = None
    if model is not None:
        _check_left_out(model, learner, set_size, log_options)
        old_model = load(model)
        _add_labels(old_model, all_labels)
        all_labels = None
    source = log_options.log(log, [] if old_model is None else [old_model])
    summary = opt.summarize_log(source, all_labels, old_model)
    trained = old_model
    if trained is None:
        trained = summary.make_learner(learner or "set-logit", seed, set_size)
    repeated = _learnt_before(source, trained)
    one_sided = [] if summary.one_sided is None else [summary.one_sided]
    n_readings = 1 if passes == 1 else 2 * passes + 1  # one pass, and all, are tried on rows set aside
    with progress_bar(summary.rows * n_readings, "rows", progress=not as_json) as tick:
        result = train_on(source, trained, summary, passes=passes, holdout=holdout, seed=seed, progress=tick)
    saved_files = save_model(trained, output)
    if as_json:
        report: dict[str, Any] = {
            "logs": [str(path) for path in log],
            "model": str(output),
            "learner": learner or trained.name,
            **asdict(result),
            "features": source.feature_columns.names,
            "kinds": source.feature_columns.descriptions,
            "left_out": source.feature_columns.left_out,
            "warnings": [*repeated, *one_sided, *source.column_warnings.values()],
            "columns": None if trained.columns is None else str(columns_file(output)),
            "labels": summary.n_labels,
        }
        print_json(report)
        return
    print(f"{source.name}: {summary.rows:,} rows, {summary.n_labels} labels")
    for sentence in one_sided:
        print(f"WARNING: {sentence}" if summary.answered < summary.rows else sentence)
    for line in _feature_lines(trained):
        print(line)
    for sentence in (*source.column_warnings.values(), *repeated):
        print(f"WARNING: {sentence}")
    print_counts(
        (result.bad, f"rows skipped, the first: {source.first_bad}"),
        (result.unanswered, "rows without an outcome: not used"),
        (result.unusable, f"rows that {trained.name} cannot learn from: they lack top and gamma"),
    )
    if result.history:
        _print_passes(result, trained.name, summary)
    print(f"model: {saved_files}")


def _print_passes(result: TrainingResult, name: str, summary: LogSummary) -> None:
    """Print how the model did after each pass."""
    rows = []
    for one in result.history:
        loss = "" if isnan(one.log_loss) else f"{one.log_loss:.4f}"
        hit_rate = "cannot say"
        if (estimate := one.hit_rate) is not None:
            hit_rate = f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
        rows.append([str(one.pass_number), f"{one.rows:,}", loss, hit_rate])
    title = f"{name}: learnt from {result.rows:,} rows, judged by {result.held_out:,} others"
    print_table(title, ["pass", "rows learnt", "log loss of the bit", "hit rate of its top set"], rows)
    if problem := result.history[-1].problem:
        print(f"hit rate: the log cannot answer: {problem}")
    if result.losses_by_passes:
        losses = ", ".join(f"{loss:.4f} after {number}" for number, loss in result.losses_by_passes)
        print(f"passes: {result.passes} (on rows set aside to choose, the log loss is {losses})")
    last_loss = result.history[-1].log_loss
    if not isnan(last_loss):
        print(f"without features the log loss is {result.base_loss:.4f}")
        all_alike = summary.hits in (0, summary.answered)  # as of candidate labels: nothing to predict
        if last_loss >= result.base_loss and not all_alike:
            print("WARNING: the model is no better than that: these features say nothing about the answers")


def _check_left_out(model: Path, learner: str | None, size: int | None, log_options: opt.LogOptions) -> None:
    """Refuse options whose values a model that goes on has already."""
    given: dict[str, object] = {"--learner": learner, "--set-size": size, "--columns": log_options.columns}
    given |= {
        "--features-columns": log_options.features_columns,
        "--text, --words and the like": log_options.kinds,
    }
    for option, value in given.items():
        if value:
            raise InvalidInput.must(option, "superarm train", f"left out: {model} has its own", str(value))


def _add_labels(model: Learner, labels: list[str] | int | None) -> None:
    """Add the labels that a model does not know; it cannot forget any."""
    if labels is None:
        return
    new: int | list[str]
    if isinstance(labels, int):
        count = labels
        got = Unquoted(labels)
        new = max(0, labels - model.n_labels)
    else:
        count = len(labels)
        got = Unquoted(f"{len(labels)} of these")
        new = [label for label in labels if model.vocabulary.index_of_text(label) is None]
    if new:
        model.add_labels(new)
    elif count < model.n_labels:
        wanted = f"new labels, beside the {model.n_labels} that the model has and keeps"
        raise InvalidInput.must("--labels", "superarm train --model", wanted, got)


def _learnt_before(source: Log, model: Learner) -> list[str]:
    """Return a warning for each log that the model has learnt from already."""
    learnt_logs = {sha for note in model.metadata.get("training", ()) for sha in note["logs"]}
    return [
        f"{name} was learnt from before: its rows count twice"
        for sha, name in source.fingerprints().items()
        if sha in learnt_logs
    ]


def _feature_lines(model: Learner) -> Iterator[str]:
    """Yield lines that say which columns are features, as what, and which are not."""
    layout = model.inputs.layout
    if model.columns is None and layout is not None:
        parts = [f"{layout.n_dense} numbers in x"] if layout.n_dense else []
        parts += [f"sparse rows with {layout.n_sparse:,} places"] if layout.n_sparse else []
        yield f"features: {' and '.join(parts)}"
    elif model.columns is not None:
        yield from column_lines(model.columns, model.n_labels)
