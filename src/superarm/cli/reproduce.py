"""superarm reproduce: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from superarm._extras import need
from superarm.cli.run import Address, Engine, Jobs, Output
from superarm.errors import InvalidInput

TABLES = {"table1": "fig2"}  # a table that is made from a figure's results


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="fig2 fig3 fig4 fig5 fig6 table1, ours bound dilution; all of them by default."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Other data, as mnist,fashion-mnist,cifar10,svhn or files; not the embedded."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and seeds: about a minute.")] = False,
    rounds: Annotated[int | None, typer.Option(help="Rounds a run.", min=1)] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs for each point.", min=1)] = None,
    output: Output = None,
    jobs: Jobs = 0,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Make the paper's figures and table again, and ours beside them.

    By default on the embedded data (SYNSEP, SYNNONSEP, digits). It goes on where it was broken off.

    Example: **superarm reproduce fig2 table1 --quick**
    """
    need("experiments")
    from superarm.cli.run import execute, finish
    from superarm.experiments import Store, paper_specs, read_spec

    paths = paper_specs()
    names = list(dict.fromkeys(TABLES.get(name, name) for name in what or paths))
    for name in names:
        if name not in paths:
            choices = [*paths, *TABLES]
            wanted = f"among {', '.join(choices)}"
            raise InvalidInput.must("WHAT", "superarm reproduce", wanted, name, choices=choices)
    specs = {name: read_spec(paths[name], quick=quick) for name in paths}
    for name in list(names):  # the gammas of the other figures come from fig2
        source = specs[name].best_from
        if source is not None and source not in names:
            names.insert(0, source)
    if data is not None:
        sources = data.split(",")  # experiments about one data set stay with it
        specs = {name: s.with_data(sources) if s.open_to_data else s for name, s in specs.items()}
    ready = [
        specs[name].with_axes(rounds=rounds, seeds=seeds)
        for name in sorted(names, key=lambda n: specs[n].order)
    ]
    store = Store(output or Path("results") / ("reproduce-quick" if quick else "reproduce"))
    failures = execute(ready, store, jobs=jobs, engine=engine, address=address)
    finish(store, failures, report=True)
