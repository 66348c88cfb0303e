"""superarm labels: what a labelling has found, out to a file; and answers from other tools, in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from superarm.cli.options import Force
from superarm.cli.output import check_output, columns_file, print_note, print_reading, save_model
from superarm.cli.typer_extensions import App

if TYPE_CHECKING:
    from superarm.label import Labelling
    from superarm.label.labelling_journal import LabellingJournal

app = App(
    no_args_is_help=True,
    help="What a labelling has found, out to a file; answers of other tools, in.\n\n"
    "Example: **superarm labels export tickets.csv.labels.db --output labelled.csv**",
)

Rows = Annotated[
    str | None, Option(help="Where the rows are now; left out, beside the journal, or else where they were.")
]
Journal = Annotated[str, Argument(help="What superarm label keeps: FILE.labels.db, or postgresql://….")]


@app.command()
def export(
    journal: Journal,
    output: Annotated[
        Path | None, Option(help="The file to write: .csv, .tsv, .jsonl or .parquet; or what --format reads.")
    ] = None,
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="label-studio, prodigy, argilla: what they read; answers: what people said, for another journal.",
        ),
    ] = None,
    model: Annotated[
        Path | None, Option(help="Train a model on the labels, and write it here, its columns beside it.")
    ] = None,
    rows: Rows = None,
    force: Force = False,
) -> None:
    """Write the labels: each row with label, belief, clicks, how it was found and by whom.

    A row without a label was neither asked about nor sure enough, or none fits. how is: named (somebody said it),
    confirmed (twice), excluded (all others were), believed (sure enough without being named), final, file (the table
    had it), none fits, accepted (nobody was asked; not before enough audits).

    Example: **superarm labels export tickets.csv.labels.db --output labelled.csv --model team.npz**
    """
    from superarm.data.tables import TABLES
    from superarm.errors import InvalidInput
    from superarm.label.formats import ANSWERS, export_labels, find_format
    from superarm.label.labelling_journal import LabellingJournal
    from superarm.label.table_export import write_table

    if output is None and model is None:
        raise InvalidInput("superarm labels export needs --output or --model")
    if output is not None and model is not None and output.resolve() == model.resolve():
        raise InvalidInput.must("--model", "superarm labels export", "another file than --output", str(model))
    if format_ is not None:
        find_format(format_)
    with LabellingJournal(journal, read_only=True) as opened:
        rows_file = opened.find_rows(rows)
        endings = TABLES if format_ is None else ()
        check_output(output, "labels export", force=force, inputs=[rows_file], endings=endings)
        for path in () if model is None else (model, columns_file(model)):
            check_output(path, "labels export", force=force, inputs=[rows_file], option="--model")
        job = _open_labelling(opened, rows_file)
        if output is not None and format_ is not None:
            what = "answers" if format_ == ANSWERS else "labels"
            print_note(f"{export_labels(job, output, format_):,} {what} written to {output}")
        elif output is not None:
            names = write_table(job, output)
            if renamed := [f"{name} is {names[name]}" for name in names if names[name] != name]:
                kept = "the table has columns of these names itself, and keeps them"
                print_note(f"{kept}: here {', '.join(renamed)}")
            print_note(f"{job.progress()}; written to {output}")
        if model is not None:
            saved_files = save_model(job.model(), model)
            learnt = f"{len(job.label_names):,} labels, learnt from {job.progress().labelled:,} rows"
            print_note(f"a model of {learnt}, written to {saved_files}")
            if job.rows.pictures is not None and "vectors" not in job.settings.read_options:
                print_note("it takes pictures as superarm.label.pictures.pixel_features(file) returns them")


@app.command("import")
def import_(
    journal: Journal,
    file: Annotated[
        Path, Argument(help="What the other tool, or labels export --format answers, has written.")
    ],
    format_: Annotated[
        str, Option("--format", help="label-studio, prodigy, argilla; or answers, of another journal.")
    ],
    question: Annotated[str | None, Option(help="Which question, where the file has several.")] = None,
    rows: Rows = None,
) -> None:
    """Take over answers from another tool or journal: labels that were chosen, and those that were rejected.

    Rows are found by their content, by the columns that both have.

    Example: **superarm labels import tickets.csv.labels.db export.json --format label-studio**
    """
    from superarm.label.formats import find_format, read_answers
    from superarm.label.importing import import_answers
    from superarm.label.labelling_journal import LabellingJournal

    find_format(format_)
    with _open_labelling(LabellingJournal(journal), rows) as job:
        print_note(str(import_answers(job, read_answers(file, format_, question))))
        print_note(str(job.progress()))


@app.command()
def change(
    journal: Journal,
    add: Annotated[str | None, Option(help="A new label.")] = None,
    rename: Annotated[
        tuple[str, str] | None, Option(metavar="OLD NEW", help="OLD NEW: a label and its new name.")
    ] = None,
    merge: Annotated[
        tuple[str, str] | None, Option(metavar="OLD INTO", help="OLD INTO: all rows of OLD become INTO.")
    ] = None,
    disable: Annotated[
        str | None, Option(help="A label that is gone; its rows are asked about again.")
    ] = None,
    exclude: Annotated[str | None, Option(help="A person whose answers count no more.")] = None,
    include: Annotated[str | None, Option(help="A person whose answers count again.")] = None,
    erase: Annotated[str | None, Option(help="A person whose answers are erased, for good.")] = None,
    rows: Rows = None,
) -> None:
    """Change labels and people of a labelling that nobody is working on.

    Example: **superarm labels change tickets.csv.labels.db --merge "sign in" login**
    """
    from superarm.errors import InvalidInput, Unquoted
    from superarm.label.labelling_journal import LabellingJournal
    from superarm.label.names import list_labels

    options = (add, rename, merge, disable, exclude, include, erase)
    n_given = sum(option is not None for option in options)
    if n_given != 1:
        wanted = "one change at a time: --add, --rename, --merge, --disable, --exclude, --include or --erase"
        raise InvalidInput.must("options", "superarm labels change", wanted, Unquoted(f"{n_given} of them"))
    if erase is not None:
        from superarm.label.erase import erase_person

        count = erase_person(journal, erase)
        print_note(f"{count:,} answer{'s' * (count != 1)} of {erase} erased")
        return
    with _open_labelling(LabellingJournal(journal), rows) as job:
        if add is not None:
            job.add_label(add)
        elif rename is not None:
            job.rename_label(*rename)
        elif merge is not None:
            job.merge_labels(*merge)
        elif disable is not None:
            job.disable_label(disable)
        elif exclude is not None:
            job.exclude_person(exclude)
        elif include is not None:
            job.include_person(include)
        print_note(f"labels: {list_labels(job.label_names)}")
        print_note(str(job.progress()))


def _open_labelling(journal: LabellingJournal, rows: str | None) -> Labelling:
    """Open the labelling in a journal, and tell if it has new rows."""
    from superarm.label import Labelling

    print_reading(journal)
    job = Labelling.resume(journal, rows)
    if job.journal.rows_added:
        print_note(job.journal.rows_added)
    return job
