"""superarm export: the decision log of a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def export(
    journal: Annotated[
        str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
    ],
    output: Annotated[Path, typer.Option(help="The file to write: .parquet or .jsonl.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Write the whole decision log, archives included, for `superarm train` and `superarm evaluate`.

    Example: **superarm export events.db --output log.parquet**
    """
    from superarm.service.core.export import export as run
    from superarm.service.core.journal import open_journal

    opened = open_journal(journal, read_only=True)
    try:
        count = run(opened, output)
    finally:
        opened.close()
    if as_json:
        print(json.dumps({"journal": str(journal), "output": str(output), "decisions": count}))
    else:
        print(f"{count:,} decisions written to {output}")
