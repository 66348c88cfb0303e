"""From an experiment's results to charts: one description for the page, SVG, PDF and PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superarm.report.stats import with_interval, with_series
from superarm.report.theme import DASHES, PALETTE, style

if TYPE_CHECKING:
    import polars

__all__ = ["Chart", "charts"]

WORDS = {
    "error_rate": "error rate (share of rounds)",
    "miss_rate": "misses of the top set (share of rounds)",
    "shown_miss_rate": "misses of the shown set (share of rounds)",
}
POINTS = 110  # of a curve; more cannot be seen


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as Vega-Lite, with the name of its files."""

    name: str
    title: str
    spec: dict[str, Any]


def charts(experiment: dict[str, Any], runs: polars.DataFrame, curves: polars.DataFrame) -> list[list[Chart]]:
    """The charts of each figure that an experiment asks for."""
    return [_figure(experiment, figure, i, runs, curves) for i, figure in enumerate(experiment["figures"])]


def _figure(
    experiment: dict[str, Any],
    figure: dict[str, Any],
    number: int,
    runs: polars.DataFrame,
    curves: polars.DataFrame,
) -> list[Chart]:
    import polars as pl

    stem = experiment["name"] + (f"-{number + 1}" if len(experiment["figures"]) > 1 else "")
    if figure["kind"] == "price":
        from superarm.report.theory import price_charts

        return price_charts(stem)
    frame = curves if figure["kind"] in ("rounds", "bound") else runs
    for column in ("learners", "set_sizes"):
        if figure[column]:
            frame = frame.filter(pl.col(column[:-1]).is_in(figure[column]))
    if not len(frame):
        return []
    order = {name: i for i, name in enumerate(experiment["learners"])}
    frame = frame.with_columns(pl.col("learner").replace_strict(order, return_dtype=pl.Int64).alias("rank"))
    if figure["together"]:
        frame = frame.sort("rank", "set_size", "gamma", maintain_order=True)
        return [_chart(stem, figure["title"] or experiment["title"], figure, frame)]
    found = []
    for name in dict.fromkeys(frame["data"].to_list()):
        part = frame.filter(pl.col("data") == name).sort("rank", "set_size", "gamma", maintain_order=True)
        if figure["kind"] == "bound":
            from superarm.report.theory import bound_chart

            found.append(bound_chart(f"{stem}-{_slug(name)}", name, part, runs))
        else:
            found.append(_chart(f"{stem}-{_slug(name)}", name, figure, part))
    return found


def _chart(name: str, title: str, figure: dict[str, Any], frame: polars.DataFrame) -> Chart:
    import polars as pl

    kind, log = figure["kind"], figure["log"] or (["x"] if figure["kind"] == "gamma" else [])
    axis = {"rounds": "round", "gamma": "gamma", "set-size": "set_size"}[kind]
    frame = with_series(
        frame.filter(pl.col(axis).is_not_null()),
        over_gamma=kind == "gamma",
        over_size=kind == "set-size",
        together=figure["together"],
    )
    names = dict.fromkeys(frame.select("series", "data", "learner", "set_size", "gamma").iter_rows())
    first: dict[str, tuple[Any, ...]] = {}
    for series, *facts in names:
        first.setdefault(series, tuple(facts))
    groups = _groups(first, by_gamma=kind != "gamma")
    table = with_interval(frame, ["series", axis], figure["y"]).rename({axis: "x"})
    if _is_squeezed(table, kind) and "y" not in log:
        log = [*log, "y"]
    if kind == "rounds":
        table = _thin(table, "x" in log)
    words = {
        "round": "rounds",
        "gamma": "γ, the share of exploration (logarithmic)",
        "set_size": "m, the number of labels shown",
    }[axis]
    if kind == "rounds" and "x" in log:
        words += " (logarithmic)"
    y_words = WORDS[figure["y"]] + (", logarithmic" if "y" in log else "")
    spec = line_chart(
        table,
        x=words,
        y=y_words,
        order=list(first),
        look=style(groups),
        log=log,
        points=kind != "rounds",
        whole=kind == "set-size",
    )
    spec["description"] = f"{title}: {WORDS[figure['y']]} against {words}, for {', '.join(first)}."
    return Chart(name, title, spec)


def _groups(series: dict[str, tuple[Any, ...]], *, by_gamma: bool) -> list[tuple[str, str]]:
    """(colour group, dash group) of each curve, from its (data, learner, set size, gamma)."""
    learners, sizes, gammas = ({facts[i] for facts in series.values()} for i in (1, 2, 3))
    if len(series) <= len(PALETTE):
        return [(name, facts[1] if len(learners) <= len(DASHES) else "") for name, facts in series.items()]
    if by_gamma and 1 < len(gammas) <= len(DASHES):  # more curves than colours: gamma is told by dashes,
        return [(name.partition(", γ")[0], f"{facts[3]}") for name, facts in series.items()]
    if len(learners) <= len(DASHES) and len(sizes) > 1:  # or the learner,
        return [(f"{facts[0]} {facts[2]}", facts[1]) for facts in series.values()]
    return [(f"{i % len(PALETTE)}", f"{i // len(PALETTE)}") for i in range(len(series))]  # or nothing


def _is_squeezed(table: polars.DataFrame, kind: str) -> bool:
    """Whether an axis from 0 on would press the curves to its bottom."""
    import polars as pl

    means = table.filter(pl.col("x") == pl.col("x").max())["mean"] if kind == "rounds" else table["mean"]
    least, most = float(means.min()), float(means.max())  # type: ignore[arg-type]
    return most < 0.1 if kind == "rounds" else least < most / 50.0


def line_chart(
    table: polars.DataFrame,
    *,
    x: str,
    y: str,
    order: list[str],
    look: tuple[list[str], list[list[int]]],
    log: list[str],
    points: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    """Lines with bands from a table with series, x, mean, low and high."""
    import altair as alt
    import polars as pl

    if "y" in log:  # an axis without a place for 0: the band is as wide below as above, in the logarithm
        table = table.filter(pl.col("mean") > 0.0)
        table = table.with_columns((pl.col("mean") ** 2 / pl.col("high")).alias("low"))
    table = table.with_columns(pl.col("mean", "low", "high").round_sig_figs(5))
    data = alt.InlineData(values=table.select("series", "x", "mean", "low", "high", "n").to_dicts())
    pick = alt.selection_point(fields=["series"], bind="legend")
    marks = (
        alt.Axis(format="~s") if "round" in x else alt.Axis(format="d") if whole else alt.Axis(format="~g")
    )
    if whole:
        marks.values = sorted(set(table["x"].to_list()))
    scale = alt.Scale(type="log", nice=False) if "x" in log else alt.Scale(zero=False, nice=False)
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x, scale=scale, axis=marks),
        opacity=alt.condition(pick, alt.value(1.0), alt.value(0.12)),
    )
    colour = alt.Color("series:N", scale=alt.Scale(domain=order, range=look[0]), sort=order, title=None)
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=order, range=look[1]), sort=order, title=None)
    y_scale = alt.Scale(type="log") if "y" in log else alt.Scale(domainMin=0.0)
    short = "format(datum.value, datum.value >= 10000 ? '~s' : '~g')"  # 100k, but 0.1 and not 100m
    vertical = alt.Y("mean:Q", title=y, scale=y_scale, axis=alt.Axis(labelExpr=short))
    tips = [
        alt.Tooltip("series:N", title="curve"),
        alt.Tooltip(
            "x:Q", title=x.partition(",")[0].partition(" (")[0], format=",~g" if "round" not in x else ","
        ),
        alt.Tooltip("mean:Q", title="mean", format=".4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=".4~g"),
        alt.Tooltip("high:Q", title="to", format=".4~g"),
        alt.Tooltip("n:Q", title="runs"),
    ]
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", title=y, scale=y_scale),
        y2="high:Q",
        color=colour,
        opacity=alt.condition(pick, alt.value(0.18), alt.value(0.02)),
    )
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=vertical, color=colour, strokeDash=dash, detail="series:N"
    )
    dots = base.mark_point(filled=True, size=45 if points else 70).encode(
        y=vertical,
        color=colour,
        tooltip=tips,
        opacity=alt.condition(pick, alt.value(1.0 if points else 0.0), alt.value(0.0)),
    )
    chart = (band + line + dots).add_params(pick)
    spec: dict[str, Any] = chart.to_dict(validate=True)
    spec.pop("config", None)
    spec["usermeta"] = {"longest": max(map(len, order))}
    return spec


def _thin(table: polars.DataFrame, logarithmic: bool) -> polars.DataFrame:
    """Fewer points of a curve, evenly spaced on its axis; the last one stays."""
    import numpy as np
    import polars as pl

    if logarithmic and float(table["x"].max()) >= 1000.0:  # type: ignore[arg-type]
        table = table.filter(pl.col("x") >= 10)  # rates of fewer rounds are noise, and take a lot of room
    rounds = np.array(sorted(set(table["x"].to_list())))
    if len(rounds) <= POINTS:
        return table
    space = np.geomspace if logarithmic else np.linspace
    wanted = space(rounds[0], rounds[-1], POINTS)
    near = {int(rounds[np.argmin(np.abs(rounds - w))]) for w in wanted} | {int(rounds[-1])}
    return table.filter(pl.col("x").is_in(sorted(near)))


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
