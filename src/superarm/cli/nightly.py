"""Commands for whole files: decide, and learn from the answers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from superarm.cli.options import AsJson, Force, Vectors
from superarm.cli.output import check_output, print_counts, print_json


def decide(
    model: Annotated[Path, Argument(help="The model file; its rounds go on.")],
    rows: Annotated[Path, Argument(help="Rows: .parquet, .csv or .jsonl; .npy, or .npz with X.")],
    output: Annotated[Path, Option(help="The decisions, a .parquet file.")] = Path("decisions.parquet"),
    id_column: Annotated[
        str | None,
        Option(help="The column that names a row. Else id, if its values differ; else rounds are the ids."),
    ] = None,
    set_size: Annotated[int | None, Option(help="How many labels to show; else as the model.")] = None,
    coverage: Annotated[
        float | None, Option(help="Another coverage than the model promises, for these rows.")
    ] = None,
    vectors: Vectors = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Choose a set of labels for every row of a file.

    The decisions say what to show for each id, and how probable that set was; they keep all that
    **superarm learn** needs once the answers are there.

    Example: **superarm decide model.npz tonight.parquet --output decisions.parquet**
    """
    from superarm.errors import InvalidInput
    from superarm.logs.nightly import decide_file

    if rows.is_dir():
        pictures = "of pictures, an .npy with superarm.label.pictures.pixel_features(file) of each as a row"
        wanted = f"a file (of texts, a table with a column text; {pictures})"
        raise InvalidInput.must("ROWS", "superarm decide", wanted, str(rows))
    check_output(output, "decide", force=force, inputs=[model, rows])
    batch = decide_file(
        model,
        rows,
        output,
        id_column=id_column,
        set_size=set_size,
        coverage=coverage,
        vectors=vectors,
        progress=not as_json,
    )
    if as_json:
        print_json({"model": str(model), "output": str(output), **asdict(batch)})
        return
    print(f"{output}: {batch.rows:,} decisions")
    if batch.ids is None:
        last = batch.first_round + batch.rows - 1
        print(
            f"ids: the numbers of their rounds, {batch.first_round} to {last} (--id-column names the rows' own)"
        )
    if batch.missing:
        print(f"missing in every row: {', '.join(batch.missing)} (not in {rows})")
    if batch.unused:
        names = ", ".join(name or "a column without a name" for name in batch.unused)
        print(f"not used: {names} (the model was not trained with them)")
    print(f"when the answers are there: superarm learn {model} {output} ANSWERS")


def learn(
    model: Annotated[Path, Argument(help="The model file that made the decisions; it is replaced.")],
    decisions: Annotated[Path, Argument(help="What superarm decide wrote.")],
    answers: Annotated[Path, Argument(help="Answers: .parquet, .csv or .jsonl with ids and hits.")],
    id_column: Annotated[str, Option(help="The ids, in the answers.")] = "id",
    hit_column: Annotated[str, Option(help="Whether the set held the right label.")] = "hit",
    label_column: Annotated[str, Option(help="In its place: the right label.")] = "label",
    log: Annotated[
        Path | None, Option(help="Write the answered decisions to this log: .parquet, .csv or .jsonl.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn from the answers to the decisions of **superarm decide**.

    Each decision is answered once at most: the same answers, handed in again, change nothing. The model
    file is replaced in one step at the end. **--log** keeps what was shown and what came of it, for
    **superarm evaluate** and **superarm train**.

    Example: **superarm learn model.npz decisions.parquet answers.csv**
    """
    from superarm.logs.nightly import learn_file

    check_output(log, "learn", force=force, option="--log", inputs=[model, decisions, answers])
    columns: dict[str, str] = {"id_column": id_column, "hit_column": hit_column, "label_column": label_column}
    result = learn_file(model, decisions, answers, log=log, progress=not as_json, **columns)
    if as_json:
        print_json({"model": str(model), **asdict(result)})
        return
    print(f"{model}: learnt from {result.learnt:,} answers")
    print_counts(
        (result.already_learnt, "were answered before: not learnt from again"),
        (result.unanswered, "decisions have no answer yet"),
        (result.unknown, f"answers belong to no decision in {decisions}"),
    )
    if result.logged:
        print(f"{log}: {result.logged:,} rows for superarm evaluate and superarm train")
