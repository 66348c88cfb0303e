"""superarm export: the decision log of a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from superarm.cli.output import Force, check_output


def export(
    journal: Annotated[
        str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
    ],
    output: Annotated[Path, typer.Option(help="The file to write: .parquet or .jsonl.")],
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Write the whole decision log, for `superarm train` and `superarm evaluate`.

    Example: **superarm export events.db --output log.parquet**
    """
    from superarm.journal.export import export as run
    from superarm.journal.store import open_store

    check_output(output, "export", force=force)
    opened = open_store(journal, read_only=True)
    try:
        count = run(opened, output)
    finally:
        opened.close()
    if as_json:
        print(json.dumps({"journal": str(journal), "output": str(output), "decisions": count}))
    else:
        print(f"{count:,} decisions written to {output}")
