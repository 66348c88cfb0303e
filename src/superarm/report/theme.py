"""How figures look: colours that colour-blind readers tell apart (Okabe & Ito 2008), light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.report.chart import Chart

WIDTH, HEIGHT = 560, 320  # of figures in files and notebooks

INK = "#000000"  # stands for the text's colour: black on light pages, white on dark ones
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
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


def legend_columns(longest: int, width: int) -> int:
    """How many entries of a legend stand side by side; page.html computes the same for the page's width."""
    return max(1, min(3, width // (60 + 7 * longest)))


def standalone(chart: Chart) -> dict[str, Any]:
    """A chart that stands alone: with its title, a size, and the look of light paper."""
    columns = {"columns": legend_columns(chart.spec["usermeta"]["longest"], WIDTH)}
    config = LIGHT | {"legend": LIGHT["legend"] | columns}
    return chart.spec | {"width": WIDTH, "height": HEIGHT, "config": config, "title": chart.title}


def style(groups: list[tuple[str, str]]) -> tuple[list[str], list[list[int]]]:
    """A colour and a dash for each curve, given its (colour group, dash group).

    >>> style([("m = 2", "MC-DBF"), ("m = 2", "MC-SLP")])
    (['#0072B2', '#0072B2'], [[1, 0], [7, 3]])
    """
    colours = list(dict.fromkeys(colour for colour, _ in groups))
    dashes = list(dict.fromkeys(dash for _, dash in groups))
    return (
        [PALETTE[colours.index(colour) % len(PALETTE)] for colour, _ in groups],
        [DASHES[dashes.index(dash) % len(DASHES)] for _, dash in groups],
    )
