"""superarm labels: what a labelling has found, out to a file; and answers from other tools, in."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from superarm.cli.commands import App
from superarm.cli.options import Force
from superarm.cli.output import check_output

if TYPE_CHECKING:
    from superarm.label import Labelling

app = App(
    no_args_is_help=True,
    help="What a labelling has found, out to a file; answers of other tools, in.\n\n"
    "Example: **superarm labels export tickets.csv.labels.db --output labelled.csv**",
)

Rows = Annotated[
    str | None, typer.Option(help="Where the rows are now; left out, where they were, or beside the journal.")
]
Journal = Annotated[str, typer.Argument(help="What superarm label keeps: FILE.labels.db, or postgresql://….")]
TABLES = ("csv", "tsv", "jsonl", "parquet")


@app.command()
def export(
    journal: Journal,
    output: Annotated[
        Path | None,
        typer.Option(help="The file to write: .csv, .tsv, .jsonl or .parquet; or what --format reads."),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="label-studio, prodigy, argilla: what they read; answers: all that was said, for another journal.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Train a model on the labels, and write it here.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            help="The share of labels that shall be right: rows that spoil it get none. Default: the labelling's.",
            min=0.5,
            max=1.0,
        ),
    ] = None,
    rows: Rows = None,
    force: Force = False,
) -> None:
    """Write the labels: each row with label, belief, clicks, how it was found and by whom.

    A row without a label was neither asked about nor sure enough, or none fits. how is: named (somebody said it),
    confirmed (twice), excluded (all others were), believed (sure enough without being named), settled, file (the table
    had it), none fits, accepted (nobody was asked; not before enough audits).

    Example: **superarm labels export tickets.csv.labels.db --output labelled.csv --model team.npz**
    """
    from superarm.cli.show import tell
    from superarm.errors import InvalidInput
    from superarm.label.formats import ANSWERS, export_labels

    if output is None and model is None:
        raise InvalidInput.must("--output", "superarm labels export", "given, or --model", None)
    if output is not None and model is not None and output.resolve() == model.resolve():
        raise InvalidInput.must("--model", "superarm labels export", "another file than --output", str(model))
    place = rows_of(journal, rows)
    for option, path in (("--output", output), ("--model", model)):
        check_output(path, "labels export", force=force, option=option, inputs=[place])
    with open_labelling(journal, place, target, read_only=True) as job:
        if output is not None and format_ is not None:
            count = export_labels(job, output, format_)
            tell(f"{count:,} {'answers' if format_ == ANSWERS else 'labels'} written to {output}")
        elif output is not None:
            _write(job, output)
            tell(f"{job.progress()}; written to {output}")
        if model is not None:
            job.model().save(model)
            tell(f"a model of {len(job.label_names):,} labels written to {model}")


@app.command("import")
def import_(
    journal: Journal,
    file: Annotated[
        Path, typer.Argument(help="What the other tool, or labels export --format answers, has written.")
    ],
    format_: Annotated[
        str, typer.Option("--format", help="label-studio, prodigy, argilla; or answers, of another journal.")
    ],
    question: Annotated[str | None, typer.Option(help="Which question, where the file has several.")] = None,
    rows: Rows = None,
) -> None:
    """Take over answers from another tool, or another journal: labels that were chosen, and those that were rejected.

    Rows are found by their content, by the columns that both have.

    Example: **superarm labels import tickets.csv.labels.db export.json --format label-studio**
    """
    from superarm.cli.show import tell
    from superarm.label.formats import import_answers
    from superarm.label.take_over import take_over

    with open_labelling(journal, rows) as job:
        tell(str(take_over(job, import_answers(file, format_, question))))
        tell(str(job.progress()))


@app.command()
def change(
    journal: Journal,
    add: Annotated[str | None, typer.Option(help="A new label.")] = None,
    rename: Annotated[str | None, typer.Option(help="OLD=NEW")] = None,
    merge: Annotated[str | None, typer.Option(help="OLD=INTO: all rows of OLD become INTO.")] = None,
    retire: Annotated[
        str | None, typer.Option(help="A label that is gone; its rows are asked about again.")
    ] = None,
    leave_out: Annotated[str | None, typer.Option(help="A person whose answers count no more.")] = None,
    take_in: Annotated[str | None, typer.Option(help="A person whose answers count again.")] = None,
    erase: Annotated[str | None, typer.Option(help="A person whose answers are erased, for good.")] = None,
    rows: Rows = None,
) -> None:
    """Change labels and people of a labelling that nobody is working on.

    Example: **superarm labels change tickets.csv.labels.db --merge "sign in=login"**
    """
    from superarm.cli.show import tell
    from superarm.errors import InvalidInput

    options = (add, rename, merge, retire, leave_out, take_in, erase)
    given = sum(option is not None for option in options)
    if given != 1:
        raise InvalidInput.must(
            "change", "superarm labels", "one of --add, --rename, --merge, --retire, …", given
        )
    if erase is not None:
        from superarm.label.journal import erase_person

        tell(f"{erase_person(journal, erase):,} answers of {erase} erased")
        return
    with open_labelling(journal, rows) as job:
        if add is not None:
            job.add_label(add)
        elif rename is not None:
            job.rename_label(*_pair("--rename", rename, job.label_names))
        elif merge is not None:
            job.merge_labels(*_pair("--merge", merge, job.label_names, both=True))
        elif retire is not None:
            job.retire_label(retire)
        elif leave_out is not None:
            job.leave_out(leave_out)
        elif take_in is not None:
            job.take_in(take_in)
        tell(f"labels: {', '.join(job.label_names)}")
        tell(str(job.progress()))


def rows_of(journal: str, rows: str | None) -> str:
    """Where the rows of a journal are: as said, beside it, or where they were."""
    from superarm._extras import need
    from superarm.errors import InvalidInput

    need("label")
    from superarm.label.journal import read_meta

    name = read_meta(journal)["rows"]
    beside = Path(journal).parent / Path(name).name
    place = rows or next((str(path) for path in (beside, Path(name)) if path.exists()), name)
    if place != "digits" and not Path(place).exists():
        raise InvalidInput(
            f"the rows of {journal} are not there any more: {name}; --rows says where they are"
        )
    return str(place)


def open_labelling(
    journal: str, rows: str | None, target: float | None = None, *, read_only: bool = False
) -> Labelling:
    """The labelling in a journal, on its rows; people are told if those have changed."""
    from superarm.cli.show import tell

    place = rows_of(journal, rows)
    from superarm.label import Labelling
    from superarm.label.journal import read_meta
    from superarm.label.rows import LabelRows

    meta = read_meta(journal)
    table = LabelRows.read(place, **meta["reading"])
    aims = {"target": meta["target"] if target is None else target, "twice": meta["twice"]}
    job = Labelling(table, journal=journal, read_only=read_only, **aims, **meta["options"])
    if change := job.journal.rows_changed():
        tell(change)
    return job


def _pair(option: str, text: str, labels: list[str], *, both: bool = False) -> tuple[str, str]:
    """The two names of OLD=NEW; of several signs, the one that has a label before it (both: and behind it)."""
    from superarm.errors import InvalidInput

    pairs = [(text[:at].strip(), text[at + 1 :].strip()) for at, sign in enumerate(text) if sign == "="]
    known = [(old, new) for old, new in pairs if old in labels and (new in labels if both else new)]
    chosen = known or pairs
    if len(chosen) != 1:
        wanted = "two names, OLD=NEW, of which the labels allow one reading only"
        raise InvalidInput.must(option, "superarm labels change", wanted, text)
    return chosen[0]


def _write(job: Labelling, output: Path) -> None:
    """The table as it was, with what was found beside it."""
    from superarm._files import write_atomically
    from superarm.cli.show import tell
    from superarm.errors import InvalidInput
    from superarm.label.names import export_names

    names = export_names(job.rows.cells[0])
    rows = [
        job.rows.cells[result["row"]] | {names[name]: value for name, value in result.items()}
        for result in job.results()
    ]
    if renamed := [f"{name} is {names[name]}" for name in names if names[name] != name]:
        tell(f"the table has columns of these names itself, and keeps them: here {', '.join(renamed)}")
    ending = output.suffix.lower().lstrip(".")
    if ending not in TABLES:
        raise InvalidInput.must(
            "--output", "superarm labels export", f"a file in {', '.join(TABLES)}", str(output)
        )
    if ending == "parquet":
        from superarm._extras import need

        need("logs")
        import polars

        frame = polars.DataFrame(rows, infer_schema_length=None)
        write_atomically(output, frame.write_parquet)
        return
    text = io.StringIO()
    if ending == "jsonl":
        text.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(
            text, list(rows[0]), delimiter="\t" if ending == "tsv" else ",", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
    write_atomically(output, lambda file: file.write(text.getvalue().encode()))
