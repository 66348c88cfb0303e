"""Progress of downloads and of runs, on standard error: live in a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["amount_progress", "cells_progress", "tell"]

LOG_EVERY = 10.0  # seconds


def tell(text: str) -> None:
    """A line on standard error, as it is."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)


@contextmanager
def amount_progress(total: int | None, unit: str) -> Iterator[Callable[[int], object]]:
    """A bar of bytes or images; ``tick(n)`` moves it by n."""
    of = f" of {total:,} {unit}" if total else f" {unit}"
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + of),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


@contextmanager
def cells_progress(name: str) -> Iterator[Callable[[Any], object]]:
    """A live line about an experiment's runs; in a log file, a line every ten seconds."""
    console = Console(stderr=True, highlight=False)

    def words(p: Any) -> str:
        left = "" if p.seconds_left is None else f", {_clock(p.seconds_left)} left"
        failed = f", {p.failed} failed" if p.failed else ""
        return f"{p.stored + p.done}/{p.cells} runs{failed}, {p.rounds_per_second:,.0f} rounds/s{left}"

    if not console.is_terminal:
        last = time.monotonic()

        def log(p: Any) -> None:
            nonlocal last
            if time.monotonic() - last >= LOG_EVERY:
                last = time.monotonic()
                tell(f"{name}: {words(p)}")

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
