"""Traces as the report's charts, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from superarm.errors import InvalidInput
from superarm.experiments.spec import Figure
from superarm.experiments.store import curve_frame
from superarm.report.chart import Chart, offline
from superarm.report.figures import curve_charts
from superarm.simulation import RATES, Trace


def as_altair(charts: Sequence[Chart]) -> Any:
    """Charts as Altair's own, to be shown, changed or saved; several stand one under another."""
    import altair as alt

    specs = [chart.standalone() for chart in charts]
    if len(specs) == 1:
        return offline(alt.Chart.from_dict(specs[0]))
    shared = {"$schema", "usermeta", "config", "params", "datasets"}  # only the whole may have these
    stacked = {
        "vconcat": [{key: value for key, value in spec.items() if key not in shared} for spec in specs],
        "params": [param for spec in specs for param in spec["params"]],
        "datasets": {name: rows for spec in specs for name, rows in spec["datasets"].items()},
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": specs[0]["config"],
    }
    return offline(alt.VConcatChart.from_dict(stacked))


def traces_chart(runs: Mapping[str, Sequence[Trace]], y: str) -> Any:
    """A rate against rounds: a line for each name, with the 95 % interval of its runs."""
    if y not in RATES:
        raise InvalidInput.must("y", "plot", f"one of {', '.join(RATES)}", y, choices=RATES)
    curves = pl.concat(curve_frame(trace) for traces in runs.values() for trace in traces)
    data = next(iter(runs.values()))[0].data
    figure = Figure("rounds", y=y, log=("x",))
    return as_altair(list(curve_charts(data, _title(runs, y), figure, curves, list(runs))))


def _title(runs: Mapping[str, Sequence[Trace]], y: str) -> str:
    """Return a title that names the learners, the data, and the best rate at the end."""
    first = next(iter(runs.values()))[0]
    sizes = {trace.set_size for traces in runs.values() for trace in traces}
    shown = f", m = {first.set_size}" if len(sizes) == 1 else ""
    means = {name: sum(trace.rates[y] for trace in traces) / len(traces) for name, traces in runs.items()}
    best = min(means, key=lambda name: means[name])
    ends = f"{y.replace('_', ' ')} {means[best]:.3f} after {int(first.rounds[-1]):,} rounds"
    if len(runs) == 1:
        return f"{best} on {first.data}{shown}: {ends}"
    return f"{len(runs)} learners on {first.data}{shown}: {best} ends at {ends}"


def runs_frame(runs: Mapping[str, Sequence[Trace]]) -> pl.DataFrame:
    """Return a row for each run, as the store does; names of learners tell their gammas."""
    rows = [trace.to_row() for traces in runs.values() for trace in traces]
    return pl.DataFrame(rows).with_columns(gamma=pl.lit(None, pl.Float64))
