"""How charts look, and lines with bands as Vega-Lite: one description for the page, SVG, PDF and PNG.

Colours are such that colour-blind readers tell them apart (after Okabe & Ito 2008), on light and dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import floor, log10
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import polars as pl

if TYPE_CHECKING:
    import altair

AnyChart = TypeVar("AnyChart", "altair.Chart", "altair.LayerChart", "altair.VConcatChart")
WIDTH, HEIGHT = 560, 320  # of figures in files and notebooks

INK = "#000000"  # stands for the text's colour: black on light pages, white on dark ones
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK),  # Okabe & Ito
    *("#8000E0", "#8C6239", "#A0C060"),  # far from these and from each other, for all kinds of sight
)
GREY = "#8a8a8a"  # of what only gives the scale
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"


def _config(text: str, quiet: str, line: str, background: str | None) -> dict[str, Any]:
    return {
        "background": background,
        "font": FONT,
        "view": {"stroke": None},
        "title": {"color": text, "fontSize": 14, "fontWeight": 600, "anchor": "start", "offset": 10},
        "axis": {
            "labelColor": quiet,
            "titleColor": text,
            "gridColor": line,
            "domainColor": quiet,
            "tickColor": quiet,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelOverlap": True,
            "labelFlush": False,  # labels stand below their ticks, at the ends too
        },
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 12,
            "labelLimit": 0,
            "orient": "bottom",
            "direction": "horizontal",  # Vega mixes up the order of a vertical one with several columns
            "symbolSize": 400,
            "symbolStrokeWidth": 3,
            "symbolType": "stroke",
            "symbolOpacity": 1,
            "title": None,
            "offset": 14,
        },
    }


LIGHT = _config("#1b1b1b", "#555555", "#e3e3e3", "#ffffff")
DARK = _config("#ececec", "#b0b0b0", "#3a3a3a", None)

SHORT_NUMBER = "format(datum.value, datum.value >= 1000 ? '~s' : '~g')"  # 100k, but 0.1 and not 100m


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as Vega-Lite, with the name of its files."""

    name: str
    title: str
    spec: dict[str, Any]

    def standalone(self) -> dict[str, Any]:
        """Return the chart with its title, a size, and the look of light paper."""
        longest = self.spec["usermeta"]["longest"]
        columns = max(1, min(3, WIDTH // (60 + 7 * longest)))  # page.html computes the same for its width
        config = LIGHT | {"legend": LIGHT["legend"] | {"columns": columns}}
        return self.spec | {"width": WIDTH, "height": HEIGHT, "config": config, "title": self.title}


class LineStyle(NamedTuple):
    """How a curve is drawn."""

    colour: str
    dash: list[int]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows."""

    label: str
    log: bool = False
    whole: bool = False  # a few whole numbers: each has its tick

    @property
    def title(self) -> str:
        return self.label + (", logarithmic" if self.log else "")

    @property
    def short(self) -> str:
        """The axis' name in the box that opens over a point."""
        return self.label.partition(",")[0].partition(" (")[0]


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks of a logarithmic axis: decades; with 2 and 5 if these are fewer than three; else even steps.

    >>> log_ticks(0.004, 20.0), log_ticks(0.07, 0.6), log_ticks(0.033, 0.039)
    ([0.01, 0.1, 1.0, 10.0], [0.1, 0.2, 0.5], [0.034, 0.036, 0.038])
    """
    low, high = low * (1.0 - 1e-9), high * (1.0 + 1e-9)
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    for digits in ((1,), (1, 2, 5)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks
    power = floor(log10(high - low))
    for step in (f"{digit}e{p}" for p in (power, power - 1) for digit in (5, 2, 1)):
        size = float(step)
        inside = range(floor(low / size) + 1, floor(high / size) + 1)
        if len(inside) >= 3:
            return [float(f"{i * size:.12g}") for i in inside]
    return [low, high]


def line_chart(
    table: pl.DataFrame, *, x: Axis, y: Axis, styles: dict[str, LineStyle], points: bool = False
) -> dict[str, Any]:
    """Return lines with bands, from a table with series, x, mean, low and high; ``styles`` is the legend's order."""
    import altair as alt

    if y.log:  # an axis without a 0: the band is as wide below as above, in the logarithm
        table = table.filter(pl.col("mean") > 0.0)
        table = table.with_columns((pl.col("mean") ** 2 / pl.col("high")).alias("low"))
    table = table.with_columns(pl.col("mean", "low", "high").round_sig_figs(5))
    data = alt.InlineData(values=table.select("series", "x", "mean", "low", "high", "n").to_dicts())
    pick = alt.selection_point(fields=["series"], bind="legend")
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x.title, scale=_scale(x, table["x"]), axis=_axis(x, table["x"])),
        opacity=alt.condition(pick, alt.value(1.0), alt.value(0.12)),
    )
    order = list(styles)
    colours, dashes = (
        alt.Scale(domain=order, range=[style[part] for style in styles.values()]) for part in (0, 1)
    )
    colour = alt.Color("series:N", scale=colours, sort=order, title=None)
    dash = alt.StrokeDash("series:N", scale=dashes, sort=order, title=None)
    values = pl.concat([table["low"], table["high"]])
    y_scale = _scale(y, values) if y.log else alt.Scale(domainMin=0.0)
    vertical = alt.Y("mean:Q", title=y.title, scale=y_scale, axis=_axis(y, values))
    low = alt.Y("low:Q", title=y.title, scale=y_scale)
    band = base.mark_area(opacity=0.18).encode(
        y=low,
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
        tooltip=_tooltips(x),
        opacity=alt.condition(pick, alt.value(1.0 if points else 0.0), alt.value(0.0)),
    )
    alone = base.transform_joinaggregate(points="count()", groupby=["series"])  # of one point, without a band
    alone = alone.transform_filter("datum.points == 1").mark_rule()
    chart = (band + alone.encode(y=low, y2="high:Q", color=colour) + line + dots).add_params(pick)
    spec: dict[str, Any] = chart.to_dict(validate=True)
    spec.pop("config", None)
    spec["usermeta"] = {"longest": max(map(len, order))}
    return spec


def _tooltips(x: Axis) -> list[altair.Tooltip]:
    """Return what the box over a point of a curve shows."""
    import altair as alt

    return [
        alt.Tooltip("series:N", title="curve"),
        alt.Tooltip("x:Q", title=x.short, format=",~g"),
        alt.Tooltip("mean:Q", title="mean", format=".4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=".4~g"),
        alt.Tooltip("high:Q", title="to", format=".4~g"),
        alt.Tooltip("n:Q", title="runs"),
    ]


def with_inline_scripts(chart: AnyChart) -> AnyChart:
    """Return the chart with a ``save("x.html")`` that writes all scripts into the file: it opens without a network."""
    copy: AnyChart = chart.copy(deep=False)
    kind: Any = type(chart)
    object.__setattr__(copy, "__class__", _inlining_class(kind))
    return copy


@cache
def _inlining_class(kind: Any) -> type:
    def save(self: Any, fp: Any, format: str | None = None, **options: Any) -> None:
        if format == "html" or (format is None and str(fp).endswith(".html")):
            options = {"inline": True, **options}
        kind.save(self, fp, format, **options)

    save.__doc__ = kind.save.__doc__
    return type(kind.__name__, (kind,), {"save": save, "__module__": __name__})


def _scale(axis: Axis, values: pl.Series) -> altair.Scale:
    import altair as alt

    if not axis.log:
        return alt.Scale(zero=False, nice=False)
    return alt.Scale(type="log", nice=False, domain=_range(values))


def _axis(axis: Axis, values: pl.Series) -> altair.Axis:
    import altair as alt

    if axis.whole:
        return alt.Axis(format="d", values=sorted(set(values.to_list())))
    if axis.log:
        return alt.Axis(labelExpr=SHORT_NUMBER, values=log_ticks(*_range(values)))
    return alt.Axis(labelExpr=SHORT_NUMBER)


def _range(values: pl.Series) -> list[float]:
    return [float(values.min()), float(values.max())]  # type: ignore[arg-type]
