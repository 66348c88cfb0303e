"""What commands show: tables on standard output; remarks and progress on standard error.

Progress is a live line in a terminal, and a line now and then in a log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from superarm.experiments import RunProgress

LOG_EVERY = 10.0  # seconds


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
    for row in rows:
        view.add_row(*row)
    # a file or a pipe has no width of its own, and a table that is cut off helps nobody
    Console(width=None if sys.stdout.isatty() else 120).print(view)


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


@contextmanager
def run_progress(name: str) -> Iterator[Callable[[RunProgress], object]]:
    """How far an experiment's runs have come."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        last = time.monotonic()

        def log(p: RunProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= LOG_EVERY:
                last = time.monotonic()
                tell(f"{name}: {_words(p)}")

        yield log
        return
    bar = Progress(
        TextColumn(name), BarColumn(), TextColumn("{task.description}"), console=console, transient=True
    )
    with bar:
        task = bar.add_task("", total=1)
        yield lambda p: bar.update(
            task, total=max(p.rounds, 1), completed=p.rounds_done if p.rounds else 1, description=_words(p)
        )


def _words(p: RunProgress) -> str:
    left = "" if p.seconds_left is None else f", {_clock(p.seconds_left)} left"
    failed = f", {p.failed} failed" if p.failed else ""
    return f"{p.stored + p.done}/{p.cells} runs{failed}, {p.rounds_per_second:,.0f} rounds/s{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
