"""superarm simulate: runs of one or more learners on a data set, with the labels as the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer

from superarm.errors import InvalidInput

RATES = ("error_rate", "miss_rate", "shown_miss_rate")


def simulate(
    data: Annotated[
        str,
        typer.Option(help="A name (see superarm data list) or an .npz, .csv, .parquet or svmlight file."),
    ],
    learner: Annotated[
        list[str] | None,
        typer.Option(help="NAME, NAME:key=value,key=value or file.py:Class; several to compare."),
    ] = None,
    set_size: Annotated[int | None, typer.Option(help="How many labels to show, m.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds a run.", min=1)] = 100_000,
    seeds: Annotated[int, typer.Option(help="How many runs, with seeds from --seed on.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    gamma: Annotated[float | None, typer.Option(help="The share of exploration, in (0, 1].")] = None,
    label: Annotated[str | None, typer.Option(help="The label column, for tables.")] = None,
    scale: Annotated[str, typer.Option(help="'unit': rows of length 1; 'none': as they are.")] = "unit",
    log: Annotated[
        Path | None, typer.Option(help="Write every decision to a .parquet, .jsonl or .csv file (one run).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Run learners on a data set and count their mistakes.

    error: the top label was wrong. miss: the top set missed the label. shown miss: the set that was
    shown missed it.

    Example: **superarm simulate --data digits --learner set-logit --set-size 4 --rounds 50000 --seeds 3**
    """
    from superarm.learners.registry import make, parse
    from superarm.simulation import simulate as run
    from superarm.streams import open_data

    stream = open_data(data, scale=scale, label=label)
    specs = learner or ["set-logit"]
    if as_json and len(specs) > 1:
        raise InvalidInput.must("--learner", "simulate --json", "given once", specs)
    if log is not None and (len(specs) > 1 or seeds > 1):
        raise InvalidInput.must("--log", "simulate", "used with one learner and one seed", str(log))

    def one(spec: str, number: int, tick: Any) -> dict[str, Any]:
        common: dict[str, Any] = {"n_features": stream.n_features, "seed": number}
        common |= {"labels": stream.labels} if stream.labels else {"n_labels": stream.n_labels}
        if set_size is not None:
            common["set_size"] = set_size
        if gamma is not None:
            if not hasattr(parse(spec)[0], "gamma") or "gamma" not in _parameters(parse(spec)[0]):
                raise InvalidInput.must("--gamma", spec, "left out: it has no gamma", gamma)
            common["gamma"] = gamma
        if log is not None:
            from superarm.logs import Writer, record

            with Writer(log) as writer:
                trace = record(make(spec, **common), stream, rounds, writer, progress=tick)
        else:
            trace = run(make(spec, **common), stream, rounds, progress=tick)
        return {"seed": number, **trace.rates, "rounds_per_second": trace.rounds_per_second}

    from superarm.cli.show import progress_bar, table

    results = {}
    with progress_bar(rounds * seeds * len(specs), quiet=as_json) as tick:
        for spec in specs:
            results[spec] = [one(spec, n, tick) for n in range(seed, seed + seeds)]
    if as_json:
        runs = results[specs[0]]
        means = {name: mean(r[name] for r in runs) for name in RATES}
        size = make(specs[0], n_labels=stream.n_labels, n_features=stream.n_features, set_size=set_size or 1)
        print(
            json.dumps(
                {
                    "learner": specs[0],
                    "data": data,
                    "set_size": size.set_size,
                    "rounds": rounds,
                    "runs": runs,
                    "mean": means,
                }
            )
        )
        return
    rows = []
    for spec, runs in results.items():
        cells = [spec]
        for name in RATES:
            values = [r[name] for r in runs]
            spread = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
            cells.append(f"{mean(values):.4f}{spread}")
        rows.append([*cells, f"{mean(r['rounds_per_second'] for r in runs):,.0f}"])
    shown = f"m = {set_size}" if set_size else "the learner's own m"
    title = f"{stream.name}: {rounds:,} rounds, {shown} of {stream.n_labels} labels, {seeds} seed(s)"
    table(title, ["learner", "error", "miss", "shown miss", "rounds/s"], rows)


def _parameters(cls: Any) -> set[str]:
    import inspect

    return {n for c in cls.__mro__ if "__init__" in vars(c) for n in inspect.signature(c.__init__).parameters}
