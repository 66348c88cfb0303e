"""superarm demo: all learners on embedded data, a table and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("superarm-demo"),
    rounds: Annotated[int, typer.Option(help="Rounds a run.", min=100)] = 50_000,
    seeds: Annotated[int, typer.Option(help="Runs a learner.", min=1)] = 5,
) -> None:
    """All learners on SYNSEP and scikit-learn's digits: a table, and a figure to open.

    Example: **superarm demo**
    """
    from superarm.cli.show import note, progress_bar, table
    from superarm.demo import LEARNERS, SET_SIZE, figure, run

    datasets = ("synsep", "digits")
    with progress_bar(rounds * seeds * len(LEARNERS) * len(datasets)) as tick:
        results = run(datasets, rounds, seeds, tick)
    for data in datasets:
        table(
            f"{data}: {rounds:,} rounds, m = {SET_SIZE} (bandits: 1), mean ± spread of {seeds} seeds",
            ["learner", "is told", "error", "shown miss"],
            [
                [
                    r.learner,
                    r.told,
                    f"{r.error:.4f} ± {r.error_spread:.4f}",
                    f"{r.missed:.4f} ± {r.missed_spread:.4f}",
                ]
                for r in results
                if r.data == data
            ],
        )
        print()
    path = figure(results, output)
    note(f"figure: {path}")
