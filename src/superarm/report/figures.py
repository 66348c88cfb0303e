"""From an experiment's results, or from traces in a notebook, to charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from superarm.errors import InvalidInput
from superarm.experiments.spec import Figure
from superarm.experiments.store import curve_frame
from superarm.report.chart import DASHES, PALETTE, Axis, Chart, LineStyle, line_chart, with_inline_scripts
from superarm.report.stats import with_interval, with_series
from superarm.report.theory_charts import bound_chart, second_moment_charts
from superarm.simulation import RATES, Trace

if TYPE_CHECKING:
    import altair

RATE_LABELS = {
    "error_rate": "error rate (share of rounds)",
    "miss_rate": "misses of the top set (share of rounds)",
    "shown_miss_rate": "misses of the shown set (share of rounds)",
}
X_AXES = {  # of each kind of figure: a column, and its label
    "rounds": ("round", "rounds"),
    "gamma": ("gamma", "γ, the share of exploration"),
    "set-size": ("set_size", "m, the number of labels shown"),
}
MAX_CURVES = 8  # in one chart; more cannot be told apart


def select_runs(figure: Figure, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the runs or curves that a figure is about."""
    for column, values in (("learner", figure.learners), ("set_size", figure.set_sizes)):
        if values:
            frame = frame.filter(pl.col(column).is_in(values))
    return frame


def figure_charts(
    figure: Figure,
    name: str,
    title: str,
    *,
    runs: pl.DataFrame,
    curves: pl.DataFrame,
    learners: Sequence[str],
) -> list[Chart]:
    """Return the charts of a figure: one for each data set, or one for all.

    Args:
        figure: what is drawn.
        name: of the files.
        title: of a chart for all data, if the figure has none.
        runs, curves: the results, as the store has them.
        learners: all of the report, for their colours.
    """
    if figure.kind == "second-moment":
        return second_moment_charts(name, figure.set_sizes)
    frame = curves if figure.kind in ("rounds", "bound") else runs
    frame = select_runs(figure, frame) if len(frame) else frame
    if not len(frame):
        return []
    if figure.kind == "gamma":
        frame = _with_constant_lines(frame)
    in_order = pl.col("learner").cast(pl.Enum(list(learners)))
    frame = frame.sort(in_order, "set_size", "gamma", maintain_order=True)
    if figure.one_chart:
        return list(curve_charts(name, figure.title or title, figure, frame, learners))
    by_data: list[Chart] = []
    for data in dict.fromkeys(frame["data"].to_list()):
        part = frame.filter(data=data)
        file_name = f"{name}-{_slug(data)}"
        if figure.kind == "bound":
            by_data.append(bound_chart(file_name, data, part, runs, learners))
        else:
            by_data += curve_charts(file_name, data, figure, part, learners)
    return by_data


def _with_constant_lines(runs: pl.DataFrame) -> pl.DataFrame:
    """Give learners without a gamma a constant line, from end to end of the axis of gammas."""
    ends = runs.group_by("data").agg(pl.col("gamma").min().alias("0"), pl.col("gamma").max().alias("1"))
    ends = ends.unpivot(["0", "1"], index="data", value_name="gamma").drop("variable").unique()
    constant = runs.filter(pl.col("gamma").is_null()).drop("gamma").join(ends, on="data")
    return pl.concat([runs, constant.select(runs.columns)]).filter(pl.col("gamma").is_not_null())


def curve_charts(
    name: str, title: str, figure: Figure, frame: pl.DataFrame, learners: Sequence[str]
) -> Iterator[Chart]:
    """Yield one chart, or several where one would have too many curves."""
    if not len(frame):
        return
    column, _ = X_AXES[figure.kind]
    frame = with_series(frame, axis=column, one_chart=figure.one_chart)
    for subtitle, part in _split(frame, column):
        file_name = f"{name}-{_slug(subtitle)}" if subtitle else name
        part = with_series(part, axis=column, one_chart=figure.one_chart)  # the subtitle says the rest
        table = part.with_columns(pl.col(column).alias("x"))
        yield _chart(file_name, f"{title}, {subtitle}" if subtitle else title, figure, table, learners)


def _split(frame: pl.DataFrame, axis: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield parts of at most `MAX_CURVES` curves, each with a subtitle that names what is only in it.

    First by m, then by gamma; what has one m only, or no gamma, is in each part, to compare with. Else some
    learners after others.
    """
    series = list(dict.fromkeys(frame["series"].to_list()))
    if len(series) <= MAX_CURVES:
        yield "", frame
        return
    for column, symbol in (("set_size", "m"), ("gamma", "γ")):
        varies = pl.col(column).drop_nulls().n_unique().over("data", "learner") > 1
        values = sorted(frame.filter(varies)[column].drop_nulls().unique().to_list())
        if column != axis and len(values) > 1:
            for value in values:
                part = frame.filter(~varies | (pl.col(column) == value))
                for subtitle, smaller in _split(part, axis):
                    yield ", ".join(filter(None, [f"{symbol} = {value:g}", subtitle])), smaller
            return
    for i in range(0, len(series), MAX_CURVES):
        yield f"part {i // MAX_CURVES + 1}", frame.filter(pl.col("series").is_in(series[i : i + MAX_CURVES]))


def _chart(name: str, title: str, figure: Figure, frame: pl.DataFrame, learners: Sequence[str]) -> Chart:
    curves = dict(frame.select("series", "learner").unique(maintain_order=True).iter_rows())
    table = with_interval(frame, ["series", "x"], figure.y)
    x_log = "x" in figure.log or figure.kind == "gamma"
    y_log = "y" in figure.log or _needs_log_axis(table, figure.kind)
    if figure.kind == "rounds" and x_log and float(table["x"].max()) >= 1000.0:  # type: ignore[arg-type]
        table = table.filter(pl.col("x") >= 10)  # rates of fewer rounds are noise, and take a lot of room
    x = Axis(X_AXES[figure.kind][1], log=x_log, whole=figure.kind == "set-size")
    y = Axis(RATE_LABELS[figure.y], log=y_log)
    styles = curve_styles(curves, learners)
    spec = line_chart(table, x=x, y=y, styles=styles, points=figure.kind != "rounds")
    spec["description"] = f"{title}: {y.label} against {x.label}, for {', '.join(curves)}."
    return Chart(name, title, spec)


def curve_styles(curves: Mapping[str, str], learners: Sequence[str]) -> dict[str, LineStyle]:
    """Return the style of each curve by its name, from the learner of each.

    A learner has the colour of its place in ``learners``, in every chart of a report; its curves differ by
    dashes. Only where there are too many of these, each curve has a colour of its own.
    """
    styles = list[tuple[int, int]]()  # the numbers of a colour and of a dash
    curves_before = Counter[str]()  # of each learner
    for learner in curves.values():
        again, colour = divmod(learners.index(learner), len(PALETTE))
        styles.append((colour, again + curves_before[learner]))
        curves_before[learner] += 1
    if max(dash for _, dash in styles) >= len(DASHES) or len(set(styles)) < len(styles):
        styles = [(i % len(PALETTE), i // len(PALETTE) % len(DASHES)) for i in range(len(curves))]
    return {
        name: LineStyle(PALETTE[colour], DASHES[dash])
        for name, (colour, dash) in zip(curves, styles, strict=True)
    }


def _needs_log_axis(table: pl.DataFrame, kind: str) -> bool:
    """Return whether curves would lie at the bottom of an axis that begins at 0."""
    means = table.filter(pl.col("x") == pl.col("x").max())["mean"] if kind == "rounds" else table["mean"]
    least, most = float(means.min()), float(means.max())  # type: ignore[arg-type]
    return most < 0.1 if kind == "rounds" else least < most / 50.0


def _slug(name: str) -> str:
    slug = "".join(c if c.isalnum() else "-" for c in name.lower().replace("γ", "gamma"))
    return "-".join(part for part in slug.split("-") if part)


# ---------------------------------------------------------------- traces, in notebooks


def as_altair(charts: Sequence[Chart]) -> altair.Chart | altair.VConcatChart:
    """Return charts as one of Altair's, to be shown, changed or saved; several are stacked."""
    import altair as alt

    specs = [chart.standalone() for chart in charts]
    if len(specs) == 1:
        return with_inline_scripts(alt.Chart.from_dict(specs[0]))
    shared = {"$schema", "usermeta", "config", "params", "datasets"}  # only the whole may have these
    stacked = {
        "vconcat": [{key: value for key, value in spec.items() if key not in shared} for spec in specs],
        "params": [param for spec in specs for param in spec["params"]],
        "datasets": {name: rows for spec in specs for name, rows in spec["datasets"].items()},
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": specs[0]["config"],
    }
    return with_inline_scripts(alt.VConcatChart.from_dict(stacked))


def traces_chart(runs: Mapping[str, Sequence[Trace]], y: str) -> altair.Chart | altair.VConcatChart:
    """Return a chart of a rate against rounds: a line for each name, with the 95 % interval of its runs."""
    if y not in RATES:
        raise InvalidInput.must("y", "plot", f"one of {', '.join(RATES)}", y, choices=RATES)
    curves = pl.concat(curve_frame(trace) for traces in runs.values() for trace in traces)
    data = next(iter(runs.values()))[0].data
    figure = Figure("rounds", y=y, log=("x",))
    return as_altair(list(curve_charts(data, _traces_title(runs, y), figure, curves, list(runs))))


def _traces_title(runs: Mapping[str, Sequence[Trace]], y: str) -> str:
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
