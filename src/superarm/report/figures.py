"""From an experiment's results to charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from superarm.report.chart import Axis, Chart, line_chart
from superarm.report.stats import with_interval, with_series
from superarm.report.theme import DASHES, PALETTE, style
from superarm.report.theory import bound_chart, price_charts

if TYPE_CHECKING:
    import polars

    from superarm.experiments import Experiment
    from superarm.experiments.figure import Figure

WORDS = {
    "error_rate": "error rate (share of rounds)",
    "miss_rate": "misses of the top set (share of rounds)",
    "shown_miss_rate": "misses of the shown set (share of rounds)",
}
COLUMNS = {"rounds": "round", "gamma": "gamma", "set-size": "set_size"}  # the x axis of each kind
AXES = {
    "rounds": "rounds",
    "gamma": "γ, the share of exploration",
    "set-size": "m, the number of labels shown",
}
POINTS = 110  # of a curve; more cannot be seen
MOST = 8  # curves in one chart; more cannot be told apart


def charts(
    experiment: Experiment, runs: polars.DataFrame, curves: polars.DataFrame, learners: Sequence[str]
) -> list[list[Chart]]:
    """The charts of each figure that an experiment asks for; ``learners`` are all of the report, for their colours."""
    return [
        _figure(experiment, figure, i, runs, curves, learners) for i, figure in enumerate(experiment.figures)
    ]


def select_runs(figure: Figure, frame: polars.DataFrame) -> polars.DataFrame:
    """The runs or curves that a figure is about."""
    import polars as pl

    for column, values in (("learner", figure.learners), ("set_size", figure.set_sizes)):
        if values:
            frame = frame.filter(pl.col(column).is_in(values))
    return frame


def _figure(
    experiment: Experiment,
    figure: Figure,
    number: int,
    runs: polars.DataFrame,
    curves: polars.DataFrame,
    learners: Sequence[str],
) -> list[Chart]:
    import polars as pl

    stem = experiment.name + (f"-{number + 1}" if len(experiment.figures) > 1 else "")
    if figure.kind == "price":
        return price_charts(stem)
    frame = curves if figure.kind in ("rounds", "bound") else runs
    frame = select_runs(figure, frame) if len(frame) else frame
    if not len(frame):
        return []
    order = {name: i for i, name in enumerate(experiment.learners)}
    frame = frame.with_columns(pl.col("learner").replace_strict(order, return_dtype=pl.Int64).alias("rank"))
    frame = frame.sort("rank", "set_size", "gamma", maintain_order=True)
    if figure.together:
        return list(curve_charts(stem, figure.title or experiment.title, figure, frame, learners))
    by_data: list[Chart] = []
    for name in dict.fromkeys(frame["data"].to_list()):
        part, one = frame.filter(pl.col("data") == name), f"{stem}-{_slug(name)}"
        if figure.kind == "bound":
            by_data.append(bound_chart(one, name, part, runs, learners))
        else:
            by_data += curve_charts(one, name, figure, part, learners)
    return by_data


def curve_charts(
    name: str, title: str, figure: Figure, frame: polars.DataFrame, learners: Sequence[str]
) -> Iterator[Chart]:
    """One chart, or several where one would have too many curves."""
    import polars as pl

    column = COLUMNS[figure.kind]
    if column == "gamma":
        frame = _with_level_lines(frame)
    if not len(frame):
        return
    frame = with_series(
        frame,
        over_gamma=figure.kind == "gamma",
        over_size=figure.kind == "set-size",
        together=figure.together,
    )
    for words, part in _parts(frame, column):
        slug = f"{name}-{_slug(words)}" if words else name
        table = part.with_columns(pl.col(column).alias("x"))
        yield _chart(slug, f"{title}, {words}" if words else title, figure, table, learners)


def _with_level_lines(frame: polars.DataFrame) -> polars.DataFrame:
    """For an axis of gammas: learners that have none get a level line from end to end."""
    import polars as pl

    ends = frame.group_by("data").agg(pl.col("gamma").min().alias("0"), pl.col("gamma").max().alias("1"))
    ends = ends.unpivot(["0", "1"], index="data", value_name="gamma").drop("variable").unique()
    flat = frame.filter(pl.col("gamma").is_null()).drop("gamma").join(ends, on="data")
    both = pl.concat([frame, flat.select(frame.columns)]).filter(pl.col("gamma").is_not_null())
    return both.sort("rank", "set_size", "gamma", maintain_order=True)


def _parts(frame: polars.DataFrame, axis: str) -> Iterator[tuple[str, polars.DataFrame]]:
    """Parts of at most `MOST` curves, and what tells each from the others.

    First by m, then by gamma; what has one m only, or no gamma, is in each part, to compare with. Else some
    learners after others.
    """
    import polars as pl

    series = list(dict.fromkeys(frame["series"].to_list()))
    if len(series) <= MOST:
        yield "", frame
        return
    for column, sign in (("set_size", "m"), ("gamma", "γ")):
        many = pl.col(column).drop_nulls().n_unique().over("data", "learner") > 1
        values = sorted(frame.filter(many)[column].drop_nulls().unique().to_list())
        if column != axis and len(values) > 1:
            for value in values:
                part = frame.filter(~many | (pl.col(column) == value))
                for words, smaller in _parts(part, axis):
                    yield ", ".join(filter(None, [f"{sign} = {value:g}", words])), smaller
            return
    for i in range(0, len(series), MOST):
        yield f"part {i // MOST + 1}", frame.filter(pl.col("series").is_in(series[i : i + MOST]))


def _chart(name: str, title: str, figure: Figure, frame: polars.DataFrame, learners: Sequence[str]) -> Chart:
    first: dict[str, tuple[Any, ...]] = {}
    for series, *facts in frame.select("series", "data", "learner", "set_size", "gamma").iter_rows():
        first.setdefault(series, tuple(facts))
    looks = curve_styles(first, learners, by_gamma=figure.kind != "gamma")
    table = with_interval(frame, ["series", "x"], figure.y)
    x_log = "x" in figure.log or figure.kind == "gamma"
    y_log = "y" in figure.log or _is_squeezed(table, figure.kind)
    if figure.kind == "rounds":
        table = _thin(table, x_log)
    x = Axis(AXES[figure.kind], log=x_log, whole=figure.kind == "set-size")
    y = Axis(WORDS[figure.y], log=y_log)
    spec = line_chart(table, x=x, y=y, order=list(first), look=looks, points=figure.kind != "rounds")
    spec["description"] = f"{title}: {y.words} against {x.words}, for {', '.join(first)}."
    return Chart(name, title, spec)


def curve_styles(
    series: dict[str, tuple[Any, ...]], learners: Sequence[str], *, by_gamma: bool
) -> tuple[list[str], list[list[int]]]:
    """A colour and a dash for each curve, from its (data, learner, set size, gamma).

    A learner has the colour of its place in ``learners``, in every chart of a report; its curves differ by
    dashes. Only where there are too many of these, each curve has a colour of its own.
    """
    own = [facts[1] for facts in series.values()]
    others = [(facts[0], *facts[2:]) for facts in series.values()]
    several = {learner for learner in own if own.count(learner) > 1}
    kinds = list(dict.fromkeys(other for one, other in zip(own, others, strict=True) if one in several))
    places = [learners.index(learner) for learner in own]
    dashes = [
        kinds.index(other) if one in several else place // len(PALETTE)
        for one, other, place in zip(own, others, places, strict=True)
    ]
    colours = [place % len(PALETTE) for place in places]
    if max(dashes) < len(DASHES) and len(set(zip(colours, dashes, strict=True))) == len(series):
        return [PALETTE[i] for i in colours], [DASHES[i] for i in dashes]
    return style(_groups(series, by_gamma=by_gamma))


def _groups(series: dict[str, tuple[Any, ...]], *, by_gamma: bool) -> list[tuple[str, str]]:
    """(colour group, dash group) of each curve, where colours cannot stand for learners."""
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
    slug = "".join(c if c.isalnum() else "-" for c in name.lower())
    return "-".join(part for part in slug.split("-") if part)
