"""Small HTML for notebooks. What comes from outside is escaped; nothing is fetched, and no script runs.

>>> table("Rates", ("label", "share"), [("<b>", bar(0.5))]).count("&lt;b&gt;")
1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, log
from typing import Any

__all__ = ["Markup", "bar", "between", "chips", "facts", "rate", "some", "spark", "table"]

HUE = "#3b82c4"  # to be told from black and from white paper
CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:middle"
LONG = 60  # characters of a cell that may be broken


class Markup(str):
    """HTML that has been made here: it is not escaped again."""

    __slots__ = ()


def _cell(value: Any) -> str:
    if isinstance(value, Markup):
        return f'<td style="{CELL}">{value}</td>'
    text = str(value)
    wrap = "" if len(text) > LONG else ";white-space:nowrap"
    return f'<td style="{CELL}{wrap}">{escape(text)}</td>'


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table; cells are text, or `Markup`."""
    top = "".join(f'<th style="{CELL};white-space:nowrap">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    caption = f'<div style="margin:2px 0 4px"><b>{escape(title)}</b></div>'
    head_row = f"<thead><tr>{top}</tr></thead>" if head else ""
    return Markup(f"<div>{caption}<table>{head_row}<tbody>{body}</tbody></table></div>")


def facts(title: str, pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Names and values, one a row; values that are ``None`` are left out."""
    return table(title, (), [(name, value) for name, value in pairs if value is not None])


def some(values: Sequence[Any], most: int = 6) -> str:
    """The first few, and how many there are.

    >>> some(range(100), 3)
    '0, 1, 2, … (100)'
    """
    text = ", ".join(str(value) for value in values[:most])
    return text if len(values) <= most else f"{text}, … ({len(values):,})"


def rate(value: float | None) -> str:
    """A rate for reading."""
    return "–" if value is None or not isfinite(value) else f"{value:.4f}"


def chips(labels: Iterable[Any], quiet: Iterable[Any] = ()) -> Markup:
    """Labels side by side; those in ``quiet`` are outlined only."""
    soft, style = set(quiet), "display:inline-block;border-radius:4px;padding:0 7px;margin:0 4px 2px 0;"
    spans = []
    for label in labels:
        own = f"border:1px solid {HUE}" if label in soft else f"border:1px solid {HUE};background:{HUE}33"
        spans.append(f'<span style="{style}{own}">{escape(str(label))}</span>')
    return Markup("".join(spans))


def _svg(width: int, height: int, inner: str) -> Markup:
    return Markup(
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">{inner}</svg>'
    )


def bar(share: float, width: int = 120) -> Markup:
    """A share of 1 as a bar."""
    long = width * min(max(share, 0.0), 1.0)
    ground = f'<rect y="3" width="{width}" height="8" rx="3" fill="currentColor" opacity="0.12"/>'
    return _svg(width, 14, f'{ground}<rect y="3" width="{long:.1f}" height="8" rx="3" fill="{HUE}"/>')


def between(low: float, high: float, at: float, width: int = 160) -> Markup:
    """An interval in [0, 1], and the estimate in it; empty where there is none."""
    if not (isfinite(low) and isfinite(high) and isfinite(at)):
        return Markup("")
    a, b, c = (width * min(max(value, 0.0), 1.0) for value in (low, high, at))
    ground = f'<rect y="5" width="{width}" height="6" rx="3" fill="currentColor" opacity="0.12"/>'
    reach = f'<rect x="{a:.1f}" y="5" width="{max(b - a, 1.0):.1f}" height="6" fill="{HUE}" opacity="0.5"/>'
    return _svg(
        width, 16, f'{ground}{reach}<rect x="{c - 1.5:.1f}" y="1" width="3" height="14" fill="{HUE}"/>'
    )


def spark(x: Any, y: Any, width: int = 220, height: int = 44) -> Markup:
    """A curve of shares over a logarithmic axis that begins at 1 or above; its top is the largest."""
    last, most = log(max(x[-1], 2.0)), max(max(y), 1e-12)
    points = " ".join(
        f"{2 + (width - 4) * log(a) / last:.1f},{2 + (height - 4) * (1.0 - b / most):.1f}"
        for a, b in zip(x, y, strict=True)
    )
    line = f'<polyline points="{points}" fill="none" stroke="{HUE}" stroke-width="1.6"/>'
    floor = f'<line x1="2" x2="{width - 2}" y1="{height - 1}" y2="{height - 1}" stroke="currentColor"'
    return _svg(width, height, f'{floor} opacity="0.25"/>{line}')
