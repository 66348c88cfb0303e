"""superarm report: the report of a directory of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of run or reproduce.")],
    output: Annotated[Path | None, typer.Option(help="Where the report goes; DIR/report by default.")] = None,
) -> None:
    """Write one HTML file that works offline, and figures and tables as files beside it.

    Example: **superarm report results/grid**
    """
    from superarm.report import write_report

    print(write_report(folder, output))
