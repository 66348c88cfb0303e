"""superarm bench: this machine's speed."""

from __future__ import annotations

from typing import Annotated

import typer

from superarm.cli.options import AsJson
from superarm.cli.output import print_json


def bench(
    growth: Annotated[
        bool,
        typer.Option("--growth", help="Also show how a round grows with k, up to 100,000 labels (6 GB)."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine, next to plain NumPy and SciPy loops.

    Example: **superarm bench**
    """
    from superarm import bench as measurements
    from superarm._extras import need
    from superarm.cli.show import table, tell

    need("logs")  # for SciPy's rows, beside ours
    if not as_json:
        tell("measuring, about 10 seconds …")
    results = measurements.measure()
    grown = measurements.growth() if growth else []
    if as_json:
        print_json({"speed": [r._asdict() for r in results], "growth": grown})
        return
    table(
        "One thread; best of several repeats",
        ["work", "µs a round", "rounds/s", "× naive"],
        [
            [r.what, f"{r.microseconds:.2f}", f"{1e6 / r.microseconds:,.0f}", f"{r.ratio:.1f}"]
            for r in results
        ],
    )
    if grown:
        print()
        table(
            "Growth with k (30 of 2^14 features)",
            ["k", "µs a round", "of which scores"],
            [[f"{k:,}", f"{whole:.2f}", f"{part:.2f}"] for k, whole, part in grown],
        )
