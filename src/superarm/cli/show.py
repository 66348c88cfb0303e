"""What commands show: tables on standard output; remarks on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from math import isnan
from threading import Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from superarm.groups import GroupCoverage

MOST_PARTS = 20  # lines of a table


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
    for row in rows:
        view.add_row(*row)
    # a file or a pipe has no width of its own, and a table that is cut off helps nobody
    Console(width=None if sys.stdout.isatty() else 120).print(view)


def show_parts(
    title: str, by_label: Sequence[GroupCoverage], by_group: Sequence[GroupCoverage], column: str | None
) -> None:
    """A table for each that is there, the least coverage first."""
    from superarm.groups import worst_first

    for what, parts in (("label", by_label), (column, by_group)):
        if not parts:
            continue
        worst, others = worst_first(parts, MOST_PARTS)
        rows = [
            [
                str(part.name),
                f"{part.rows:,}",
                "cannot say" if isnan(part.coverage) else f"{part.coverage:.4f}",
                "" if isnan(part.coverage) else f"[{part.low:.3f}, {part.high:.3f}]",
                f"{part.mean_size:.2f}",
            ]
            for part in worst
        ]
        print(f"\n{title}, the least first")
        table(
            f"coverage by {what}",
            [str(what), "rows", "coverage", "95 % interval", "mean size"],
            rows,
        )
        if others:
            print(f"and {others:,} others with more")


def tell(text: str) -> None:
    """A line on standard error, as it is: standard output holds results only."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)


def open_page(address: str) -> None:
    """Open it in the browser, if somebody sits at a screen."""
    import webbrowser

    screen = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if sys.stdout.isatty() and screen:
        webbrowser.open(address)


def show_address(remark: str, browser: bool, address: str) -> None:
    """Say where a page is, and open it if that is wanted."""
    print(address, flush=True)
    tell(remark)
    if browser:  # some browsers do not return before they are closed
        Thread(target=open_page, args=(address,), daemon=True).start()
