"""superarm demo: all learners on embedded data, tables, and a report to open."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import typer

from superarm._extras import need


def demo(
    output: Annotated[Path, typer.Option(help="Where results and report go.")] = Path("superarm-demo"),
    rounds: Annotated[int | None, typer.Option(help="Rounds a run; 50,000 by default.", min=100)] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs a learner; 5 by default.", min=1)] = None,
) -> None:
    """Every learner on SYNSEP and scikit-learn's digits: two tables, and a report to open.

    SetLogit and MC-DBF are told a bit about a set of three labels, the bandit learners a bit about one
    label, those marked (labels) every label.

    Example: **superarm demo**
    """
    need("experiments")
    from superarm.cli.run import execute, finish
    from superarm.cli.show import table
    from superarm.experiments import DEMO, Store, read_spec
    from superarm.simulation import RATES

    spec = read_spec(DEMO).with_axes(rounds=rounds, seeds=seeds)
    store = Store(output)
    failures = execute([spec], store, jobs=0, engine="local", address=None)
    runs, _ = store.frames(spec.name)
    for (data,), of_data in runs.group_by("data", maintain_order=True):
        rows = []
        for (learner,), of_learner in of_data.group_by("learner", maintain_order=True):
            several = of_learner.height > 1
            spreads = [stdev(of_learner[rate]) if several else 0.0 for rate in RATES]
            means = [mean(of_learner[rate]) for rate in RATES]
            cells = [f"{m:.4f} ± {spread:.4f}" for m, spread in zip(means, spreads, strict=True)]
            rows.append([str(learner), str(of_learner["set_size"][0]), *cells])
        title = f"{data}: {of_data['rounds'][0]:,} rounds, mean ± spread of {of_learner.height} seeds"
        table(title, ["learner", "m", "error", "miss", "shown miss"], rows)
        print()
    finish(store, failures, report=True)
