"""How figures look: colours that colour-blind readers tell apart (after Okabe & Ito 2008), light and dark."""

from __future__ import annotations

from typing import Any

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
