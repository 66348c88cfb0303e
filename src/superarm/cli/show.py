"""Tables and progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["note", "progress_bar", "table"]


def note(text: str) -> None:
    """A remark on standard error, so that standard output holds results only."""
    Console(stderr=True).print(text, style="dim", highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
    for row in rows:
        view.add_row(*row)
    # a file or a pipe has no width of its own, and a table that is cut off helps nobody
    Console(width=None if sys.stdout.isatty() else 120).print(view)


@contextmanager
def progress_bar(total: int, *, quiet: bool = False) -> Iterator[Callable[[int], object]]:
    """A progress bar on standard error; ``tick(n)`` moves it by n."""
    if quiet:
        yield lambda n: None
        return
    bar = Progress(
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rounds"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)
