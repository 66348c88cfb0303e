"""superarm export: the decision log of a journal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.options import AsJson, Force, JournalArgument
from superarm.cli.output import check_output, print_json


def export(
    journal: JournalArgument,
    output: Annotated[Path, typer.Option(help="The file to write: .parquet or .jsonl.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole decision log, for `superarm train` and `superarm evaluate`.

    Example: **superarm export events.db --output log.parquet**
    """
    from superarm.journal.export import export as run
    from superarm.journal.store import open_store
    from superarm.logs.writer import ENDINGS

    check_output(output, "export", force=force, endings=ENDINGS)
    with closing(open_store(journal, read_only=True)) as opened:
        count = run(opened, output)
    if as_json:
        print_json({"journal": str(journal), "output": str(output), "decisions": count})
    else:
        print(f"{count:,} decisions written to {output}")
