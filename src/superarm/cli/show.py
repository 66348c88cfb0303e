"""Tables and progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["console", "progress_bar", "table"]


def console() -> Console:
    return Console()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0)
    for row in rows:
        view.add_row(*row)
    console().print(view)


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
