"""Tables and progress bars."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["cells_progress", "console", "error_console", "progress_bar", "table"]


def console() -> Console:
    return Console()


def error_console() -> Console:
    return Console(stderr=True, highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0)
    for row in rows:
        view.add_row(*row)
    console().print(view)


@contextmanager
def progress_bar(
    total: int | None, *, unit: str = "rounds", quiet: bool = False
) -> Iterator[Callable[[int], object]]:
    """A progress bar on standard error; ``tick(n)`` moves it by n."""
    if quiet:
        yield lambda n: None
        return
    bar = Progress(
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + (f" of {total:,} {unit}" if total else f" {unit}")),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


@contextmanager
def cells_progress(name: str) -> Iterator[Callable[[Any], object]]:
    """A live line about a run's cells; in a log file, a line every ten seconds."""
    console = error_console()

    def words(p: Any) -> str:
        left = "" if p.seconds_left is None else f", {_clock(p.seconds_left)} left"
        failed = f", {p.failed} failed" if p.failed else ""
        return f"{p.stored + p.done}/{p.cells} runs{failed}, {p.rounds_per_second:,.0f} rounds/s{left}"

    if not console.is_terminal:
        last = time.monotonic()

        def log(p: Any) -> None:
            nonlocal last
            if time.monotonic() - last >= 10.0:
                last = time.monotonic()
                console.print(f"{name}: {words(p)}", soft_wrap=True)

        yield log
        return
    bar = Progress(
        TextColumn(name), BarColumn(), TextColumn("{task.description}"), console=console, transient=True
    )
    with bar:
        task = bar.add_task("", total=1)
        yield lambda p: bar.update(
            task, total=max(p.rounds, 1), completed=p.rounds_done if p.rounds else 1, description=words(p)
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
