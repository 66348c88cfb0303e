"""Parts of HTML for notebooks and pages: small tables, intervals and curves.

Text from outside is escaped; nothing is fetched, and no script runs.

>>> titled_table("Rates", ("label", "share"), [("<b>", format_rate(0.5))]).count("&lt;b&gt;")
1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import isfinite, log
from typing import Any

COLOUR = "#3b82c4"  # visible on black and on white
CELL_STYLE = "text-align:left;padding:2px 14px 2px 0;vertical-align:middle"
WRAP_LENGTH = 60  # characters of a cell that may be wrapped


class Markup(str):
    """HTML, which is not escaped again."""

    __slots__ = ()


def plain_table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    attributes: Callable[[int, Any], str] = lambda column, cell: "",
) -> Markup:
    """Return a table of text and `Markup`; ``attributes`` gives the HTML attributes of a cell in a column."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        texts = (cell if isinstance(cell, Markup) else escape(str(cell)) for cell in cells)
        pairs = enumerate(zip(cells, texts, strict=True))
        return "".join(f"<{tag}{attributes(i, cell)}>{text}</{tag}>" for i, (cell, text) in pairs)

    head_row = f"<thead><tr>{line('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return Markup(f"<table>{head_row}<tbody>{body}</tbody></table>")


def titled_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """Return a table with a title, which brings its own style: notebooks have none."""

    def style(column: int, cell: Any) -> str:
        wraps = isinstance(cell, Markup) or len(str(cell)) > WRAP_LENGTH
        return f' style="{CELL_STYLE}{"" if wraps else ";white-space:nowrap"}"'

    caption = f'<div style="margin:2px 0 4px"><b>{escape(title)}</b></div>'
    return Markup(f"<div>{caption}{plain_table(head, rows, style)}</div>")


def key_value_table(title: str, pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Return a table of names and values, one pair a row; values that are ``None`` are left out."""
    return titled_table(title, (), [(name, value) for name, value in pairs if value is not None])


def first_few(values: Sequence[Any], most: int = 6) -> str:
    """Return the first few values as text, and how many there are.

    >>> first_few(range(100), 3)
    '0, 1, 2, … (100)'
    """
    text = ", ".join(str(value) for value in values[:most])
    return text if len(values) <= most else f"{text}, … ({len(values):,})"


def format_rate(value: float | None) -> str:
    """Return a rate as text."""
    return "–" if value is None or not isfinite(value) else f"{value:.4f}"


def label_chips(labels: Iterable[Any], outlined: Iterable[Any] = ()) -> Markup:
    """Return labels side by side, on a coloured ground but for the ``outlined`` ones."""
    style = (
        f"display:inline-block;border:1px solid {COLOUR};border-radius:4px;padding:0 7px;margin:0 4px 2px 0"
    )
    grounds = dict.fromkeys(outlined, "")
    spans = []
    for label in labels:
        ground = grounds.get(label, f";background:{COLOUR}33")
        spans.append(f'<span style="{style}{ground}">{escape(str(label))}</span>')
    return Markup("".join(spans))


def _svg(width: int, height: int, content: str) -> Markup:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Markup(f'<svg {size} role="img">{content}</svg>')


def _rect(x: float, y: float, width: float, height: float, opacity: float = 1.0, fill: str = COLOUR) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="3" fill="{fill}" opacity="{opacity}"/>'


def interval_bar(low: float, high: float, estimate: float, width: int = 160) -> Markup:
    """Return a drawing of an interval in [0, 1] and the estimate in it; empty where there is none."""
    if not (isfinite(low) and isfinite(high) and isfinite(estimate)):
        return Markup("")
    left, right, middle = (width * min(max(value, 0.0), 1.0) for value in (low, high, estimate))
    ground = _rect(0, 5, width, 6, 0.12, "currentColor")
    return _svg(
        width, 16, ground + _rect(left, 5, max(right - left, 1.0), 6, 0.5) + _rect(middle - 1.5, 1, 3, 14)
    )


def sparkline(x: Any, y: Any, width: int = 220, height: int = 44) -> Markup:
    """Return a curve of shares over a logarithmic axis that begins at 1 or above; its top is the largest."""
    right, top = log(max(x[-1], 2.0)), max(max(y), 1e-12)
    points = " ".join(
        f"{2 + (width - 4) * log(a) / right:.1f},{2 + (height - 4) * (1.0 - b / top):.1f}"
        for a, b in zip(x, y, strict=True)
    )
    line = f'<polyline points="{points}" fill="none" stroke="{COLOUR}" stroke-width="1.6"/>'
    floor = f'<line x1="2" x2="{width - 2}" y1="{height - 1}" y2="{height - 1}" stroke="currentColor"'
    return _svg(width, height, f'{floor} opacity="0.25"/>{line}')
