"""superarm decide: sets for a whole file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.column_options import Vectors
from superarm.cli.options import AsJson, Force
from superarm.cli.output import check_output, print_json


def decide(
    model: Annotated[Path, typer.Argument(help="The model file; its rounds go on.")],
    rows: Annotated[Path, typer.Argument(help="Rows: .parquet, .csv or .jsonl; .npy, or .npz with X.")],
    output: Annotated[Path, typer.Option(help="The decisions, a .parquet file.")] = Path("decisions.parquet"),
    id_column: Annotated[
        str | None,
        typer.Option(help="The column that names a row. Else id; without one, rounds are the ids."),
    ] = None,
    set_size: Annotated[int | None, typer.Option(help="How many labels to show; else as the model.")] = None,
    coverage: Annotated[
        float | None, typer.Option(help="Another coverage than the model promises, for these rows.")
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
    from superarm._progress import progress_bar
    from superarm.logs.nightly import decide_file

    check_output(output, "decide", force=force, inputs=[model, rows])
    with progress_bar(None, "rows", quiet=as_json) as tick:
        batch = decide_file(
            model,
            rows,
            output,
            id_column=id_column,
            set_size=set_size,
            coverage=coverage,
            vectors=vectors,
            progress=tick,
        )
    if as_json:
        print_json({"model": str(model), "output": str(output), **asdict(batch)})
        return
    print(f"{output}: {batch.rows:,} decisions")
    if batch.ids is None:
        last = batch.first + batch.rows - 1
        print(f"ids: the numbers of their rounds, {batch.first} to {last} (--id-column names the rows' own)")
    if batch.missing:
        print(f"gaps in every row: {', '.join(batch.missing)} (not in {rows})")
    if batch.unused:
        names = ", ".join(name or "a column without a name" for name in batch.unused)
        print(f"not used: {names} (the model was not trained with them)")
    print(f"when the answers are there: superarm learn {model} {output} ANSWERS")
